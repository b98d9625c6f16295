"""What two programs do alike misses alike; what either does beyond it has a miss of its own."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costdb.evaluate import General, Interval, Multilinear, Priced, compare, with_own_misses
from costdb.expr import maximum, num, sym
from costdb.quantity import Provenance, Quantity

RATES, CLASSES = ("m.near", "m.far"), ("m.a.residual", "m.b.residual")
BOX = {name: Interval(2.0, 2.0, 2.0) for name in RATES} | {
    name: Interval(0.8, 1.0, 1.3) for name in CLASSES
}
PRODUCTS = [tuple(sorted((rate, one))) for rate in RATES for one in CLASSES]
amounts = st.lists(st.sampled_from([0.0, 1.0, 2.0, 5.5]), min_size=4, max_size=4).filter(any)


def price(given: list[float]) -> Multilinear:
    return Multilinear({p: a for p, a in zip(PRODUCTS, given, strict=True) if a})


def priced(weight: float, name: str = "m.a.residual", sigma: float = 0.15) -> Priced:
    one = Quantity(
        1.0, 1 - 1.645 * sigma, 1 + 1.645 * sigma, "1", Provenance.MEASURED, "t", "", True
    )
    return Priced(num(weight) * sym(name), (), {name: one})


@given(amounts, amounts, st.floats(0.8, 1.3), st.floats(0.8, 1.3))
def test_with_equal_misses_nothing_changes(above, below, first, second) -> None:
    one, other, box = with_own_misses(price(above), price(below), BOX, CLASSES)
    values = {"a": first, "b": second}
    point = {name: 2.0 if name in RATES else values[name.split(".")[1]] for name in box}
    assert one.at(point) == pytest.approx(price(above).at(point))
    assert other.at(point) == pytest.approx(price(below).at(point))


@given(amounts, amounts)
def test_own_misses_are_of_what_the_other_does_not_do(above, below) -> None:
    one, other, box = with_own_misses(price(above), price(below), BOX, CLASSES)
    assert box.keys() >= one.coefficients | other.coefficients
    for mark, made, mine, theirs in (
        (".above", one, above, below),
        (".below", other, below, above),
    ):
        for name in CLASSES:
            if not all(
                any(a for p, a in zip(PRODUCTS, g, strict=True) if name in p)
                for g in (mine, theirs)
            ):
                continue  # a residual of one of them only has nothing to cancel with
            beyond = sum(
                max(0.0, a - b) for p, a, b in zip(PRODUCTS, mine, theirs, strict=True) if name in p
            )
            own = sum(w for p, w in made.weights.items() if name + mark in p)
            assert own == pytest.approx(beyond)
        # what is not done at all has no part in a price, nor a coefficient that nothing hangs on
        assert all(made.weights.values())


def test_a_ratio_of_equals_is_one_and_of_twice_as_much_is_not_sure() -> None:
    assert compare(priced(3.0), priced(3.0), {}).high == pytest.approx(1)
    twice = compare(priced(6.0), priced(3.0), {})
    assert twice.low < 2 < twice.high
    # half of the work is in both
    apart = compare(priced(6.0), priced(3.0, "m.b.residual"), {})
    assert twice.high / twice.low < apart.high / apart.low


def test_prices_that_are_not_multilinear_share_misses_only_if_they_are_equal() -> None:
    name = "m.a.residual"
    one = General(maximum(sym(name), num(0.9)))
    assert with_own_misses(one, one, BOX, CLASSES) == (one, one, BOX)
    first, second, box = with_own_misses(
        one, General(3 * maximum(sym(name), num(0.9))), BOX, CLASSES
    )
    assert first.coefficients == {f"{name}.above"}
    assert second.coefficients == {name}
    assert box[f"{name}.above"] == box[name]


@given(amounts, st.floats(0.8, 1.3), st.floats(0.8, 1.3))
def test_beside_a_price_that_is_not_multilinear_all_misses_are_own(above, first, second) -> None:
    one, name = price(above), "m.a.residual"
    other = General(maximum(sym(name), num(0.9)))
    made, kept, box = with_own_misses(one, other, BOX, CLASSES)
    assert kept == other
    shared = name in one.coefficients
    assert (f"{name}.above" in made.coefficients) is shared
    assert name not in made.coefficients
    point = {n: 2.0 if n in RATES else first for n in box} | {"m.b.residual": second}
    expected = one.at({**dict.fromkeys(RATES, 2.0), name: first, "m.b.residual": second})
    assert made.at(point) == pytest.approx(expected)


@given(st.floats(0.0, 4.0), st.floats(0.0, 4.0))
@settings(max_examples=15, deadline=None)
def test_the_interval_holds_nine_in_ten_ratios(more: float, less: float) -> None:
    """Both do 2 of work alike; misses of that, and of what either does beyond it, are drawn."""
    draw, sigma = random.Random(1), 0.08
    # the amounts of one product are split by the lesser, so the others are of another rate
    far = {"m.far": Quantity(1.0, 1.0, 1.0, "us", Provenance.MEASURED, "t")}
    both = priced(2.0, sigma=sigma)
    residual = sym("m.a.residual")
    before = Priced(
        both.microseconds + num(more) * residual * sym("m.far"), (), {**both.coefficients, **far}
    )
    after = Priced(both.microseconds + num(less) * residual, (), both.coefficients)
    found = compare(before, after, {})
    inside = 0
    for _ in range(2000):
        alike, mine, other = (draw.gauss(1, sigma) for _ in range(3))
        inside += found.low <= (2 * alike + more * mine) / (2 * alike + less * other) <= found.high
    exact = math.isclose(found.low, found.high)
    assert exact or inside / 2000 > 0.87
