"""What is typical of visits: between a median, for one visit, and a mean, for many."""

from __future__ import annotations

import random
from statistics import fmean, median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costdb.typical import typical, typical_of_launches

TIMES = st.floats(0.1, 1e6)


@given(st.lists(TIMES, min_size=1, max_size=4))
def test_of_few_visits_all_count(times: list[float]) -> None:
    assert typical([us] for us in times) == fmean(sorted(times))


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
