"""Numbers that stand in the source as they are, and tables of them."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from advisor.frontend.syntax.walking import nodes_in

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
    match node.operator:
        case cst.Add():
            found = left + right
        case cst.Subtract():
            found = left - right
        case cst.Multiply():
            found = left * right
        case cst.FloorDivide() if right:
            found = left // right
        case cst.LeftShift() if 0 <= right < _MOST_BITS:
            found = left << right
        case cst.Power() if 0 <= right < _MOST_BITS:
            found = left**right
        case _:
            return None
    return found if found.bit_length() < _MOST_BITS else None


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
