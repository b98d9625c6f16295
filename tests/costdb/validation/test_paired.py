"""Comparing two models of the same points: what the points can tell, and what they cannot."""

from __future__ import annotations

from random import Random

import pytest

from costdb.calibration.section import Quality
from costdb.validation.paired import Better, compare, compare_all, repeats_within


def model(measured: list[float], predicted: list[float], spread: float = 0.0) -> Quality:
    launches = tuple((us * (1 - spread), us, us * (1 + spread)) for us in measured)
    pairs = tuple(zip(measured, predicted, strict=True))
    return Quality("binary float64", "some model", 0.0, 0.0, len(pairs), True, pairs, launches)


def off(times: list[float], by: float, seed: int) -> list[float]:
    draw = Random(seed)
    return [us * (1 + by * draw.choice((-1, 1)) * draw.uniform(0.8, 1.2)) for us in times]


TIMES = [1.4**number for number in range(40)]


def test_a_model_that_errs_less_everywhere_is_told_from_one_that_errs_more() -> None:
    near, far = off(TIMES, 0.02, 1), off(TIMES, 0.3, 2)
    assert compare(model(TIMES, far), model(TIMES, near)).verdicts == (Better.LESS, Better.LESS)
    assert compare(model(TIMES, near), model(TIMES, far)).verdicts == (Better.MORE, Better.MORE)


def test_models_whose_errors_are_alike_are_not_told_apart() -> None:
    found = compare(model(TIMES, off(TIMES, 0.1, 1)), model(TIMES, off(TIMES, 0.1, 2)))
    assert found.verdicts == (Better.NOISE, Better.NOISE)
    assert found.r2.low < 0 < found.r2.high


def test_one_long_time_tells_nothing_of_what_is_left() -> None:
    near, far = off(TIMES, 0.05, 1), off(TIMES, 0.05, 2)
    # the longest decides R2 wherever it is drawn, and it is drawn in six of ten
    near[-1], far[-1] = TIMES[-1] * 1.01, TIMES[-1] * 1.2
    assert compare(model(TIMES, far), model(TIMES, near)).r2.verdict is Better.NOISE


def test_what_launches_differ_by_hides_a_smaller_difference() -> None:
    near, far = off(TIMES, 0.01, 1), off(TIMES, 0.02, 2)
    assert compare(model(TIMES, far), model(TIMES, near)).median_error.verdict is Better.LESS
    hidden = compare(model(TIMES, far, 0.5), model(TIMES, near, 0.5))
    assert hidden.median_error.verdict is Better.NOISE


def test_models_that_agree_everywhere_are_the_same() -> None:
    near = off(TIMES, 0.1, 1)
    found = compare(model(TIMES, near), model(TIMES, [us * 1.005 for us in near]))
    assert found.verdicts == (Better.SAME, Better.SAME)


def test_few_points_tell_nothing() -> None:
    times = TIMES[:4]
    found = compare(model(times, off(times, 0.5, 1)), model(times, times))
    assert found.verdicts == (Better.NOISE, Better.NOISE)


def test_operations_that_tell_little_by_themselves_tell_together() -> None:
    times = TIMES[:12]
    pairs = [
        (model(times, off(times, 0.16, seed)), model(times, off(times, 0.13, 50 + seed)))
        for seed in range(12)
    ]
    alone = [compare(*pair).median_error.verdict for pair in pairs]
    assert alone.count(Better.LESS) < len(pairs)
    assert compare_all(pairs).median_error.verdict is Better.LESS


def test_an_operation_that_takes_long_does_not_speak_for_all() -> None:
    near, far, long = off(TIMES, 0.02, 1), off(TIMES, 0.3, 2), [1e4 * us for us in TIMES]
    less = [(model(TIMES, far), model(TIMES, near)) for _ in range(3)]
    slightly = (model(long, off(long, 0.02, 3)), model(long, off(long, 0.05, 4)))
    assert compare(*slightly).r2.verdict is Better.MORE
    assert compare_all([*less, slightly]).r2.verdict is Better.LESS


def test_models_that_are_the_same_for_all_operations_are_the_same() -> None:
    same = model(TIMES, off(TIMES, 0.1, 1))
    other = model(TIMES, off(TIMES, 0.1, 2))
    assert compare_all([(same, same), (other, other)]).verdicts == (Better.SAME, Better.SAME)
    assert compare_all([(same, same), (same, other)]).verdicts == (Better.NOISE, Better.NOISE)


def test_launches_repeat_within_how_far_each_is_from_the_others() -> None:
    assert repeats_within([model(TIMES, TIMES, 0.1)]) == pytest.approx(1 - 0.9 / 1.05)
    assert repeats_within([]) is None
