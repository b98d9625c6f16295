"""Two launches of one program differ, and no ratio of two programs is surer than that."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costdb.calibration.fitting import repetition, repetition_of
from costdb.calibration.section import Point, Timing
from costdb.estimate import Priced, Ratio
from costdb.evaluate import compare, evaluate_price
from costdb.expr import num, sym
from costdb.machines import load_machine
from costdb.machines.documents import to_float
from costdb.machines.machine import machine_of
from costdb.pricing import price_process
from costdb.process.terms import Leaf, Sequential
from costdb.quantity import Provenance, Quantity
from costdb.repetition import ALONE, RANKS, SECTION, THREADS, repeats_of, with_repetition
from costdb.work import Fixed, Interpretation, Message, Region

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


def test_of_several_kinds_the_one_that_repeats_worst_counts() -> None:
    ratio = Ratio(0.9, 1.0, 1.2)
    both = [factor(1.05), factor(1.2)]
    assert with_repetition(ratio, both, both) == with_repetition(ratio, both[1:], both[1:])


@pytest.mark.parametrize("ratio", [Ratio(0.0, 1.0, 2.0), Ratio(0.5, 1.0, math.inf)])
def test_a_ratio_without_bounds_stays(ratio: Ratio) -> None:
    assert with_repetition(ratio, [factor(1.1)], [factor(1.1)]) == ratio


def test_nothing_is_added_where_nothing_is_stated() -> None:
    assert with_repetition(Ratio(0.5, 1.0, 1.5), [], []) == Ratio(0.5, 1.0, 1.5)
    assert not load_machine("t3e").section(SECTION)
    assert repeats_of([Interpretation(num(1))], load_machine("t3e")) == ()


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


def test_prices_know_how_far_their_kinds_of_work_repeat() -> None:
    document = dict(load_machine("t3e").document)
    source = next(iter(load_machine("t3e").sources))
    document[SECTION] = {
        kind: {
            "value": 1.0, "low": 1 / far, "high": far, "unit": "1",
            "provenance": "measured", "source": source,
        }
        for kind, far in ((ALONE, 1.1), (RANKS, 1.3), (THREADS, 1.7))
    }  # fmt: skip
    machine = machine_of(document, "test")
    message = Message(Region(8, (num(4),), (num(8),)))
    stated = Leaf(Fixed(num(1)))
    for works, expected in (
        ([stated], ()),
        ([Leaf(Interpretation(num(1)))], (1.1,)),
        ([stated, Leaf(message), Leaf(Interpretation(num(1)))], (1.1, 1.3)),
    ):
        price = price_process(Sequential(tuple(works)), machine)
        assert isinstance(price, Priced)
        assert sorted(one.high for one in price.repeats) == pytest.approx(sorted(expected))
        # a time's own interval has it already, in what its classes leave unexplained
        plain = Priced(price.microseconds, price.terms, price.coefficients, price.domains)
        assert evaluate_price(plain, {}) == evaluate_price(price, {})


def test_a_comparison_owns_what_repeats_badly() -> None:
    time = Quantity(3.0, 2.0, 4.0, "us", Provenance.MEASURED, "t")
    one = Priced(num(2) * sym("m.x"), (), {"m.x": time}, (), (factor(1.2),))
    found = compare(one, one, {})
    assert (found.low, found.mid, found.high) == pytest.approx((1 / 1.2, 1.0, 1.2))


def test_of_a_single_launch_its_visits_tell() -> None:
    from costdb.calibration.fitting import repetition_of
    from costdb.calibration.section import Point, Timing

    point = Point("wait", {})
    alone = repetition_of([Timing(point, (((1.0, 1.0), (1.5,)),))])
    apart = repetition_of([Timing(point, (((1.0,),), ((1.5,),)))])
    assert isinstance(alone, dict) and alone == apart and alone["high"] == 1.5
    assert repetition_of([Timing(point, (((1.0,),),))]) is None
