"""Conditions: what evaluating them needs and does, and how they come out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise

import libcst as cst

from advisor.frontend.expressions.arrays import as_mask, value_of
from advisor.frontend.expressions.indices import Known, bound_to_number, known
from advisor.frontend.naming.scope import Scope
from advisor.frontend.syntax.guard import NotUnderstood
from advisor.frontend.syntax.trees import parts_of
from advisor.ir.signs import known_non_negative
from advisor.ir.statements import ScalarBind, Statement
from advisor.ir.values import Read, Scalar, Value
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


def mask_of(test: cst.BaseExpression, scope: Scope) -> Value:
    """Return where a condition on elements holds, as booleans: a number holds where it is not 0.

    Raises
    ------
    NotUnderstood
        For anything outside the understood language.
    """
    return as_mask(value_of(test, scope), scope)


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
    sides = [known(node, scope) for node in (test.left, *(c.comparator for c in test.comparisons))]
    found = num(1)
    for part, (left, right) in zip(test.comparisons, pairwise(sides), strict=True):
        one = _relation(part.operator, left, right, scope)
        if one is None:
            return None
        found = logical_and(found, one)
    return found


def _relation(operator: cst.BaseCompOp, left: Known, right: Known, scope: Scope) -> Expr | None:
    if isinstance(operator, cst.Equal | cst.NotEqual):
        same = _same(left, right)
        differ = isinstance(operator, cst.NotEqual)
        return logical_not(same) if differ and same is not None else same
    if not isinstance(left, Expr) or not isinstance(right, Expr):
        return None
    if isinstance(operator, cst.GreaterThan | cst.GreaterThanEqual):
        left, right = right, left
    elif not isinstance(operator, cst.LessThan | cst.LessThanEqual):
        return None
    strict = isinstance(operator, cst.LessThan | cst.GreaterThan)
    # known for all sizes of at least 1, so that no price needs to ask
    if known_non_negative(right - left - (1 if strict else 0), scope.minima):
        return num(1)
    if known_non_negative(left - right - (0 if strict else 1), scope.minima):
        return num(0)
    return less(left, right) if strict else less_equal(left, right)


def _same(left: Known, right: Known) -> Expr | None:
    """Return whether two whole numbers are equal, or two written-out tuples of them."""
    if isinstance(left, Expr) and isinstance(right, Expr):
        return equal(left, right)
    if not isinstance(left, tuple) or not isinstance(right, tuple):
        return None
    parts = [_same(one, other) for one, other in zip(left, right, strict=False)]
    found = [part for part in parts if part is not None]
    same = num(len(left) == len(right))
    return reduce(logical_and, found, same) if len(found) == len(parts) else None


# What the names of a loop over written-out values denote in one of its iterations.


def bind_item(name: str, item: Known, scope: Scope) -> None:
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
    if isinstance(item, tuple):
        scope.written_out[name] = item
        return
    if isinstance(item, cst.SimpleString) or bound_to_number(name, item, scope):
        return
    value = value_of(item, scope)
    if isinstance(value, Scalar):
        scope.bind_number(name, value.dtype)
    elif isinstance(value, Read) and scope.type_of(value).extents:
        scope.bind_view(name, value)
    else:
        raise NotUnderstood("a loop over values that are computed")
