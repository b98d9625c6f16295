"""Bodies of loops whose iterations give the same in any order, by the source alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

PURE_BUILTINS = frozenset({"abs", "min", "max", "int", "float", "len", "range"})
# fmt: off
_PURE_FUNCTIONS = frozenset(
    {
        "abs", "absolute", "arctan", "arctan2", "ceil", "cos", "cosh", "degrees", "dot", "exp",
        "expm1", "fabs", "floor", "fmax", "fmin", "hypot", "log", "log10", "log1p", "log2",
        "max", "maximum", "mean", "min", "minimum", "pow", "power", "prod", "radians", "sign",
        "sin", "sinh", "sqrt", "square", "sum", "tan", "tanh", "trunc",
    }
)
# fmt: on
_CONSTANTS = frozenset({"pi", "e", "inf", "nan", "shape", "size", "ndim"})


@dataclass(frozen=True, slots=True)
class Body:
    """What a loop's body writes and uses.

    Attributes
    ----------
    arrays : frozenset of str
        Every name that has a subscript.
    written : frozenset of str
        Those whose elements are assigned to; each iteration has elements of its own.
    assigned : frozenset of str
        Plain names that it binds, the index of the loop included.
    """

    arrays: frozenset[str]
    written: frozenset[str]
    assigned: frozenset[str]


def order_free(loop: ast.For, modules: frozenset[str]) -> Body | None:
    """Return what a loop's body does if its iterations give the same in any order.

    Parameters
    ----------
    loop : ast.For
        Its target is a name.
    modules : frozenset of str
        What ``numpy`` and ``math`` are imported as.

    Returns
    -------
    Body or None
        None where an iteration may see what another one made, or anything else happens that is
        not understood. Arrays of different names are taken to be different memory.
    """
    assert isinstance(loop.target, ast.Name)
    nodes = [node for statement in loop.body for node in ast.walk(statement)]
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and _is_bound(node)}
    places = [node for node in nodes if isinstance(node, ast.Subscript)]
    if not all(isinstance(place.value, ast.Name) for place in places):
        return None
    arrays = frozenset(_owner(place) for place in places)
    written = frozenset(_owner(place) for place in places if _is_bound(place))
    if not written or written & bound or loop.target.id in bound or loop.orelse:
        return None
    if not _has_elements_of_its_own(loop.target.id, written, nodes, places):
        return None
    if not _Reading(frozenset(bound), modules).block(loop.body, frozenset()):
        return None
    return Body(arrays, written, frozenset(bound) | {loop.target.id})


def _owner(place: ast.Subscript) -> str:
    assert isinstance(place.value, ast.Name)
    return place.value.id


def _is_bound(node: ast.Name | ast.Subscript) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _has_elements_of_its_own(
    index: str, written: frozenset[str], nodes: Sequence[ast.AST], places: Sequence[ast.Subscript]
) -> bool:
    """Return whether all uses of each written array have the index in one and the same place."""
    for name in written:
        own = [_parts(place) for place in places if _owner(place) == name]
        mentions = sum(1 for node in nodes if isinstance(node, ast.Name) and node.id == name)
        at = {
            position
            for position in range(min(len(parts) for parts in own))
            if all(_is_name(parts[position], index) for parts in own)
        }
        if mentions != len(own) or not at:
            return False
    return True


def _parts(place: ast.Subscript) -> list[ast.expr]:
    return place.slice.elts if isinstance(place.slice, ast.Tuple) else [place.slice]


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


@dataclass(frozen=True, slots=True)
class _Reading:
    """Follows statements in order: names that the body binds are read only after that.

    Attributes
    ----------
    bound : frozenset of str
        Every name that the body binds somewhere.
    modules : frozenset of str
    """

    bound: frozenset[str]
    modules: frozenset[str]

    def block(self, statements: Sequence[ast.stmt], known: frozenset[str]) -> bool:
        for statement in statements:
            after = self._statement(statement, known)
            if after is None:
                return False
            known = after
        return True

    def _statement(self, node: ast.stmt, known: frozenset[str]) -> frozenset[str] | None:
        """Return the names that are bound after a statement; None where it is not understood."""
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                return known | {name} if self._expression(value, known) else None
            case ast.Assign(targets=[ast.Subscript(slice=place)], value=value):
                fine = self._expression(value, known) and self._expression(place, known)
                return known if fine else None
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                return known if name in known and self._expression(value, known) else None
            case ast.AugAssign(target=ast.Subscript(slice=place), value=value):
                fine = self._expression(value, known) and self._expression(place, known)
                return known if fine else None
            case ast.For(target=ast.Name(id=name), iter=over, body=body, orelse=[]):
                fine = _is_range(over) and self._expression(over, known)
                return known if fine and self.block(body, known | {name}) else None
            case ast.If(test=test, body=body, orelse=orelse):
                fine = self._expression(test, known)
                fine = fine and self.block(body, known) and self.block(orelse, known)
                return known if fine else None
            case ast.Pass():
                return known
        return None

    def _expression(self, node: ast.expr, known: frozenset[str]) -> bool:
        match node:
            case ast.Name(id=name):
                return name in known or name not in self.bound
            case ast.Call(func=function, args=args, keywords=[]):
                return self._is_pure(function) and all(self._expression(a, known) for a in args)
            case ast.Attribute(value=ast.Name() as owner, attr=attribute):
                return attribute in _CONSTANTS and self._expression(owner, known)
            case ast.Constant():
                return True
            case (
                ast.BinOp()
                | ast.UnaryOp()
                | ast.BoolOp()
                | ast.Compare()
                | ast.IfExp()
                | ast.Subscript()
                | ast.Tuple()
                | ast.Slice()
            ):
                return all(self._expression(part, known) for part in _operands(node))
        return False

    def _is_pure(self, function: ast.expr) -> bool:
        match function:
            case ast.Name(id=name):
                return name in PURE_BUILTINS and name not in self.bound
            case ast.Attribute(value=ast.Name(id=module), attr=name):
                return module in self.modules and name in _PURE_FUNCTIONS
        return False


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _is_name(node.func, "range")


def _operands(node: ast.expr) -> Iterator[ast.expr]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child
