"""Values that are written out: numbers, tables of them, and loops over them.

``for dx, dy in ((0, 1), (1, 0)): ...`` does what its body does for each pair in turn, so it is
read so often, with the names bound to what stands there.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from advisor.frontend.naming.scope import Scope
from advisor.frontend.syntax.trees import nodes_in

_ONLY_READ = frozenset({"enumerate", "zip", "reversed", "len", "sum", "min", "max", "tuple"})
"""Functions that leave a list as it is."""


_LITERAL = (
    cst.Tuple | cst.List | cst.Element | cst.Integer | cst.Float
    | cst.UnaryOperation | cst.BinaryOperation | cst.BaseUnaryOp | cst.BaseBinaryOp
)  # fmt: skip


def is_of_literals(node: cst.BaseExpression) -> bool:
    """Return whether a value is a tuple or list of numbers, or of such tuples."""
    filled = isinstance(node, cst.Tuple | cst.List) and bool(node.elements)
    return filled and all(isinstance(part, _LITERAL) for part in nodes_in(node))


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
