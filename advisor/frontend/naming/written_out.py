"""Loops over values that are written out: tuples of them, also numbered or side by side.

``for dx, dy in ((0, 1), (1, 0)): ...`` does what its body does for each pair in turn, so it is
read so often, with the names bound to what stands there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import libcst as cst

from advisor.frontend.naming.literals import literal_int
from advisor.frontend.naming.names import resolve
from advisor.frontend.naming.scope import Scope
from advisor.frontend.syntax.guard import NotUnderstood
from advisor.frontend.syntax.walking import nodes_in
from costdb.expr.nodes import Num

MOST_ITERATIONS = 64
"""How often a loop over written-out values, with those around it, is read."""

_PRODUCT = frozenset({"itertools.product"})


def items_of(node: cst.BaseExpression, scope: Scope) -> tuple[cst.BaseExpression, ...] | None:
    """Return what a loop over written-out values goes through; None for anything else."""
    match node:
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            if any(isinstance(element, cst.StarredElement) for element in elements):
                return None
            return tuple(element.value for element in elements)
        case cst.Name(value=name) if name in scope.written_out:
            return items_of(scope.written_out[name], scope)
        case cst.Call():
            return _called(node, scope)
    return None


def _called(node: cst.Call, scope: Scope) -> tuple[cst.BaseExpression, ...] | None:
    """Return what ``enumerate``, ``zip``, ``reversed`` or ``range`` makes of written-out values."""
    if any(argument.star for argument in node.args):
        return None
    given = [argument.value for argument in node.args]
    if resolve(node.func, scope.imports) in _PRODUCT:
        return _product(node, scope)
    name = node.func.value if isinstance(node.func, cst.Name) else ""
    if scope.not_builtin(name):
        return None
    if name == "enumerate" and 1 <= len(given) <= 2:
        start = literal_int(given[1]) if len(given) == 2 else 0
        its = items_of(given[0], scope)
        if its is None or start is None or (given[1:] and not _is_start(node.args[1])):
            return None
        return tuple(_tuple((_number(start + i), item)) for i, item in enumerate(its))
    if any(argument.keyword for argument in node.args):
        return None
    if name == "range" and 1 <= len(given) <= 3:
        bounds = [literal_int(value) for value in given]
        whole = [bound for bound in bounds if bound is not None]
        if len(whole) < len(bounds) or (len(whole) == 3 and not whole[2]):
            return None
        return tuple(_number(i) for i in islice(range(*whole), MOST_ITERATIONS + 1))
    if name == "reversed" and len(given) == 1:
        its = items_of(given[0], scope)
        return None if its is None else its[::-1]
    if name == "zip" and given:
        columns = [items_of(value, scope) for value in given]
        known = [column for column in columns if column is not None]
        if len(known) < len(columns):
            return None
        return tuple(_tuple(row) for row in zip(*known, strict=False))
    return None


def _product(node: cst.Call, scope: Scope) -> tuple[cst.BaseExpression, ...] | None:
    """Return the combinations that ``itertools.product`` gives."""
    repeated = [a for a in node.args if a.keyword is not None]
    times = 1
    if repeated:
        (only, *others) = repeated
        count = literal_int(only.value)
        if others or only.keyword is None or only.keyword.value != "repeat" or count is None:
            return None
        times = count
    columns = [items_of(a.value, scope) for a in node.args if a.keyword is None]
    known = [column for column in columns if column is not None]
    if len(known) < len(columns) or not 1 <= times * len(known) <= MOST_ITERATIONS:
        return None
    rows: list[tuple[cst.BaseExpression, ...]] = [()]
    for column in known * times:
        rows = [(*row, item) for row in rows for item in column]
        if len(rows) > MOST_ITERATIONS:
            break
    return tuple(_tuple(row) for row in rows)


def _is_start(argument: cst.Arg) -> bool:
    return argument.keyword is None or argument.keyword.value == "start"


def _number(value: int) -> cst.BaseExpression:
    digits = cst.Integer(str(abs(value)))
    return digits if value >= 0 else cst.UnaryOperation(cst.Minus(), digits)


def _tuple(items: Sequence[cst.BaseExpression]) -> cst.Tuple:
    return cst.Tuple([cst.Element(item) for item in items])


def pairs(
    target: cst.BaseExpression, item: cst.BaseExpression, scope: Scope
) -> Iterator[tuple[str, cst.BaseExpression]]:
    """Yield the names that one iteration binds, each with what stands for it.

    Raises
    ------
    NotUnderstood
        Where the names do not fit what is written.
    """
    if isinstance(target, cst.Name):
        yield target.value, item
        return
    if not isinstance(target, cst.Tuple | cst.List):
        raise NotUnderstood("a loop whose index is no name")
    parts = items_of(item, scope)
    starred = any(isinstance(element, cst.StarredElement) for element in target.elements)
    if parts is None or starred or len(parts) != len(target.elements):
        raise NotUnderstood("a loop over values that do not fit its names")
    for element, part in zip(target.elements, parts, strict=True):
        yield from pairs(element.value, part, scope)


def entry_of(node: cst.Subscript, scope: Scope) -> cst.BaseExpression | None:
    """Return what stands at ``table[i]``, for a written-out table and a known place."""
    its = items_of(node.value, scope)
    if its is None and isinstance(node.value, cst.Subscript):
        inner = entry_of(node.value, scope)
        its = None if inner is None else items_of(inner, scope)
    if its is None or len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index):
        return None
    index = node.slice[0].slice.value
    place: int | None = literal_int(index)
    if place is None and isinstance(index, cst.Name):
        known = scope.scalars.get(index.value)
        place = int(known.value) if isinstance(known, Num) else None
    return its[place] if place is not None and -len(its) <= place < len(its) else None


def looks_up(node: cst.For, scope: Scope) -> bool:
    """Return whether a loop's index is a place in a written-out table."""
    if not scope.written_out or not isinstance(node.target, cst.Name):
        return False
    index = node.target.value
    for found in nodes_in(node.body):
        base = found
        while isinstance(base, cst.Subscript):
            base = base.value
        if isinstance(found, cst.Subscript) and isinstance(base, cst.Name):
            places = (e.slice.value for e in found.slice if isinstance(e.slice, cst.Index))
            if base.value in scope.written_out and any(
                isinstance(place, cst.Name) and place.value == index for place in places
            ):
                return True
    return False
