"""Formulas at many points give at each what they give alone, and exact values stay exact."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costdb.expr import (
    Expr,
    ExprError,
    ceil,
    ceil_div,
    conditional,
    evaluate,
    less,
    log2,
    maximum,
    num,
    summation,
    sym,
)
from costdb.expr.evaluate import Evaluator
from costdb.expr.exact import exact

A, B, N = sym("a"), sym("b"), sym("n")
FORMULAS = (
    maximum(A * N + 3, B * N - A) / 7 + N * B,
    A / B + B / A,
    summation("i", 1, N, maximum(A * sym("i"), B)),
    maximum(A, num(2)) * maximum(B, num(Fraction(1, 3))) + A * B * N,
)
VALUES = st.one_of(
    st.integers(0, 4),
    st.fractions(0, 4, max_denominator=8),
    st.floats(0, 4),
)
POINTS = st.lists(
    st.fixed_dictionaries({"a": VALUES, "b": VALUES, "n": st.integers(0, 12)}),
    min_size=1,
    max_size=8,
)


def told(evaluated: object) -> tuple[str, object]:
    """Return a value with its type, which equal values may not share."""
    return type(evaluated).__name__, evaluated


@given(st.lists(st.sampled_from(FORMULAS), min_size=1, max_size=3), POINTS)
def test_a_point_has_the_values_that_it_has_alone(
    formulas: list[Expr], points: list[dict[str, int | Fraction | float]]
) -> None:
    evaluator = Evaluator(formulas)
    for point in points:
        try:
            alone = [told(evaluate(formula, point)) for formula in formulas]
        except ExprError as error:
            with pytest.raises(ExprError, match=str(error)):
                evaluator.at(point)
        else:
            assert [told(value) for value in evaluator.at(point)] == alone


NUMBERS = st.one_of(st.integers(-(10**20), 10**20), st.fractions(max_denominator=10**6).map(exact))


@given(NUMBERS, st.lists(NUMBERS, min_size=1, max_size=6), st.booleans())
def test_sums_and_products_are_those_of_fractions(
    first: int | Fraction, others: list[int | Fraction], summed: bool
) -> None:
    names = [f"x{place}" for place in range(len(others))]
    formula = num(first)
    total = Fraction(first)
    for name, value in zip(names, others, strict=True):
        formula = formula + sym(name) if summed else formula * sym(name)
        total = total + value if summed else total * value
    found = evaluate(formula, dict(zip(names, others, strict=True)))
    assert told(found) == told(exact(total))
    beside = evaluate(formula * sym("one"), {**dict(zip(names, others, strict=True)), "one": 1.0})
    assert beside == pytest.approx(float(total))


PRICES = st.recursive(
    st.sampled_from((*map(sym, "abmn"), *map(num, (0, 1, Fraction(3, 8), 7)))),
    lambda parts: st.one_of(
        st.tuples(parts, parts).map(lambda two: two[0] + two[1]),
        st.tuples(parts, parts).map(lambda two: two[0] * two[1]),
        st.tuples(parts, parts).map(lambda two: conditional(less(sym("n"), 5), *two)),
        parts.map(lambda one: one * ceil_div(sym("n"), sym("m"))),
        parts.map(lambda one: one / (sym("n") - 2)),
        parts.map(lambda one: one * ceil(log2(sym("n") + 1))),
    ),
    max_leaves=8,
)
