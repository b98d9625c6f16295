"""Evaluation against brute force, at one point and at many, short ranges and long ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from costdb.evaluate import reduce_price
from costdb.expr import (
    Expr,
    ExprError,
    ceil_div,
    evaluate,
    maximum,
    maximum_over,
    num,
    parse,
    summation,
    sym,
)
from costdb.expr.evaluate import STEPS, Evaluator
from costdb.expr.functions import Comparison, Conditional, MaxOver, Sum
from costdb.expr.nodes import Division, Pow
from costdb.expr.polynomials import by_products
from tests.costdb.expr.brute_force import brute_force
from tests.costdb.expr.expr_strategies import NAMES, bindings, expressions

ERRORS = (ZeroDivisionError, ValueError, AssertionError)


def about(value: object) -> object:
    return pytest.approx(float(value), rel=1e-11, abs=1e-11)  # type: ignore[arg-type]


def decides_by_quotients(expr: Expr, within: bool = False) -> bool:
    """Tell whether a decision, or a rounding, is over numbers that a float may not hold."""
    decides = within or isinstance(expr, Comparison | Division)
    tests = [expr.test] if isinstance(expr, Conditional) else []
    numbers = [getattr(expr, one, 0) for one in ("value", "constant", "coefficient")]
    if within and any(bin(Fraction(one).denominator).count("1") > 1 for one in numbers):
        return True
    if within and isinstance(expr, Pow) and expr.exponent == num(-1):
        return True
    return any(decides_by_quotients(child, decides or child in tests) for child in expr.children)


@given(expressions, bindings)
@settings(max_examples=120, deadline=None)
def test_values_are_those_by_definition(expr: Expr, values: dict[str, int]) -> None:
    assume(not decides_by_quotients(expr))
    try:
        expected = brute_force(expr, values)
    except ERRORS:
        with pytest.raises(ExprError):
            evaluate(expr, values)
        return
    found = evaluate(expr, values)
    assert found == about(expected)
    if isinstance(found, int):
        assert found == expected


@given(expressions, st.sampled_from([Sum, MaxOver]), st.integers(-9, 9), st.integers(-1, 40))
@settings(max_examples=100, deadline=None)
def test_any_body_over_a_range_is_summed_term_by_term(
    body: Expr, kind: type[Sum], low: int, length: int
) -> None:
    assume(not decides_by_quotients(body))
    values = dict(zip(NAMES[1:], (3, -2), strict=True))
    expr = kind(NAMES[0], num(low), num(low + length - 1), body)
    try:
        expected = brute_force(expr, values)
    except ERRORS:
        return
    assert evaluate(expr, values) == about(expected)


def test_sums_of_so_many_terms_are_exact() -> None:
    expr = parse("sum(k = 0, N - 1) (k % P)*(k // P)")
    for n in (1, STEPS - 1, STEPS):
        expected = sum((k % 7) * (k // 7) for k in range(n))
        assert evaluate(expr, {"N": n, "P": 7}) == expected


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("sum(k = 0, N - 1) (k % P)*(k // P)", lambda k, n: (k % 7) * (k // 7)),
        ("sum(k = 0, N - 1) ((k % 6 == 0)*100 + 1)", lambda k, n: (k % 6 == 0) * 100 + 1),
        ("sum(k = 0, N - 1) log2(k + 1)", lambda k, n: math.log2(k + 1)),
        ("sum(k = 0, N - 1) min(k*k, 10*N)", lambda k, n: min(k * k, 10 * n)),
        ("sum(k = 0, N - 1) max(0, k - N//2)", lambda k, n: max(0, k - n // 2)),
    ],
)
def test_longer_sums_are_estimated(text: str, term: Callable[[int, int], float]) -> None:
    """Within what independent samples of the most uneven of them would be off by: 2.1 / 64."""
    for n in (STEPS + 1, 10_007, 262_144, 1_000_000):
        expected = sum(term(k, n) for k in range(n))
        assert evaluate(parse(text), {"N": n, "P": 7}) == pytest.approx(expected, rel=2.1 / 64)


def test_longer_nests_are_estimated() -> None:
    nest = parse("sum(i = 1, N) sum(j = 1, i % P) (i*j) % 5")
    expected = sum(i * j % 5 for i in range(1, 9001) for j in range(1, i % 11 + 1))
    assert evaluate(nest, {"N": 9000, "P": 11}) == pytest.approx(expected, rel=0.02)
    triangle = parse("sum(i = 0, N - 1) sum(j = 0, i) min(j, 50)")
    expected = sum(min(j, 50) for i in range(3000) for j in range(i + 1))
    assert evaluate(triangle, {"N": 3000}) == pytest.approx(expected, rel=0.02)


def test_a_sum_of_any_length_takes_a_bounded_time() -> None:
    assert evaluate(parse("sum(i = 1, N) log2(i)"), {"N": 10**15}) > 10**15 * 48
    assert evaluate(parse("max(i = 1, N) (i // 3 + i % 2)"), {"N": 3 * 10**15}) == 10**15


@given(st.integers(1, 10**15), st.integers(1, 10**6), st.sampled_from((-1, 0, 1)))
def test_block_boundaries_are_exact(size: int, ranks: int, beside: int) -> None:
    total = size * ranks + beside
    expected = -(-total // ranks) + total // ranks + total % ranks
    block = parse("ceil(N/P) + N // P + N % P")
    assert evaluate(block, {"N": total, "P": ranks}) == expected


def test_fractions_of_a_block_are_exact() -> None:
    # 0.1*N reaches a whole number exactly where floats fall short of it.
    tenth = parse("floor(N*0.1*3/0.3)")
    assert [evaluate(tenth, {"N": n}) for n in range(50)] == list(range(50))
    assert evaluate(parse("N*0.1 + N*0.2 == 0.3"), {"N": 1}) == 1
    cubes = parse("(N**3/3 + N**2/2 + N/6) // 1")
    for n in range(200):
        assert evaluate(cubes, {"N": n}) == sum(i * i for i in range(n + 1))


A, B, N = sym("a"), sym("b"), sym("n")
FORMULAS = (
    maximum(A * N + 3, B * N - A) / 7 + N * B,
    A / B + B / A,
    summation("i", 1, N, maximum(A * sym("i"), B)),
    summation("i", 1, N, A * (sym("i") % 3) + B * ceil_div(sym("i"), 4)),
    maximum_over("i", 1, N, A * (sym("i") % 3) - B),
)
VALUES = st.one_of(st.integers(0, 4), st.floats(0, 4))
POINTS = st.lists(
    st.fixed_dictionaries({"a": VALUES, "b": VALUES, "n": st.integers(0, 12)}),
    min_size=1,
    max_size=8,
)


@given(st.lists(st.sampled_from(FORMULAS), min_size=1, max_size=3), POINTS)
def test_a_point_has_the_values_that_it_has_alone(
    formulas: list[Expr], points: list[dict[str, int | float]]
) -> None:
    evaluator = Evaluator(formulas)
    for point in points:
        try:
            alone = [evaluate(formula, point) for formula in formulas]
        except ExprError as error:
            with pytest.raises(ExprError, match=str(error)):
                evaluator.at(point)
        else:
            assert evaluator.at(point) == pytest.approx(alone, rel=1e-12)


@given(st.one_of(expressions, st.sampled_from(FORMULAS)), bindings, POINTS)
def test_a_price_at_sizes_is_a_function_of_its_coefficients(
    expr: Expr, sizes: dict[str, int], points: list[dict[str, int | float]]
) -> None:
    coefficients = frozenset({"P", "m.k", "a", "b"})
    sizes = {**sizes, "n": 5}
    for point in points:
        values = {name: point.get(name[-1], point["a"]) for name in coefficients}
        try:
            alone = evaluate(expr, {**sizes, **values})
            reduced = reduce_price(expr, sizes, coefficients)
            found = reduced.at(values)
        except ExprError:
            continue
        assert found == pytest.approx(float(alone), rel=1e-9, abs=1e-9)


@given(expressions, bindings, st.sampled_from(NAMES), st.lists(st.integers(1, 9), min_size=1))
def test_a_column_holds_the_values_of_its_points(
    expr: Expr, values: dict[str, int], variable: str, column: list[int]
) -> None:
    points = [{**values, variable: value} for value in column]
    try:
        alone = [evaluate(expr, point) for point in points]
    except ExprError:
        with pytest.raises(ExprError):
            Evaluator((expr,)).along(variable, column, values)
    else:
        (together,) = Evaluator((expr,)).along(variable, column, values)
        assert together == pytest.approx(alone, rel=1e-12)


@given(POINTS)
@example([{"a": 0.5, "b": 2.0, "n": 9}])
def test_amounts_are_what_coefficients_are_multiplied_by(
    points: list[dict[str, int | float]],
) -> None:
    expr = parse("sum(i = 1, n, a*(i % 3) + if(i < 5, a*b*i, b) + i // 2)")
    amounts = by_products(expr, frozenset("ab"))
    assert amounts is not None
    for point in points:
        products = {
            (): 1,
            ("a",): point["a"],
            ("b",): point["b"],
            ("a", "b"): point["a"] * point["b"],
        }
        total = sum(evaluate(amount, point) * products[names] for names, amount in amounts.items())
        assert evaluate(expr, point) == pytest.approx(total, rel=1e-12)
    assert by_products(parse("sum(i = 1, n, max(a, i))"), frozenset("a")) is None
