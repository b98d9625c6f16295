"""Plans to measure with, and fits that recover what made the times."""

import json
import random
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from costdb.lines.regression import FitError
from costdb.smp.fit import (
    GoodFit,
    Measured,
    fit_bad,
    fit_good,
    mean_relative_error,
    predict_bad,
    predict_good,
)
from costdb.smp.suites import Kind, Plan, Suite, SuiteError, heights, make_plan, plans

PUBLISHED = json.loads(
    (Path(__file__).parents[2] / "data" / "smp_power_challenge.json").read_text()
)
CAPACITY = PUBLISHED["cache_capacity_elements"]
SIZES = heights(12)

kinds = st.sampled_from(list(Kind))
random_suites = st.sampled_from([Suite.SAME_MAXIMA, Suite.SAME_TOTALS])


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


def test_a_suite_is_reproducible_and_complete() -> None:
    for suite in Suite:
        made = list(plans(suite, 4, SIZES, seed=7))
        assert made == list(plans(suite, 4, SIZES, seed=7))
        assert len(made) == 3 * len(SIZES) * 3
    assert list(plans(Suite.SAME_MAXIMA, 4, SIZES, 1)) != list(plans(Suite.SAME_MAXIMA, 4, SIZES))


def test_heights_cover_the_range_by_ratio() -> None:
    assert (SIZES[0], SIZES[-1], len(SIZES)) == (5_000, 1_900_000, 12)
    ratios = [b / a for a, b in pairwise(SIZES)]
    assert max(ratios) / min(ratios) < 1.001


@pytest.mark.parametrize(
    ("h", "x", "processors"), [(0, 1, 2), (5, 0, 4), (5, 4, 4), (5, 1, 1), (-3, 1, 2)]
)
def test_plans_that_cannot_be_made_are_refused(h: int, x: int, processors: int) -> None:
    with pytest.raises(SuiteError):
        make_plan(Suite.EXACT, Kind.VARY, h, x, processors, random.Random(0))


@pytest.mark.parametrize("arguments", [(1,), (5, 0), (5, 10, 10)])
def test_heights_of_nothing_are_refused(arguments: tuple[int, ...]) -> None:
    with pytest.raises(SuiteError):
        heights(*arguments)


def measured_by(
    suite: Suite, processors: int, table: Mapping[str, Mapping[str, float]], noise: float
) -> list[Measured]:
    source = random.Random(11)
    found = []
    for plan in plans(suite, processors, SIZES):
        hr, hw, total = plan.hr, plan.hw, plan.total
        piece = table["R0" if max(hr, hw) <= CAPACITY else "R1"]
        amounts = {
            "L": 1,
            "ghr": hr,
            "ghw": hw,
            "gM": total,
            "ghrc": min(hr, CAPACITY),
            "ghrm": max(hr - CAPACITY, 0),
            "ghwc": min(hw, CAPACITY),
            "ghwm": max(hw - CAPACITY, 0),
        }
        time_us = sum(value * amounts[name] for name, value in piece.items())
        found.append(Measured(hr, hw, total, time_us * (1 + noise * source.uniform(-1, 1))))
    return found


@pytest.mark.parametrize("processors", [2, 4, 8, 12])
def test_fitting_suite_1_recovers_the_printed_good_functions(processors: int) -> None:
    table = PUBLISHED["good"]["HrHwM-c"][str(processors)]
    fitted = fit_good(measured_by(Suite.EXACT, processors, table, 0.0), CAPACITY)
    for piece, found in (("R0", fitted.r0), ("R1", fitted.r1)):
        assert found is not None
        assert dict(found) == pytest.approx(table[piece], rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("processors", [2, 4, 8, 12])
def test_fitting_suite_2_recovers_the_printed_bad_functions(processors: int) -> None:
    table = PUBLISHED["bad"]["HrHwM"][str(processors)]
    samples = measured_by(Suite.SAME_MAXIMA, processors, {"R0": table, "R1": table}, 0.0)
    assert dict(fit_bad(samples)) == pytest.approx(table, rel=1e-6)


def test_noise_of_a_few_per_cent_leaves_predictions_within_it_on_the_other_suites() -> None:
    good_table = PUBLISHED["good"]["HrHwM-c"]["8"]
    fitted = fit_good(measured_by(Suite.EXACT, 8, good_table, 0.05), CAPACITY)
    bad_table = dict.fromkeys(("R0", "R1"), PUBLISHED["bad"]["HrHwM"]["8"])
    bad = fit_bad(measured_by(Suite.SAME_MAXIMA, 8, bad_table, 0.05))
    others = measured_by(Suite.SAME_TOTALS, 8, good_table, 0.0)
    assert 0 < mean_relative_error(others, predict_good(fitted, others)) < 0.05
    others = measured_by(Suite.SAME_TOTALS, 8, bad_table, 0.0)
    assert 0 < mean_relative_error(others, predict_bad(bad, others)) < 0.05


def test_samples_of_one_kind_cannot_tell_the_coefficients_apart() -> None:
    samples = [Measured(h, h, 2 * h, 100.0 + h) for h in SIZES]
    with pytest.raises(FitError, match="cannot tell"):
        fit_bad(samples)


def test_a_piece_that_was_not_measured_stays_unknown() -> None:
    small = [
        Measured(plan.hr, plan.hw, plan.total, 10.0 + plan.total)
        for plan in plans(Suite.EXACT, 4, SIZES[:5])
    ]
    fitted = fit_good(small, CAPACITY)
    assert fitted.r1 is None
    assert np.allclose(predict_good(fitted, small), [one.microseconds for one in small])
    with pytest.raises(FitError, match="nothing beyond the capacity"):
        predict_good(fitted, [Measured(CAPACITY + 1, 0, CAPACITY + 1, 1.0)])
    with pytest.raises(FitError, match="nothing within the capacity"):
        predict_good(GoodFit(CAPACITY, None, fitted.r0), small)


def test_a_superstep_that_just_fits_the_cache_counts_as_cached() -> None:
    at = [
        Measured(plan.hr, plan.hw, plan.total, 7.0 + 0.5 * plan.hr + plan.hw + 0.25 * plan.total)
        for plan in plans(Suite.EXACT, 4, [CAPACITY // 4, CAPACITY // 2, CAPACITY])
    ]
    assert CAPACITY in {max(one.hr, one.hw) for one in at}
    fitted = fit_good(at, CAPACITY)
    assert fitted.r1 is None
    times = [one.microseconds for one in at]
    assert predict_good(fitted, at) == pytest.approx(times)


def test_what_never_happened_cannot_be_told_from_the_rest() -> None:
    with pytest.raises(FitError, match="cannot tell"):
        fit_bad([Measured(h, 0, h * (h % 3 + 1), 10.0 + h) for h in range(1, 12)])


def test_samples_that_cannot_be_fitted_are_refused() -> None:
    with pytest.raises(FitError, match="no samples"):
        fit_good([], CAPACITY)
    with pytest.raises(FitError, match="2 samples cannot"):
        fit_bad([Measured(1, 1, 2, 1.0)] * 2)
    with pytest.raises(FitError, match="above zero"):
        fit_bad([Measured(h, 1, h + 1, 0.0) for h in range(1, 9)])
