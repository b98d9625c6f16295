"""Interpreted loops that are timed: what they do in the words of the model, and what they say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from costdb.calibration.loops import (
    _COLUMNS,
    _LOOPS,
    _ROWS,
    INTERPRETED,
    _counts,
    fit_steps,
    interpreted_action,
    interpreted_points,
)
from costdb.calibration.section import Point, Timing
from costdb.pricing import STEPS

STEP_US = dict(zip(STEPS, (0.01, 0.04, 0.05, 0.03, 0.5, 2.0), strict=True))


class Operand(float):
    """A number that counts the operations it takes part in."""

    counts: dict[str, int]

    def __add__(self, other: float) -> Operand:
        return self._counted("operations", float(self) + float(other))

    def __sub__(self, other: float) -> Operand:
        return self._counted("operations", float(self) - float(other))

    def __mul__(self, other: float) -> Operand:
        return self._counted("operations", float(self) * float(other))

    def __lt__(self, other: float) -> bool:
        self._counted("operations", 0.0)
        return float(self) < float(other)

    def __abs__(self) -> Operand:
        return self._counted("operations", abs(float(self)))

    def _counted(self, step: str, value: float) -> Operand:
        self.counts[step] = self.counts.get(step, 0) + 1
        return operand(value, self.counts)


def operand(value: float, counts: dict[str, int]) -> Operand:
    made = Operand(value)
    made.counts = counts
    return made


class Counted:
    """An array that counts the elements that are loaded and stored, and what is done with them."""

    def __init__(self, shape: tuple[int, ...], counts: dict[str, int]) -> None:
        self._array, self._counts = np.zeros(shape), counts
        self.dtype = SimpleNamespace(type=lambda value: operand(value, counts))

    def __getitem__(self, key: Any) -> Any:
        self._counts["loads"] = self._counts.get("loads", 0) + 1
        return operand(self._array[key], self._counts)

    def sum(self) -> None:
        self._counts["sums"] = self._counts.get("sums", 0) + 1

    def __setitem__(self, key: Any, value: Any) -> None:
        self._counts["stores"] = self._counts.get("stores", 0) + 1
        self._array[key] = value


@pytest.mark.parametrize("name", _LOOPS)
def test_loops_do_what_the_model_is_told(name: str) -> None:
    loop, counts = _LOOPS[name], dict[str, int]()

    def called(*given: float) -> Operand:
        counts["calls"] = counts.get("calls", 0) + 1
        return operand(min(map(float, given)), counts)

    def function(given: Any) -> None:
        counts["functions"] = counts.get("functions", 0) + 1
        given.sum()

    numpy = SimpleNamespace(minimum=called, absolute=called, sum=function)
    arrays: list[Any] = [Counted((_ROWS, _COLUMNS), counts) for _ in range(3)]
    vector: Any = Counted((_COLUMNS,), counts)
    loop.run(numpy, *arrays, vector)
    for what in ("loads", "stores", "operations", "calls", "functions", "sums"):
        # what is fetched before a loop is no part of its iterations
        each = getattr(loop if what == "sums" else loop.each, what) * _ROWS * _COLUMNS
        assert each <= counts.get(what, 0) <= each + 1, what
    point = Point(INTERPRETED, {INTERPRETED: name, "dtype": "float64"})
    assert interpreted_action(point).repetitions == _ROWS * _COLUMNS


def timing(point: Point, *launches: float) -> Timing:
    counts = _counts(_LOOPS[str(point.features[INTERPRETED])])
    us = sum(n * step for n, step in zip(counts, (*STEP_US.values(), 1.0), strict=True))
    return Timing(point, tuple(((us * times,),) for times in launches))


def test_steps_are_found_and_their_ends_hold_the_loops() -> None:
    made: Any = fit_steps([timing(point, 1.0, 1.0) for point in interpreted_points()])
    for key, us in STEP_US.items():
        ends = [made[key][end] for end in ("low", "value", "high")]
        assert ends == pytest.approx([us, us, us], rel=1e-3)
    apart: Any = fit_steps([timing(point, 0.8, 1.2) for point in interpreted_points()])
    for stated in apart.values():
        assert stated["low"] == pytest.approx(0.8 * stated["value"], rel=1e-3)
        assert stated["high"] == pytest.approx(1.2 * stated["value"], rel=1e-3)


def test_few_loops_say_nothing_of_steps() -> None:
    assert fit_steps([timing(point, 1.0) for point in interpreted_points()[:8]]) == {}
    assert fit_steps([Timing(point, ()) for point in interpreted_points()]) == {}


@pytest.mark.parametrize("point", interpreted_points(), ids=str)
def test_loops_can_be_repeated_without_end(point: Point) -> None:
    action = interpreted_action(point)
    with np.errstate(all="raise"):
        for _ in range(3):
            action.run()
