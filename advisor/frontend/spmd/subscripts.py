"""What a subscript denotes: a part, an element, chosen elements, an entry of a list."""

from __future__ import annotations

import libcst as cst

import advisor.ir.values as forms
from advisor.frontend.selections import Entry, Sizes, selected
from advisor.frontend.spmd.door import ProgramDoor
from advisor.frontend.spmd.joining import join_all
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import (
    Arguments,
    Array,
    External,
    Nothing,
    Number,
    Opaque,
    Range,
    Sequence,
    Slice,
    Text,
    Value,
)
from advisor.frontend.trees import NotUnderstood
from advisor.ir.spmd.memory import View, extent_of, inside
from advisor.ir.spmd.steps import Compute
from advisor.ir.values import Point, Subscript
from advisor.numpy_table import Shape, count_of
from advisor.source import Span
from costdb.expr import Expr, num, substitute
from costdb.expr.functions import chance
from costdb.records import replace


def subscript(owner: Value, index: Value, run: Run, span: Span, text: str) -> Value:
    """Return what ``owner[index]`` denotes."""
    match owner:
        case Array(view):
            return _of_array(view, index, run, span, text)
        case Sequence():
            return _of_sequence(owner, index, run)
        case Text():
            return Text(None)
        case Opaque():
            at = run.integer(index)
            known = f"{owner.text}[{'...' if at is None else at}]" if owner.text else ""
            why = f"an element of `{owner.text}`" if owner.text else owner.why
            return Opaque(why, text=known, foreign=owner.foreign, varies=owner.varies)
    if isinstance(owner, External) and owner.path.startswith("numpy."):
        run.unknown(f"the time of `{owner.path}[...]` is not known", span)
    return Opaque("a subscript of something that is not followed")


def _of_sequence(owner: Sequence, index: Value, run: Run) -> Value:
    if isinstance(index, Slice):
        return _sliced(owner, index, run)
    position = run.integer(index)
    if owner.items is not None and position is not None:
        if -len(owner.items) <= position < len(owner.items):
            return owner.items[position]
        return Opaque("an index outside of a list")
    if owner.items:
        return join_all(owner.items, "element", run) or Nothing()
    if isinstance(owner.element, Number) and owner.index is not None and isinstance(index, Number):
        name, first = owner.index
        if index.expr is not None and owner.element.expr is not None:
            there = substitute(owner.element.expr, {name: first + index.expr})
            return replace(owner.element, expr=there)
    return owner.element or Opaque("an element of a list")


def _sliced(owner: Sequence, index: Slice, run: Run) -> Value:
    parts = (index.low, index.high, index.step)
    bounds = [run.integer(part) for part in parts]
    known = all(b is not None or p == Nothing() for p, b in zip(parts, bounds, strict=True))
    if owner.items is None or not known or bounds[2] == 0:
        return Sequence(None, owner.element, None, owner.is_list)
    return Sequence(owner.items[slice(*bounds)], is_list=owner.is_list)


def _of_array(view: View, index: Value, run: Run, span: Span, text: str) -> Value:
    parts = parts_of(index)
    if any(isinstance(part, _PICKS) for part in parts):
        return _picked(view, parts, run, span, text)
    found = part_of_view(view, index, run, span, text)
    if found is None and any(isinstance(part, Slice | Nothing | External) for part in parts):
        # nothing but the element type is known
        return Array(View(view.buffer, None, text or view.text, span))
    if found is None:
        run.emit(Compute(None, (view,), None, span, "element"))
        return Opaque(f"an element of `{view.buffer.name}`, or a part of it", varies=True)
    if found.shape == () and not found.flat:
        run.emit(Compute(None, (found,), None, span, "element"))
        return Number(None, view.dtype or "float", varies=True)
    return Array(found)


def _picked(view: View, parts: tuple[Value, ...], run: Run, span: Span, text: str) -> Value:
    """Return the copy that indexing by an array or a list makes."""
    door = ProgramDoor(run, span)
    operand, (mask, places) = door.value(Array(view)), _chooses(parts, door)
    try:
        if mask is not None:
            # how many it chooses, nothing tells: on no two ranks it has to be as many
            count = chance(span.start_line) * count_of(door.type_of(mask).extents)
            return door.computed(forms.Chosen(operand, mask, count), None, view)
        if places:
            return door.computed(forms.Gather(operand, places[0], places[1:]), None, view)
    except NotUnderstood:
        pass
    return door.copied(view, shape=None)


def put(view: View, index: Value, value: Value, run: Run, span: Span) -> bool:
    """Note that a value is stored at places, or where a mask holds; return whether it is so."""
    door = ProgramDoor(run, span)
    operand, stored = door.value(Array(view)), door.value(value)
    mask, places = _chooses(parts_of(index), door)
    try:
        if mask is not None:
            door.computed(forms.Elementwise("where", (mask, stored, operand)), view)
        elif places:
            door.computed(stored, view, places=places)
    except NotUnderstood:
        return False
    return mask is not None or bool(places)


def _chooses(
    parts: tuple[Value, ...], door: ProgramDoor
) -> tuple[forms.Value | None, tuple[forms.Value, ...]]:
    """Return the mask or the places that a subscript consists of, where it is nothing else."""
    arrays = [
        door.listed(part, Arguments()) if isinstance(part, Sequence | Range) else part
        for part in parts
    ]
    found = [door.value(one) for one in arrays if isinstance(one, Array) and one.view.shape]
    if len(found) < len(parts):
        return None, ()
    if any(door.view(one).dtype == "bool" for one in found):
        return (found[0] if len(found) == 1 else None), ()
    return None, tuple(found)


# Basic subscripts: the part of an array's memory that one selects.


_PICKS = Array | Sequence | Range
"""What chooses elements one by one."""


def parts_of(index: Value) -> tuple[Value, ...]:
    """Return the parts of a subscript, one for each dimension that it speaks of."""
    if isinstance(index, Sequence) and index.items is not None and not index.is_list:
        return index.items
    return (index,)


def part_of_view(view: View, index: Value, run: Run, span: Span, text: str) -> View | None:
    """Return the part of an array that a basic subscript selects; None where it cannot be said."""
    shape, region = view.shape, view.region
    if shape is None or region is None or view.flat:
        return None
    if view.transposed:
        region = region[::-1]
    try:
        entries = [_entry(part, k, shape, run, span) for k, part in enumerate(parts_of(index))]
        found = selected(entries, shape, Sizes(value=run.symbols.value))
    except NotUnderstood:
        return None
    kept = iter(range(len(shape)))
    chosen, made = iter(found.region), list[Subscript]()
    for outer in region:
        if isinstance(outer, Point):
            made.append(outer)
            continue
        part = next(chosen)
        turned = not isinstance(part, Point) and next(kept) in found.flipped
        inner = inside(outer, part, backwards=turned)
        if inner is None:
            return None
        made.append(inner)
    shown = None
    if found.expanded:
        # a dimension of one index changes shapes, not memory
        along = [extent_of(index) for index in made if not isinstance(index, Point)]
        for axis in found.expanded:
            along.insert(axis, num(1))
        shown = tuple(along)
    return View(
        view.buffer,
        tuple(made[::-1] if view.transposed else made),
        text or view.text,
        span,
        view.transposed,
        flat=shown is not None,
        shown=shown,
    )


def _entry(part: Value, place: int, shape: Shape, run: Run, span: Span) -> Entry:
    """Return an entry of a subscript; a number that nothing tells is of this place."""

    def number(value: Value, name: str) -> Expr:
        found = run.number(value, f"{name}.{place}" if place else name, span)
        if found is None:
            raise NotUnderstood("an index that is no number")
        return found

    match part:
        case Nothing() | External("numpy.newaxis"):
            return None
        case External("builtins.Ellipsis"):
            return ...
        case Slice(low, high, step):
            bounds = [
                None if isinstance(bound, Nothing) else number(bound, name)
                for bound, name in ((low, "low"), (high, "high"))
            ]
            stride = 1 if isinstance(step, Nothing) else run.integer(step)
            if stride is None and place < len(shape):
                # x[rank::size]: as many as there are, in steps of something that is not known
                first = num(0) if bounds[0] is None else bounds[0]
                count = (shape[place] - first) / number(step, "step")
                return first, first + count * 2, 2
            return bounds[0], bounds[1], stride
    return number(part, "index")


# What unpacking and subscripts show of values.


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
    parts = parts_of(index)
    shown = any(isinstance(p, Slice) or (isinstance(p, Sequence) and not p.is_list) for p in parts)
    if not isinstance(owner, Opaque) or owner.foreign or not shown:
        return owner
    text = owner.text or run.text(node)
    made = Array(run.given_array(text, run.span(node), len(parts)))
    run.rebind(node, made)
    return made
