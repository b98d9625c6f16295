"""Conditions: what evaluating them needs and does, and how they come out."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from advisor.frontend.arrays import value_of
from advisor.frontend.bindings import NameVisitor
from advisor.frontend.problems import NotUnderstood
from advisor.frontend.scalars import scalar
from advisor.frontend.scope import Scope
from advisor.ir.signs import known_non_negative
from advisor.ir.statements import ScalarBind, Statement
from advisor.ir.values import Scalar
from advisor.source import Span

CONDITION = "<condition>"
"""The name under which a number is bound that only a condition uses."""

_METADATA = frozenset({"shape", "ndim", "dtype", "size", "itemsize", "nbytes", "flags"})
_PURE = frozenset({"len", "isinstance", "min", "max", "int", "float", "bool", "abs", "round"})
_OF_METADATA = frozenset({"len", "isinstance"})


class _Uses(NameVisitor):
    """Names whose values an expression needs, and whether evaluating it may do anything else."""

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self.scope = scope
        self.values: set[str] = set()
        self.acts = False

    def name_seen(self, name: str) -> None:
        self.values.add(name)

    def visit_Attribute(self, node: cst.Attribute) -> bool:  # noqa: N802
        return not (isinstance(node.value, cst.Name) and node.attr.value in _METADATA)

    def visit_Call(self, node: cst.Call) -> bool:  # noqa: N802
        name = node.func.value if isinstance(node.func, cst.Name) else None
        if name not in _PURE or self.scope.not_builtin(name):
            self.acts = True
            return True
        return not (
            name in _OF_METADATA
            and all(isinstance(argument.value, cst.Name) for argument in node.args)
        )

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:  # noqa: N802
        self.acts = True

    def visit_Await(self, node: cst.Await) -> None:  # noqa: N802
        self.acts = True

    def visit_Yield(self, node: cst.Yield) -> None:  # noqa: N802
        self.acts = True


def is_inert(node: cst.BaseExpression, scope: Scope) -> bool:
    """Return whether evaluating an expression reads no array's elements and does nothing else."""
    uses = _Uses(scope)
    node.visit(uses)
    return not uses.acts and not any(map(scope.is_array, uses.values))


def evaluated(test: cst.BaseExpression, scope: Scope, span: Span) -> Sequence[Statement]:
    """Return what it takes to evaluate a condition.

    Raises
    ------
    NotUnderstood
        Where it may do more than read.
    """
    if is_inert(test, scope):
        return ()
    value = value_of(test, scope)
    if isinstance(value, Scalar):
        return ()
    if scope.type_of(value).extents:
        raise NotUnderstood("the truth of a whole array")
    return (ScalarBind(CONDITION, value, span),)


def decided(test: cst.BaseExpression, scope: Scope) -> bool | None:
    """Return how a comparison of sizes comes out for all sizes of at least 1, if it does."""
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return None
    operator = test.comparisons[0].operator
    try:
        left = scalar(test.left, scope)
        right = scalar(test.comparisons[0].comparator, scope)
    except NotUnderstood:
        return None
    if isinstance(operator, cst.GreaterThan | cst.GreaterThanEqual):
        left, right = right, left
    minima = scope.minima
    if isinstance(operator, cst.LessThan | cst.GreaterThan):
        if known_non_negative(right - left - 1, minima):
            return True
        return False if known_non_negative(left - right, minima) else None
    if isinstance(operator, cst.LessThanEqual | cst.GreaterThanEqual):
        if known_non_negative(right - left, minima):
            return True
        return False if known_non_negative(left - right - 1, minima) else None
    return None
