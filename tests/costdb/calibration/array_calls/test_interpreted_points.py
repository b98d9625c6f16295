"""Interpreted loops that are timed: what they do in the words of the model, and what they say."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from costdb.calibration.array_calls.interpreted import (
    _LOOPS,
    INTERPRETED,
    in_loops,
    interpreted_action,
    interpreted_points,
)
from costdb.calibration.section import Point, Timing
from costdb.elements import STEPS
from costdb.interpretation import Step

STEP_US = dict(zip(STEPS, (0.01, 0.04, 0.05, 0.03), strict=True))
PYTHON = {
    key: {"value": us, "unit": "us", "provenance": "measured", "source": "calibration"}
    for key, us in STEP_US.items()
}


class Operand(float):
    """A number that counts the operations it takes part in."""

    counts: dict[str, int]

    def _made(self, value: float, other: float) -> Operand:
        plain = not isinstance(other, Operand | np.generic)
        return self._step(Step.NUMBER_ARITH if plain else "operations", value)

    def __add__(self, other: float) -> Operand:
        return self._made(float(self) + float(other), other)

    def __sub__(self, other: float) -> Operand:
        return self._made(float(self) - float(other), other)

    def __mul__(self, other: float) -> Operand:
        return self._made(float(self) * float(other), other)

    def __rmul__(self, other: float) -> Operand:
        return self._step(Step.NUMBER_ARITH, other * float(self))

    def __lt__(self, other: float) -> bool:
        self._step(Step.COMPARE, 0.0)
        return float(self) < float(other)

    def __gt__(self, other: float) -> bool:
        self._step(Step.COMPARE, 0.0)
        return float(self) > float(other)

    def __abs__(self) -> Operand:
        return self._step(Step.UNARY, abs(float(self)))

    def _step(self, step: str, value: float) -> Operand:
        self.counts[step] = self.counts.get(step, 0) + 1
        return operand(value, self.counts)


def operand(value: float, counts: dict[str, int]) -> Operand:
    made = Operand(value)
    made.counts = counts
    return made


class Counted:
    """An array that counts the elements that are loaded and stored, and what is done with them."""

    def __init__(self, rank: int, counts: dict[str, int]) -> None:
        self._array = np.ones((12, 40)[2 - rank :])
        self._counts = counts
        self.shape = self._array.shape
        self._mark = "vector_" if rank == 1 else ""
        self.dtype = SimpleNamespace(type=lambda value: operand(value, counts))

    def __getitem__(self, key: Any) -> Any:
        self._count("loads")
        return operand(self._array[key], self._counts)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._count("stores")
        self._array[key] = value

    def _count(self, what: str) -> None:
        key = self._mark + what
        self._counts[key] = self._counts.get(key, 0) + 1


@pytest.mark.parametrize("name", _LOOPS)
def test_loops_do_what_the_model_is_told(name: str) -> None:
    loop, counts = _LOOPS[name], dict[str, int]()
    arrays: list[Any] = [Counted(2, counts) for _ in range(3)]
    loop.run(*arrays, Counted(1, counts))  # type: ignore[arg-type]
    for what in ("loads", "stores", "vector_loads", "vector_stores", "operations"):
        assert counts.get(what, 0) == getattr(loop.each, what) * loop.rows * loop.columns
    others = Counter(dict(loop.each.others))
    # what is the lesser of two is found by comparing them
    others[Step.COMPARE] += others[Step.EXTREME]
    for step in (Step.NUMBER_ARITH, Step.COMPARE, Step.UNARY):
        assert counts.get(step, 0) == others[step] * loop.rows * loop.columns
    point = Point(INTERPRETED, {INTERPRETED: name, "dtype": "float64"})
    assert interpreted_action(point).repetitions == loop.rows * loop.columns


def test_loops_judge_and_are_not_fitted() -> None:
    assert all(point.held_out for point in interpreted_points())


def timing(point: Point, times: float) -> Timing:
    each = _LOOPS[str(point.features[INTERPRETED])].each
    alike = sum(n for step, n in each.others if step is not Step.PYTHON_ARITH)
    operations = each.operations + alike
    counts = 1, each.loads + each.vector_loads, each.stores + each.vector_stores, operations
    us = times * sum(n * step for n, step in zip(counts, STEP_US.values(), strict=True))
    return Timing(point, (((us,),), ((us,),)))


def test_steps_take_what_loops_take_and_ends_hold_the_loops() -> None:
    points = interpreted_points()
    made = in_loops(PYTHON, [timing(p, 1.2 + 0.1 * (n % 3)) for n, p in enumerate(points)])
    for key, us in STEP_US.items():
        stated: Any = made[key]
        ends = [stated[end] for end in ("low", "value", "high")]
        assert ends == pytest.approx([1.2 * us, 1.3 * us, 1.4 * us])


def test_steps_stay_as_they_are_where_no_loop_was_timed() -> None:
    untimed = [Timing(point, ()) for point in interpreted_points()]
    assert in_loops(PYTHON, untimed) == PYTHON
    assert in_loops({}, [timing(point, 1.0) for point in interpreted_points()]) == {}


@pytest.mark.parametrize("point", interpreted_points(), ids=str)
def test_loops_can_be_repeated_without_end(point: Point) -> None:
    action = interpreted_action(point)
    with np.errstate(all="raise"):
        for _ in range(3):
            action.run()
