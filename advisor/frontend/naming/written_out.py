"""Values that are written out: numbers, tables of them, and loops over them.

``for dx, dy in ((0, 1), (1, 0)): ...`` does what its body does for each pair in turn, so it is
read so often, with the names bound to what stands there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import libcst as cst

from advisor.frontend.naming.names import resolve
from advisor.frontend.naming.scope import Scope
from advisor.frontend.syntax.guard import NotUnderstood
from advisor.frontend.syntax.trees import nodes_in
from costdb.expr.nodes import Num

ARITHMETIC: dict[type[cst.CSTNode], Callable[..., Any]] = {
    cst.Add: operator.add,
    cst.Subtract: operator.sub,
    cst.Multiply: operator.mul,
    cst.FloorDivide: operator.floordiv,
    cst.Modulo: operator.mod,
}
"""What gives whole numbers of whole numbers, known ones and expressions over sizes."""

_POWERS = {cst.LeftShift: operator.lshift, cst.Power: operator.pow}
_MOST_BITS = 64
_ONLY_READ = frozenset({"enumerate", "zip", "reversed", "len", "sum", "min", "max", "tuple"})
"""Functions that leave a list as it is."""


def literal_int(node: cst.BaseExpression) -> int | None:
    """Return the value of an integer literal with an optional sign."""
    if isinstance(node, cst.Integer):
        return node.evaluated_value
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        inner = literal_int(node.expression)
        return None if inner is None else -inner
    return None


def constant_int(node: cst.BaseExpression) -> int | None:
    """Return the value of arithmetic on literal whole numbers: ``1 << 20``, ``64 * 1024``.

    None where it has none, or where it is larger than any size.
    """
    number = literal_int(node)
    if number is not None or not isinstance(node, cst.BinaryOperation):
        return number
    left, right = constant_int(node.left), constant_int(node.right)
    if left is None or right is None:
        return None
    operation = ARITHMETIC.get(type(node.operator))
    if operation is None or (isinstance(node.operator, cst.FloorDivide | cst.Modulo) and not right):
        operation = _POWERS.get(type(node.operator)) if 0 <= right < _MOST_BITS else None
    found = None if operation is None else operation(left, right)
    return found if found is not None and found.bit_length() < _MOST_BITS else None


def is_of_literals(node: cst.BaseExpression) -> bool:
    """Return whether a value is a tuple or list of numbers, or of such tuples."""
    if isinstance(node, cst.Tuple | cst.List):
        return bool(node.elements) and all(
            not isinstance(element, cst.StarredElement) and _is_literal(element.value)
            for element in node.elements
        )
    return False


def _is_literal(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.UnaryOperation):
        return isinstance(node.operator, cst.Minus | cst.Plus) and _is_literal(node.expression)
    if isinstance(node, cst.BinaryOperation):
        # such as 4 / 9
        return _is_literal(node.left) and _is_literal(node.right)
    return isinstance(node, cst.Integer | cst.Float) or is_of_literals(node)


def is_kept(name: str, source: cst.CSTNode) -> bool:
    """Return whether nothing in a piece of source can change the list that a name is bound to.

    Parameters
    ----------
    name : str
        It is bound once.
    source : CSTNode
        All that can see the name, with what binds it.
    """

    def is_it(node: cst.CSTNode) -> bool:
        return isinstance(node, cst.Name) and node.value == name

    seen = only_read = 0
    for node in nodes_in(source):
        seen += is_it(node)
        match node:
            case cst.Subscript(value=value) | cst.For(iter=value) | cst.CompFor(iter=value):
                only_read += is_it(value)
            case cst.Call(func=cst.Name(value=function)) if function in _ONLY_READ:
                only_read += sum(is_it(argument.value) for argument in node.args)
            case _:
                pass
        if isinstance(node, _STORING):
            # takes back what the subscripts themselves count
            only_read -= sum(map(is_it, _subscripted(node.target)))
    return seen == only_read + 1


_STORING = cst.AssignTarget | cst.AugAssign | cst.AnnAssign | cst.Del | cst.For | cst.CompFor


def _subscripted(target: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Yield what a store changes in a part of it."""
    if isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            yield from _subscripted(element.value)
    while isinstance(target, cst.Subscript):
        target = target.value
        yield target


# What loops over written-out values go through.

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
    columns = all_items(given, scope)
    if name != "zip" or not columns:
        return None
    return tuple(_tuple(row) for row in zip(*columns, strict=False))


def all_items(
    nodes: Iterable[cst.BaseExpression], scope: Scope
) -> list[tuple[cst.BaseExpression, ...]] | None:
    """Return what each of several written-out values consists of; None unless all are."""
    columns = [items_of(node, scope) for node in nodes]
    known = [column for column in columns if column is not None]
    return known if len(known) == len(columns) else None


def _product(node: cst.Call, scope: Scope) -> tuple[cst.BaseExpression, ...] | None:
    """Return the combinations that ``itertools.product`` gives."""
    named = {a.keyword.value: literal_int(a.value) for a in node.args if a.keyword is not None}
    times = named.pop("repeat", 1)
    if named or times is None:
        return None
    columns = all_items((a.value for a in node.args if a.keyword is None), scope)
    if columns is None or not 1 <= times * len(columns) <= MOST_ITERATIONS:
        return None
    rows: list[tuple[cst.BaseExpression, ...]] = [()]
    for column in columns * times:
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
