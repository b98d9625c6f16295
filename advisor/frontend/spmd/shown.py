"""What unpacking and subscripts show of values."""

from __future__ import annotations

import libcst as cst

from advisor.frontend.spmd.indexing import subscript
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import Array, External, Number, Opaque, Sequence, Value
from costdb.expr import num


def part_of(value: Value, position: int, parts: int, run: Run) -> Value:
    """Return one of the values that an unpacking assignment takes from another."""
    match value:
        case Sequence(items=items) if items is not None and len(items) == parts:
            return items[position]
        case Sequence(items=None) if value.element is not None:
            return value.element
        case Array():
            return subscript(value, Number(num(position)), run, run.statement, "")
        case Opaque():
            return Opaque(value.why, varies=value.varies)
    return Opaque("part of something that is not followed")


def promoted(owner: Value, index: Value, node: cst.BaseExpression, run: Run) -> Value:
    """Return an unknown object as an array where a subscript shows that it is one."""
    if not isinstance(owner, Opaque) or owner.foreign:
        return owner
    rank = _slices_in(index)
    if not rank:
        return owner
    text = owner.text or run.text(node)
    made = Array(run.given_array(text, run.span(node), rank, None))
    run.rebind(node, made)
    return made


def _slices_in(index: Value) -> int:
    """Return how many dimensions a subscript shows, 0 where it need not be one of an array."""
    if isinstance(index, Sequence) and index.items is not None:
        if any(isinstance(i, External) and i.path == "slice" for i in index.items):
            return len(index.items)
        if any(isinstance(i, Sequence) and i.is_list is False for i in index.items):
            return len(index.items)
    return 0
