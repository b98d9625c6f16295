"""Plans of supersteps to measure with."""

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from costdb.calibration.supersteps import Kind, Plan, Suite, heights, make_plan

SIZES = heights(12)

kinds = st.sampled_from(list(Kind))


@st.composite
def settings_of_a_plan(draw: st.DrawFn) -> tuple[Kind, int, int, int, int]:
    processors = draw(st.integers(2, 16))
    return (
        draw(kinds),
        draw(st.integers(1, 2_000_000)),
        draw(st.integers(1, processors - 1)),
        processors,
        draw(st.integers(0, 10**6)),
    )


def plan_of(suite: Suite, given_settings: tuple[Kind, int, int, int, int]) -> Plan:
    kind, h, x, processors, seed = given_settings
    return make_plan(suite, kind, h, x, processors, random.Random(seed))


@given(settings_of_a_plan())
def test_exact_plans_keep_to_their_kind(chosen: tuple[Kind, int, int, int, int]) -> None:
    kind, h, x, processors, _ = chosen
    plan = plan_of(Suite.EXACT, chosen)
    share = -(-x * h // processors)
    hr, hw = {
        Kind.LIKE_GATHER: (h, share),
        Kind.LIKE_SCATTER: (share, h),
        Kind.VARY: (h, h),
    }[kind]
    assert (plan.hr, plan.hw, plan.total) == (hr, hw, 2 * x * h)
    assert max(plan.hr, plan.hw) == h
    assert len(plan.reads) == len(plan.writes) == processors


@given(settings_of_a_plan())
def test_random_plans_keep_what_their_suite_promises(
    chosen: tuple[Kind, int, int, int, int],
) -> None:
    exact = plan_of(Suite.EXACT, chosen)
    maxima = plan_of(Suite.SAME_MAXIMA, chosen)
    assert (maxima.hr, maxima.hw) == (exact.hr, exact.hw)
    totals = plan_of(Suite.SAME_TOTALS, chosen)
    assert sum(totals.reads) == sum(exact.reads)
    assert sum(totals.writes) == sum(exact.writes)
    for plan in (exact, maxima, totals):
        assert min(plan.reads + plan.writes) >= 0
        assert plan.hr + plan.hw <= plan.total <= len(plan.reads) * (plan.hr + plan.hw)


def test_heights_cover_the_range_by_ratio() -> None:
    assert (SIZES[0], SIZES[-1], len(SIZES)) == (5_000, 1_900_000, 12)
    ratios = [b / a for a, b in pairwise(SIZES)]
    assert max(ratios) / min(ratios) < 1.001
