"""Supersteps: what they do to memory, and fits that find back what made the times."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from costdb.calibration.fitting import cache_levels
from costdb.calibration.section import Effort, Feature, Host, Point, Timing, World
from costdb.calibration.supersteps import ELEMENTS_IN_LINE, SECTION, Far, Near
from costdb.evaluate import Missing
from costdb.expr import evaluate, num
from costdb.smp import superstep_interval
from tests.costdb.calibration.simulated import profile_of, timings
from tests.costdb.hosts import EPYC, LAPTOP

BEYOND_BYTES = 16 << 20
Truth = Callable[[Mapping[str, Feature], Host], float]


def taken(
    truth: Truth, host: Host = EPYC, noise: float = 0.0, effort: Effort = Effort.FULL
) -> list[Timing]:
    def exact_us(point: Point) -> float:
        return truth(point.features, host)

    return timings(SECTION, exact_us, noise, effort=effort, host=host)


def linear(features, host: Host) -> float:
    far = 4 if features["family"] == "bad" else 1
    return 5 + far * (
        0.001 * features["hr"] + 0.002 * features["hw"] + 0.0001 * features["accesses"]
    )


def by_level(features, host: Host) -> float:
    if features["family"] == "bad":
        return linear(features, host)
    limits = [size // 8 for size in cache_levels(host)]

    def walk(count: float) -> float:
        cost, low = 0.0, 0.0
        for level, limit in enumerate([*limits, float("inf")]):
            cost += max(0.0, min(count, limit) - low) * 0.0004 * 2**level
            low = limit
        return cost

    return 5 + walk(features["hr"]) + 1.5 * walk(features["hw"])


def prediction(made_up, features) -> float:
    counts = [num(features[key]) for key in ("hr", "hw", "accesses", "processors")]
    found = superstep_interval(*counts, made_up)
    assert not isinstance(found, Missing)
    values = {name: quantity.value for name, quantity in found.coefficients.items()}
    return float(evaluate(found.good if features["family"] == "good" else found.bad, values))


@pytest.mark.parametrize("truth", [linear, by_level])
def test_the_profile_predicts_what_made_the_times(truth, host: Host) -> None:
    fitted = SECTION.fit(taken(truth, host, noise=0.01), host)
    part = fitted.parts["smp"]
    made_up = profile_of(fitted.parts)
    for point in SECTION.points(Effort.FULL, 2, host):
        expected = truth(point.features, host)
        assert prediction(made_up, point.features) == pytest.approx(expected, rel=0.02)
    qualities = fitted.qualities
    assert {quality.operation for quality in qualities} == {"superstep.good.p2", "superstep.bad.p2"}
    assert all(quality.median_error < 0.02 for quality in qualities)
    residual = part["residual"]
    assert 0.95 < residual["low"] <= 1 <= residual["high"] < 1.05


def test_the_interval_owns_what_no_form_explains(host: Host) -> None:
    fitted = SECTION.fit(taken(linear, host, noise=0.4), host)
    residual = fitted.parts["smp"]["residual"]
    assert residual["low"] < 0.85
    assert residual["high"] > 1.15


def test_predictions_grow_with_accesses(host: Host) -> None:
    made_up = profile_of(SECTION.fit(taken(by_level, host, noise=0.3), host).parts)
    for family in ("good", "bad"):
        last = 0.0
        for h in np.geomspace(5000, 1_900_000, 60).astype(int).tolist():
            features = {"hr": h, "hw": h, "accesses": 2 * h, "processors": 2, "family": family}
            found = prediction(made_up, features)
            assert found >= last
            last = found


def test_the_quick_points_can_be_fitted_too(host: Host) -> None:
    fitted = SECTION.fit(taken(linear, host, effort=Effort.QUICK), host)
    assert fitted.parts["smp"]["range"]["h"] == [5000, 600_000]
    profile_of(fitted.parts)


def test_too_few_points_are_no_fit() -> None:
    with pytest.raises(ValueError, match="two cores"):
        SECTION.fit([], EPYC)
    with pytest.raises(ValueError, match="too few"):
        SECTION.fit(taken(linear)[:4], EPYC)
    assert SECTION.points(Effort.FULL, 1, EPYC) == []


def test_near_processors_use_elements_of_their_own_that_follow_one_another() -> None:
    step = Near((5, 30), (40, 7))
    step.shared[:] = -1
    step()
    expected = np.full_like(step.shared, -1)
    expected[:40] = range(40)
    expected[40:47] = range(7)
    np.testing.assert_array_equal(step.shared, expected)
    assert step.shared.ctypes.data % 64 == 0
    step.shared[:] = 1
    step()
    assert step.sums[::ELEMENTS_IN_LINE][:2].tolist() == [5, 30]


def test_far_processors_never_share_a_line_nor_come_back_to_one_and_change_places() -> None:
    step = Far((5, 30), (40, 7), BEYOND_BYTES)
    step.arena[:] = 1
    lines = step.arena.reshape(-1, ELEMENTS_IN_LINE)
    seen: set[int] = set()
    for _ in range(6):
        step.move()
        lines[:] = 1
        step()
        assert step.sums[::ELEMENTS_IN_LINE][:2].tolist() == [5, 30]
        # one element of a line, and what is written there is its number
        written = np.flatnonzero((lines != 1).any(axis=1))
        assert (lines[written, 1:] == 1).all()
        assert seen.isdisjoint(written)
        seen.update(written.tolist())
        shares = [written[written // step.lines == (who + step.turn) % 2] for who in (0, 1)]
        # the element numbered 1 was 1 before
        assert [len(share) for share in shares] == [39, 6]
        for share, count in zip(shares, (40, 7), strict=True):
            assert sorted(lines[share, 0]) == [0, *range(2, count)]
            assert np.diff(np.sort(share)).min() > 100
    assert step.arena.nbytes == 2 * BEYOND_BYTES


def test_a_point_of_each_family_runs() -> None:
    for point in (
        SECTION.points(Effort.QUICK, 2, LAPTOP)[0],
        SECTION.points(Effort.QUICK, 2, LAPTOP)[-1],
    ):
        action = SECTION.action(point, World(LAPTOP))
        action.run()
        action.close()
