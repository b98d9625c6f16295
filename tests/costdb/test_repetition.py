"""Two launches of one program differ, and no ratio of two programs is surer than that."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costdb.calibration.fitting import repetition, repetition_of
from costdb.calibration.section import Point, Timing
from costdb.estimate import Ratio
from costdb.machines.documents import to_float
from costdb.quantity import Provenance, Quantity
from costdb.repetition import ALONE, with_repetition

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
    from costdb.calibration.fitting import repetition_of
    from costdb.calibration.section import Point, Timing

    point = Point("wait", {})
    alone = repetition_of([Timing(point, (((1.0, 1.0), (1.5,)),))])
    apart = repetition_of([Timing(point, (((1.0,),), ((1.5,),)))])
    assert isinstance(alone, dict) and alone == apart and alone["high"] == 1.5
    assert repetition_of([Timing(point, (((1.0,),),))]) is None
