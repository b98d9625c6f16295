"""Conditions: what evaluating them needs and does, and how they come out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import libcst as cst

from advisor.frontend.expressions.arrays import value_of
from advisor.frontend.expressions.indices import bound_to_number, scalar
from advisor.frontend.naming.scope import Scope
from advisor.frontend.naming.written_out import all_items, is_of_literals
from advisor.frontend.syntax.guard import NotUnderstood
from advisor.frontend.syntax.trees import parts_of
from advisor.ir.signs import known_non_negative
from advisor.ir.statements import ScalarBind, Statement
from advisor.ir.values import Read, Scalar
from advisor.source import Span
from costdb.expr import Expr, equal, less, less_equal, logical_and, logical_not, logical_or, num

CONDITION = "<condition>"
"""The name under which a number is bound that only a condition uses."""

_METADATA = frozenset({"shape", "ndim", "dtype", "size", "itemsize", "nbytes", "flags"})
_PURE = frozenset({"len", "isinstance", "min", "max", "int", "float", "bool", "abs", "round"})
_OF_METADATA = frozenset({"len", "isinstance"})


def is_inert(node: cst.CSTNode, scope: Scope) -> bool:
    """Return whether evaluating an expression reads no array's elements and does nothing else."""
    match node:
        case cst.Name(value=name):
            return not scope.is_array(name)
        case cst.Attribute(value=cst.Name()) if node.attr.value in _METADATA:
            return True
        case cst.Call(func=cst.Name(value=name)) if name in _PURE and not scope.not_builtin(name):
            named = all(isinstance(argument.value, cst.Name) for argument in node.args)
            if named and name in _OF_METADATA:
                return True
        case cst.Call() | cst.NamedExpr() | cst.Await() | cst.Yield():
            return False
    return all(is_inert(part, scope) for part in parts_of(node))


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


def truth(test: cst.BaseExpression, scope: Scope) -> Expr | None:
    """Return 1 where a condition on whole numbers is true and 0 elsewhere; None for any other.

    Sizes and loop indices are whole numbers that are known as expressions, so a condition on them
    is no matter of probability.
    """
    match test:
        case cst.Comparison():
            return _compared(test, scope)
        case cst.BooleanOperation(left=left, operator=operator, right=right):
            first, second = truth(left, scope), truth(right, scope)
            if first is None or second is None:
                return None
            join = logical_and if isinstance(operator, cst.And) else logical_or
            return join(first, second)
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            inverse = truth(inner, scope)
            return None if inverse is None else logical_not(inverse)
    return None


def _compared(test: cst.Comparison, scope: Scope) -> Expr | None:
    nodes = [test.left, *(part.comparator for part in test.comparisons)]
    if len(nodes) == 2 and all(isinstance(node, cst.Tuple) for node in nodes):
        return _same_tuples(test.comparisons[0].operator, nodes, scope)
    try:
        values = [scalar(node, scope) for node in nodes]
    except NotUnderstood:
        return None
    found = num(1)
    for part, (left, right) in zip(test.comparisons, pairwise(values), strict=True):
        one = _relation(part.operator, left, right, scope)
        if one is None:
            return None
        found = logical_and(found, one)
    return found


def _same_tuples(
    operator: cst.BaseCompOp, nodes: Sequence[cst.BaseExpression], scope: Scope
) -> Expr | None:
    """Return whether two written-out tuples of whole numbers are equal, or differ."""
    columns = all_items(nodes, scope)
    if columns is None or not isinstance(operator, cst.Equal | cst.NotEqual):
        return None
    same = num(len(columns[0]) == len(columns[1]))
    try:
        for left, right in zip(*columns, strict=False):
            same = logical_and(same, equal(scalar(left, scope), scalar(right, scope)))
    except NotUnderstood:
        return None
    return same if isinstance(operator, cst.Equal) else logical_not(same)


def _relation(operator: cst.BaseCompOp, left: Expr, right: Expr, scope: Scope) -> Expr | None:
    match operator:
        case cst.Equal():
            return equal(left, right)
        case cst.NotEqual():
            return logical_not(equal(left, right))
        case cst.GreaterThan() | cst.GreaterThanEqual():
            left, right = right, left
    strict = isinstance(operator, cst.LessThan | cst.GreaterThan)
    if not strict and not isinstance(operator, cst.LessThanEqual | cst.GreaterThanEqual):
        return None
    # known for all sizes of at least 1, so that no price needs to ask
    if known_non_negative(right - left - (1 if strict else 0), scope.minima):
        return num(1)
    if known_non_negative(left - right - (0 if strict else 1), scope.minima):
        return num(0)
    return less(left, right) if strict else less_equal(left, right)


# What the names of a loop over written-out values denote in one of its iterations.


def bind_item(name: str, node: cst.BaseExpression, scope: Scope) -> None:
    """Let a name denote what is written: a number, a tuple of them, an array or part of one.

    Raises
    ------
    NotUnderstood
        For anything that is computed, which would have been before the first iteration.
    """
    if scope.has_array(name):
        raise NotUnderstood(f"`{name}` is an array elsewhere and goes through a loop's values here")
    scope.forget(name)
    scope.written_out.pop(name, None)
    if isinstance(node, cst.SimpleString):
        return
    if is_of_literals(node):
        scope.written_out[name] = node
        return
    if bound_to_number(name, node, scope):
        return
    value = value_of(node, scope)
    if isinstance(value, Scalar):
        scope.bind_number(name, value.dtype)
    elif isinstance(value, Read) and scope.type_of(value).extents:
        scope.bind_view(name, value)
    else:
        raise NotUnderstood("a loop over values that are computed")
