"""Values that are written out: numbers, tables of them, and loops over them.

``for dx, dy in ((0, 1), (1, 0)): ...`` does what its body does for each pair in turn, so it is
read so often, with the names bound to what stands there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import libcst as cst

from advisor.frontend.naming.scope import Scope
from advisor.frontend.syntax.trees import nodes_in

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
