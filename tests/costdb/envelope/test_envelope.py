"""Polynomials below and above a formula hold it throughout their region, and tell the least."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from costdb.envelope.bounding import bounds_of
from costdb.envelope.least import CLOSE, ELSEWHERE, least_in
from costdb.envelope.polynomial import (
    Polynomial,
    added,
    constant,
    multiplied,
    range_over,
    summed,
    value_at,
    variable,
)
from costdb.envelope.region import NotBounded, Region
from costdb.expr import (
    Expr,
    ExprError,
    ceil_div,
    compile_scalar,
    conditional,
    evaluate,
    less,
    maximum,
    minimum,
    num,
    summation,
    sym,
    to_text,
)
from tests.costdb.expr.expr_strategies import NAMES, expressions

N, M, B = sym("N"), sym("M"), sym("b")
boxes = st.fixed_dictionaries(
    dict.fromkeys(NAMES, st.tuples(st.integers(1, 9), st.integers(0, 3), st.integers(0, 3)))
)


def points(box: dict[str, tuple[int, int]]) -> Iterator[dict[str, int]]:
    for point in itertools.product(*(range(low, high + 1) for low, high in box.values())):
        yield dict(zip(box, point, strict=True))


def inside(region: Region, point: dict[str, int]) -> dict[str, object] | None:
    """Return the values of all variables at a point of a region; None outside it."""
    try:
        if any(evaluate(expr, point) != value for expr, value in region.fixed.items()):
            return None
        parts = {name: evaluate(expr, point) for expr, name in region.variables.items()}
    except ExprError:
        return None
    values = {**point, **parts}
    return values if all(value_at(guard, values) > 0 for guard in region.guards) else None


@settings(max_examples=200, deadline=None)
@given(expressions, boxes)
def test_bounds_hold_a_formula_wherever_their_region_is(
    expr: Expr, around: dict[str, tuple[int, int, int]]
) -> None:
    point = {name: value for name, (value, _, _) in around.items()}
    box = {n: (max(1, v - below), v + above) for n, (v, below, above) in around.items()}
    region = Region(dict(point), dict(box))
    try:
        bounds = bounds_of(expr, region)
    except NotBounded:
        return
    assert inside(region, point) is not None
    for at in points(box):
        values = inside(region, at)
        if values is None:
            continue
        try:
            found = evaluate(expr, at)
        except ExprError:
            continue
        lost = 1e-9 * (1 + abs(found)) if isinstance(found, float) else 0
        low, high = value_at(bounds.low, values), value_at(bounds.high, values)
        assert low - lost <= found <= high + lost, to_text(expr)


def priced(element: float, line: float, step: float) -> Expr:
    """A price like those of array programs: lines, a cache that is left, a sum of passes."""
    touched = maximum(N - sym("k"), 0) * M * 8
    lines = ceil_div(touched, 64)
    far = conditional(less(20_000, touched + 8 * N * M), lines, 0)
    passes = summation("k", 1, B - 1, lines * num(line) + far * num(line))
    return N * M * num(element) + passes + minimum(N, M) * num(step) + num(1)


prices = st.builds(
    priced, st.floats(0.001, 0.1), st.floats(0, 0.2), st.sampled_from([0.0, 0.5, 3.0])
)


formulas_of_some = st.lists(prices, min_size=2, max_size=3)
SIZES = ("b", "N", "M")


@settings(max_examples=30, deadline=None)
@given(formulas_of_some, st.integers(1, 30), st.tuples(*[st.integers(128, 400)] * 2), st.randoms())
def test_the_least_of_the_bounds_is_the_least_of_the_formulas(
    formulas: list[Expr], b: int, sides: tuple[int, int], rng: random.Random
) -> None:
    check_least(formulas, (b, *sides), rng)


@settings(max_examples=30, deadline=None)
@given(formulas_of_some, st.tuples(*[st.integers(1, 40)] * 3), st.randoms())
def test_where_loops_end_early_it_is_the_least_or_nothing(
    formulas: list[Expr], sizes: tuple[int, int, int], rng: random.Random
) -> None:
    try:
        check_least(formulas, sizes, rng)
    except NotBounded:
        event("nothing")


def check_least(formulas: list[Expr], sizes: tuple[int, int, int], rng: random.Random) -> None:
    """Compare what is compiled for sizes, and for others near them, with the full formulas."""
    point = dict(zip(SIZES, sizes, strict=True))
    box = {name: (max(1, size // 2), 2 * size) for name, size in point.items()}
    least = least_in(formulas, [], SIZES, point, box, 1.01)
    full = [compile_scalar(formula, SIZES) for formula in formulas]
    assert least(*sizes) != ELSEWHERE
    for _ in range(40):
        at = [rng.randint(*box[name]) for name in SIZES]
        place = least(*at)
        times = [float(one(*at)) for one in full]
        if place == 0:
            assert all(time > 1.01 * times[0] for time in times[1:])
        elif place > 0:
            assert times[place] == min(times)
            assert times[0] > 1.01 * times[place]
        else:
            assert place in (CLOSE, ELSEWHERE)


def test_one_piece_serves_sizes_far_from_the_ones_it_was_made_for() -> None:
    box = {"b": (2, 64), "N": (256, 511), "M": (256, 511)}
    dear, cheap = priced(0.01, 0.02, 0.0), priced(0.01, 0.01, 0.0)
    least = least_in([dear, cheap], [], SIZES, {"b": 9, "N": 300, "M": 400}, box, 1.01)
    answers = {least(b, n, m) for b in (8, 30, 64) for n in (256, 400, 511) for m in (256, 500)}
    assert answers == {1}


def test_a_region_ends_where_a_range_is_left_and_where_nothing_is_known() -> None:
    names, box = ("N",), {"N": (1, 100)}
    least = least_in([N, 2 * N], [(N, 1, 50)], names, {"N": 9}, box, 1.01)
    assert [least(n) for n in (1, 49, 51)] == [0, 0, ELSEWHERE]
    with pytest.raises(NotBounded):
        least_in([N, 2 * N], [(N, 1, 50)], names, {"N": 60}, box, 1.01)
    with pytest.raises(NotBounded):
        least_in([N ** (N / 2), N], [], names, {"N": 9}, box, 1.01)
    with pytest.raises(NotBounded):
        least_in([N - 200, N], [], names, {"N": 9}, box, 1.01)


polynomials = st.lists(
    st.tuples(st.sampled_from(["x", "y"]), st.integers(0, 3), st.fractions(max_denominator=9)),
    max_size=4,
)


@settings(max_examples=60, deadline=None)
@given(polynomials, st.integers(-5, 5), st.integers(-1, 6), st.integers(-4, 4))
def test_sums_and_ranges_of_polynomials(
    terms: list[tuple[str, int, object]], low: int, more: int, y: int
) -> None:
    made: Polynomial = {}
    for name, power, weight in terms:
        product = constant(weight)  # type: ignore[arg-type]
        for _ in range(power):
            product = multiplied(product, variable(name))
        made = added(made, product)
    high = low + more
    values = [value_at(made, {"x": x, "y": y}) for x in range(low, high + 1)]
    total = summed(made, "x", constant(low), constant(high))
    assert value_at(total, {"y": y}) == sum(values)
    least, most = range_over(made, {"x": (low, max(low, high)), "y": (-4, 4)})
    assert all(least <= value <= most for value in values)
