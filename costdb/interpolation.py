"""Formulas between the points where they were measured, never beyond them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from costdb.expr import Expr, conditional, evaluate, free_symbols, less_equal


def piecewise_linear(x: Expr, knots: Sequence[tuple[int, Expr]]) -> Expr:
    """Return the formula at `x`, linear between neighbouring knots, constant outside them.

    At a knot it is exactly that knot's formula. The caller marks what lies outside as an
    extrapolation (:class:`costdb.estimate.Domain`). When `x` is a constant only the knots
    around it occur in the result.

    Parameters
    ----------
    x : Expr
        Where the formula is wanted.
    knots : sequence of (int, Expr)
        At least one, by strictly increasing position.
    """
    first, last = knots[0], knots[-1]
    if not free_symbols(x):
        return _at_constant(Fraction(evaluate(x, {})), knots)
    result = last[1]
    for left, right in reversed(list(pairwise(knots))):
        result = conditional(less_equal(right[0], x), result, _between(x, left, right))
    return conditional(less_equal(x, first[0]), first[1], result)


def _at_constant(x: Fraction, knots: Sequence[tuple[int, Expr]]) -> Expr:
    if x <= knots[0][0]:
        return knots[0][1]
    for left, right in pairwise(knots):
        if x == right[0]:
            return right[1]
        if x < right[0]:
            share = (x - left[0]) / (right[0] - left[0])
            return left[1] * (1 - share) + right[1] * share
    return knots[-1][1]


def _between(x: Expr, left: tuple[int, Expr], right: tuple[int, Expr]) -> Expr:
    width = right[0] - left[0]
    return left[1] * ((right[0] - x) / width) + right[1] * ((x - left[0]) / width)
