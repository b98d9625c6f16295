"""The message section: fits recover what made the times; profiles made of them are sound."""

from __future__ import annotations

import numpy as np
import pytest

from costdb.calibration.fitting import LEAST_US, fit_above, residual_of, typical_us
from costdb.calibration.messages import (
    SECTION,
    columns_of,
    document,
    region_of,
)
from costdb.calibration.section import Effort, Fitted, Point, Timing
from costdb.evaluate import Priced, evaluate_price
from costdb.lines.coefficients import scale
from costdb.pricing import price_work
from costdb.work import Message
from tests.costdb.calibration.simulated import profile_of, timings
from tests.costdb.hosts import EPYC

TRUTH = {
    "alpha_us": 1.7,
    "protocols.0.extra_us": 2.6,
    "bytes.0.beta_us_per_byte": 4e-5,
    "bytes.1.beta_us_per_byte": 1e-5,
    "bytes.2.beta_us_per_byte": 2e-5,
    "bytes.3.beta_us_per_byte": 2.2e-5,
    "staging.call_us": 0.3,
    "staging.loop_us": 0.006,
    "staging.element_us": 1e-4,
    "staging.copy_us_per_byte": 7e-5,
    "staging.lines.0.gamma_us_per_line": 0.0004,
    "staging.lines.1.gamma_us_per_line": 0.001,
    "staging.lines.2.gamma_us_per_line": 0.002,
    "staging.lines.3.gamma_us_per_line": 0.006,
}
KIB = 1024
SCALE = scale(
    64,
    (8 * KIB,),
    (8 * KIB, 64 * KIB, KIB * KIB),
    (64 * KIB, 256 * KIB, KIB * KIB),
)


def time_us(point: Point) -> float:
    columns = columns_of([region_of(point)], SCALE)
    return sum(TRUTH[name] * column[0] for name, column in columns.items())


@pytest.fixture(scope="module")
def exact() -> Fitted:
    return SECTION.fit(timings(SECTION, time_us), EPYC)


@pytest.fixture(scope="module")
def noisy() -> Fitted:
    return SECTION.fit(timings(SECTION, time_us, 0.05), EPYC)


def test_coefficients_are_recovered(exact: Fitted) -> None:
    expected = document(SCALE, TRUTH)
    found = dict(exact.parts["lines"]["message"])  # type: ignore[index,call-overload,arg-type]
    residual = found.pop("residual")
    assert residual["high"] == pytest.approx(1, abs=1e-3)
    assert flat(found) == pytest.approx(flat(expected), rel=2e-3)


def flat(stated: object, path: str = "") -> dict[str, float]:
    if isinstance(stated, dict) and "value" in stated:
        return {path: stated["value"]}
    pairs = (
        stated.items()
        if isinstance(stated, dict)
        else enumerate(stated)
        if isinstance(stated, list)
        else ()
    )
    return {k: v for key, inner in pairs for k, v in flat(inner, f"{path}/{key}").items()}


def test_noise_leaves_held_out_points_within_the_interval(noisy: Fitted) -> None:
    here, inside, total = profile_of(noisy.parts), 0, 0
    for timing in timings(SECTION, time_us, 0.05, seed=2):
        priced = price_work(Message(region_of(timing.point)), here)
        assert isinstance(priced, Priced)
        estimate = evaluate_price(priced, {})
        for launch_us in timing.each_launch_us:
            total += 1
            inside += estimate.low <= launch_us * 1e-6 <= estimate.high
    assert inside / total > 0.88


def test_prices_of_the_new_profile_equal_the_fitted_model(noisy: Fitted) -> None:
    here = profile_of(noisy.parts)
    taken = timings(SECTION, time_us, 0.05)
    quality = next(q for q in noisy.qualities if q.operation == "message")
    errors = []
    for timing in taken:
        if timing.point.held_out:
            priced = price_work(Message(region_of(timing.point)), here)
            assert isinstance(priced, Priced)
            predicted = evaluate_price(priced, {}).mid * 1e6
            errors.append(abs(predicted - timing.typical_us) / timing.typical_us)
    assert len(quality.pairs) == len(errors)
    assert quality.median_error == pytest.approx(float(np.median(errors)), rel=1e-3)
    assert quality.median_error < 0.05


@pytest.mark.parametrize("effort", list(Effort))
def test_points_are_the_same_each_time_and_cover_what_they_should(effort: Effort) -> None:
    points = SECTION.points(effort, 2, EPYC)
    assert points == SECTION.points(effort, 2, EPYC)
    sizes = np.array([float(r) for r in map(bytes_of_point, points)])
    for kept in (False, True):
        part = np.array([point.held_out == kept for point in points])
        assert sizes[part].min() < 64 and sizes[part].max() > 2**20
        assert 0.4 < part.mean() < 0.6
    pitches = [int(point.features["pitch_bytes"]) for point in points]
    powers = [pitch for pitch in pitches if pitch >= 1024 and pitch & (pitch - 1) == 0]
    assert 0.05 * len(points) < len(powers) < 0.5 * len(points)
    assert {point.features["itemsize_bytes"] for point in points} == {4, 8}


def bytes_of_point(point: Point) -> int:
    runs, width = int(point.features["runs"]), int(point.features["run_elements"])
    return runs * width * int(point.features["itemsize_bytes"])


def test_a_floor_is_kept_and_the_rest_makes_up_for_it() -> None:
    ones, size = np.ones(4), np.array([1.0, 2.0, 3.0, 4.0])
    found = fit_above({"alpha": ones, "beta": size}, np.full(4, 50 * LEAST_US))
    assert found["beta"] >= LEAST_US
    assert found["alpha"] == pytest.approx((50 - 2.5) * LEAST_US, rel=0.02)


def test_the_interval_holds_nine_in_ten_launches() -> None:
    ratios = np.linspace(0.8, 1.4, 100)
    steady = [Timing(Point("x", {}), (((ratio, ratio, 50.0),),)) for ratio in ratios.tolist()]
    found = residual_of(steady, np.ones(100))
    assert isinstance(found, dict)
    low, high = found["low"], found["high"]
    assert isinstance(low, float) and isinstance(high, float)
    assert 0.9 <= np.mean((ratios >= low) & (ratios <= high)) < 0.96
    assert typical_us(steady).tolist() == pytest.approx(ratios.tolist())


def test_an_interval_always_holds_the_prediction_itself() -> None:
    slower = [Timing(Point("x", {}), (((2.0,),), ((3.0,),)))]
    found = residual_of(slower, np.ones(1))
    assert isinstance(found, dict)
    assert (found["low"], found["value"], found["high"]) == (1.0, 1.0, 3.0)


def test_a_fit_that_predicts_no_time_is_refused_with_what_to_do() -> None:
    timing = Timing(Point("made", {}), (((1.0, 2.0),),))
    with pytest.raises(ValueError, match="more time"):
        residual_of([timing], np.array([0.0]))
    stated = residual_of([timing, timing], np.array([1.0, 2.0]))
    assert isinstance(stated, dict)
    assert (stated["low"], stated["high"]) == (0.75, 1.5)
