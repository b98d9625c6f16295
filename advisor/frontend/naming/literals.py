"""Numbers that stand in the source as they are, and tables of them."""

from __future__ import annotations

import libcst as cst

from advisor.frontend.naming.bindings import NameVisitor
from advisor.frontend.syntax.walking import show

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


class _Handled(NameVisitor):
    """Counts where a name stands, and where what it denotes can only be read."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, int] = {}
        self.only_read: dict[str, int] = {}

    def name_seen(self, name: str) -> None:
        self.seen[name] = self.seen.get(name, 0) + 1

    def _count(self, node: cst.CSTNode, by: int) -> None:
        if isinstance(node, cst.Name):
            self.only_read[node.value] = self.only_read.get(node.value, 0) + by

    def _stored(self, target: cst.CSTNode) -> None:
        if isinstance(target, cst.Tuple | cst.List):
            for element in target.elements:
                self._stored(element.value)
        while isinstance(target, cst.Subscript):
            target = target.value
            # takes back what the subscript itself counts
            self._count(target, -1)

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:  # noqa: N802
        self._stored(node.target)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:  # noqa: N802
        self._stored(node.target)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:  # noqa: N802
        self._stored(node.target)

    def visit_Del(self, node: cst.Del) -> None:  # noqa: N802
        self._stored(node.target)

    def visit_Subscript(self, node: cst.Subscript) -> None:  # noqa: N802
        self._count(node.value, 1)

    def visit_For(self, node: cst.For) -> None:  # noqa: N802
        self._stored(node.target)
        self._count(node.iter, 1)

    def visit_CompFor(self, node: cst.CompFor) -> None:  # noqa: N802
        self._stored(node.target)
        self._count(node.iter, 1)

    def visit_Call(self, node: cst.Call) -> None:  # noqa: N802
        if isinstance(node.func, cst.Name) and node.func.value in _ONLY_READ:
            for argument in node.args:
                self._count(argument.value, 1)


def is_kept(name: str, source: cst.CSTNode) -> bool:
    """Return whether nothing in a piece of source can change the list that a name is bound to.

    Parameters
    ----------
    name : str
        It is bound once.
    source : CSTNode
        All that can see the name, with what binds it.
    """
    visitor = _Handled()
    show(source, visitor)
    return visitor.seen.get(name, 0) == visitor.only_read.get(name, 0) + 1
