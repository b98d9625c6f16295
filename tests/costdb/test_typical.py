"""What is typical of visits: between a median, for one visit, and a mean, for many."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from statistics import fmean, median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costdb.calibration.fitting import repetition, repetition_of
from costdb.calibration.section import Point, Timing, typical, typical_of_launches
from costdb.evaluate import Priced, Ratio, compare, evaluate_price, with_repetition
from costdb.expr import num, sym
from costdb.machines import to_float
from costdb.pricing import ALONE
from costdb.quantity import Provenance, Quantity

TIMES = st.floats(0.1, 1e6)


@given(st.lists(TIMES, min_size=5, max_size=30), TIMES)
def test_of_five_no_single_one_can_carry_it_away(times: list[float], far: float) -> None:
    others = times[1:]
    assert min(others) * (1 - 1e-12) <= typical([us] for us in (far, *others))
    assert typical([us] for us in (far, *others)) <= max(others) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("count", "out"), [(1, 0), (4, 0), (5, 1), (12, 1), (13, 2), (20, 2), (21, 3)]
)
def test_one_in_eight_is_left_out_at_either_end(count: int, out: int) -> None:
    visits = [[10.0**place] for place in range(count)]
    kept = [one for (one,) in visits][out : count - out]
    assert typical(visits) == pytest.approx(fmean(kept), rel=1e-12)


@pytest.mark.parametrize("share", [0.3, 0.45, 0.55, 0.7])
def test_two_speeds_count_by_their_shares(share: float) -> None:
    source = random.Random(7)
    visits = [[1.0 + (source.random() < share)] * 4 for _ in range(4000)]
    # one in eight is left out at either end, which pulls shares apart by no more than that
    assert typical(visits) == pytest.approx(1 + (share - 0.125) / 0.75, abs=0.03)


@given(st.lists(st.floats(1.0, 2.0), min_size=1, max_size=9))
def test_launches_at_speeds_of_a_processor_all_count(times: list[float]) -> None:
    assert typical_of_launches(times) == fmean(times)


@given(st.lists(st.floats(1.0, 2.0), min_size=2, max_size=9), st.floats(6.1, 1e6))
def test_a_launch_that_others_held_up_does_not_count(times: list[float], held_up: float) -> None:
    # the median of all is one of the others, at most twice the least
    assert typical_of_launches([held_up, *times]) == pytest.approx(fmean(times))


@given(st.lists(TIMES, min_size=1, max_size=9))
def test_what_launches_say_lies_between_the_least_and_three_medians(times: list[float]) -> None:
    found = typical_of_launches(times)
    assert min(times) * (1 - 1e-12) <= found <= 3 * median(times) * (1 + 1e-12)


# Intervals of prices that several residuals enter: squares of what is independent add.


CLASSES = ("a", "b", "c")


def residual(low: float, high: float) -> Quantity:
    return Quantity(1.0, low, high, "1", Provenance.MEASURED, "test", independent=True)


def rate(low: float, value: float, high: float) -> Quantity:
    return Quantity(value, low, high, "us", Provenance.MEASURED, "test")


def priced(shares, residuals, rates) -> Priced:
    """Return shares of three classes, each a rate of its own times its residual."""
    total = num(0)
    coefficients = {}
    for name, share in zip(CLASSES, shares, strict=True):
        total = total + share * sym(f"m.{name}") * sym(f"m.{name}.residual")
        coefficients[f"m.{name}"] = rates[name]
        coefficients[f"m.{name}.residual"] = residuals[name]
    return Priced(total, (), coefficients)


shares = st.tuples(*[st.integers(0, 20)] * 3).filter(any)
residuals = st.fixed_dictionaries(
    {
        name: st.tuples(st.floats(0.3, 1.0), st.floats(1.0, 3.0)).map(lambda ends: residual(*ends))
        for name in CLASSES
    }
)
certain = {name: rate(2.0, 2.0, 2.0) for name in CLASSES}
uncertain = {name: rate(1.0, 2.0, 4.0) for name in CLASSES}


@given(shares, residuals)
@settings(max_examples=60, deadline=None)
def test_squares_of_independent_deviations_add(shares, residuals) -> None:
    found = evaluate_price(priced(shares, residuals, certain), {})
    parts = {name: 2e-6 * share for name, share in zip(CLASSES, shares, strict=True)}
    middle = sum(parts.values())
    below = math.hypot(*(parts[name] * (1 - residuals[name].low) for name in CLASSES))
    above = math.hypot(*(parts[name] * (residuals[name].high - 1) for name in CLASSES))
    assert found.mid == pytest.approx(middle)
    assert found.low == pytest.approx(middle - below)
    assert found.high == pytest.approx(middle + above)


@given(shares, residuals)
@settings(max_examples=40, deadline=None)
def test_ends_lie_between_each_deviation_alone_and_all_of_them_together(shares, residuals) -> None:
    price = priced(shares, residuals, uncertain)
    found = evaluate_price(price, {})
    dependent = {
        name: replace(quantity, independent=False) for name, quantity in price.coefficients.items()
    }
    together = evaluate_price(Priced(price.microseconds, (), dependent), {})
    assert together.low <= found.low * (1 + 1e-12)
    assert found.high <= together.high * (1 + 1e-12)
    for name in CLASSES:
        calm = {one: residuals[one] if one == name else residual(1, 1) for one in CLASSES}
        alone = evaluate_price(priced(shares, calm, uncertain), {})
        assert found.low <= alone.low * (1 + 1e-12)
        assert alone.high <= found.high * (1 + 1e-12)


@given(shares, shares, residuals)
@settings(max_examples=40, deadline=None)
def test_a_ratio_is_narrower_than_at_its_worst_corner_and_one_of_equals_is_one(
    above, below, residuals
) -> None:
    before, after = priced(above, residuals, certain), priced(below, residuals, certain)
    found = compare(before, after, {})
    dependent = {
        name: replace(quantity, independent=False) for name, quantity in before.coefficients.items()
    }
    together = compare(
        Priced(before.microseconds, (), dependent), Priced(after.microseconds, (), dependent), {}
    )
    assert found.low <= found.mid <= found.high
    assert found.mid == pytest.approx(together.mid)
    assert compare(before, before, {}).high == pytest.approx(1)


# Two launches of one program differ, and no ratio of two programs is surer than that.


ends = st.floats(1.0, 3.0)


def factor(far: float) -> Quantity:
    return Quantity(1.0, 1 / far, far, "1", Provenance.MEASURED, "t", "", True)


def timing(*launches: float) -> Timing:
    return Timing(Point("p", {}), tuple(((us,),) for us in launches))


@given(ends)
def test_of_equal_programs_is_left_what_two_launches_show(far: float) -> None:
    found = with_repetition(Ratio(1.0, 1.0, 1.0), [factor(far)], [factor(far)])
    assert (found.low, found.mid, found.high) == pytest.approx((1 / far, 1.0, far))


@given(st.floats(0.1, 10), ends, ends, ends, ends)
def test_intervals_widen_and_keep_their_middle(mid, below, above, one, other) -> None:
    given_ratio = Ratio(mid / below, mid, mid * above)
    found = with_repetition(given_ratio, [factor(one)], [factor(other)])
    assert found.mid == mid
    assert found.low <= given_ratio.low * (1 + 1e-12)
    assert found.high >= given_ratio.high * (1 - 1e-12)
    # the squares of independent deviations add
    own = (math.log(one) ** 2 + math.log(other) ** 2) / 2
    assert math.log(found.high / mid) ** 2 == pytest.approx(math.log(above) ** 2 + own, abs=1e-9)
    assert math.log(mid / found.low) ** 2 == pytest.approx(math.log(below) ** 2 + own, abs=1e-9)


@pytest.mark.parametrize("ratio", [Ratio(0.0, 1.0, 2.0), Ratio(0.5, 1.0, math.inf)])
def test_a_ratio_without_bounds_stays(ratio: Ratio) -> None:
    assert with_repetition(ratio, [factor(1.1)], [factor(1.1)]) == ratio


@given(st.integers(0, 10**6), st.floats(0.001, 0.2))
@settings(max_examples=20, deadline=None)
def test_the_interval_holds_nine_in_ten_ratios_of_two_launches(seed: int, sigma: float) -> None:
    """What a calibration of some points says holds for launches of other programs."""
    draw = random.Random(seed)

    def launch() -> float:
        return math.exp(draw.gauss(0, sigma))

    stated = repetition_of([timing(*(launch() for _ in range(3))) for _ in range(400)])
    assert isinstance(stated, dict)
    far = factor(to_float(stated["high"]))
    found = with_repetition(Ratio(2.0, 2.0, 2.0), [far], [far])
    inside = sum(found.low <= 2 * launch() / launch() <= found.high for _ in range(2000))
    assert 0.84 < inside / 2000 < 0.96


def test_one_launch_says_nothing_of_others() -> None:
    assert repetition_of([timing(3.0), timing()]) is None
    assert repetition(ALONE, [timing(3.0)]) == {}


def test_of_a_single_launch_its_visits_tell() -> None:
    point = Point("wait", {})
    alone = repetition_of([Timing(point, (((1.0, 1.0), (1.5,)),))])
    apart = repetition_of([Timing(point, (((1.0,),), ((1.5,),)))])
    assert isinstance(alone, dict) and alone == apart and alone["high"] == 1.5
    assert repetition_of([Timing(point, (((1.0,),),))]) is None
