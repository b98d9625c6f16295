"""The interpreter's steps, each timed by itself, again and again on the same element."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import repeat
from math import sqrt

from costdb.calibration.host.one_thread import numpy_on_one_thread
from costdb.calibration.section import Action, Point, Timing
from costdb.interpretation import Step
from costdb.machines.documents import Json
from costdb.machines.stated import measured

STEP = "step"
_REPEATED = 300
_BARE = "bare"
"""The repetition itself, which is part of what is timed of every step but iterations."""
_LEAST = ("iteration", "getitem", "setitem", "arith", "vector_getitem", "vector_setitem")
"""Without these there is no price of any loop."""
_WITHIN: Mapping[str, str] = {
    "iteration": "",
    Step.SUBSCRIPT: "vector_getitem",
    Step.CAST_STORE: "vector_setitem",
}
"""What else is part of what is timed of a step, where that is more or less than repetition."""


def step_points() -> list[Point]:
    """Return the steps, and the repetition that all but iterations are timed with."""
    return [Point(f"python {name}", {STEP: name}) for name in (*_LEAST, *Step, _BARE)]


def step_action(point: Point) -> Action:
    """Return the repetition of one step."""
    return Action(_steps()[str(point.features[STEP])], _REPEATED, alone=True)


def steps_alone(timings: Mapping[str, Timing]) -> dict[str, Json]:
    """Return what steps take by themselves; nothing where the commonest were not all timed.

    Parameters
    ----------
    timings : mapping of str to Timing
        By the names of the steps.
    """
    if not {*_LEAST, _BARE} <= timings.keys():
        return {}
    made: dict[str, Json] = {}
    for name in (*_LEAST, *Step):
        if name not in timings:
            continue
        within = _WITHIN.get(name, _BARE)
        known_us = timings[within].typical_us if within else 0.0
        low, middle, high = (max(0.0, us - known_us) for us in _ends(timings[name]))
        made[f"{name}_us"] = measured(middle, "us", low, high)
    return made


def _ends(timing: Timing) -> tuple[float, float, float]:
    samples = sorted(timing.samples_us)
    low, high = (samples[int(q * (len(samples) - 1))] for q in (0.05, 0.95))
    middle = min(max(timing.typical_us, low), high)
    return low, middle, high


def _steps() -> Mapping[str, Callable[[], None]]:
    """Return what repeats each step; a function of its own, as names and calls take time too."""
    np = numpy_on_one_thread()
    array, vector, index = np.ones((40, 40)), np.ones(40), 7
    value, number, whole, place = np.float64(1.5), 2.5, np.int64(3), np.int64(7)

    def bare() -> None:
        for _ in repeat(None, _REPEATED):
            pass

    def iteration() -> None:
        for _ in range(_REPEATED):
            pass

    def getitem() -> None:
        for _ in repeat(None, _REPEATED):
            array[index, index]

    def setitem() -> None:
        for _ in repeat(None, _REPEATED):
            array[index, index] = value

    def arith() -> None:
        for _ in repeat(None, _REPEATED):
            value + value

    def vector_getitem() -> None:
        for _ in repeat(None, _REPEATED):
            vector[index]

    def vector_setitem() -> None:
        for _ in repeat(None, _REPEATED):
            vector[index] = value

    def entry() -> None:
        for _ in repeat(None, _REPEATED):
            for _ in range(array.shape[0], index):
                pass

    def number_arith() -> None:
        for _ in repeat(None, _REPEATED):
            number * value

    def python_arith() -> None:
        for _ in repeat(None, _REPEATED):
            index + index

    def mixed_arith() -> None:
        for _ in repeat(None, _REPEATED):
            whole + value

    def compare() -> None:
        for _ in repeat(None, _REPEATED):
            if value < number:
                pass

    def unary() -> None:
        for _ in repeat(None, _REPEATED):
            abs(value)

    def extreme() -> None:
        for _ in repeat(None, _REPEATED):
            min(value, value)

    def convert() -> None:
        for _ in repeat(None, _REPEATED):
            float(value)

    def math() -> None:
        for _ in repeat(None, _REPEATED):
            sqrt(value)

    def function() -> None:
        for _ in repeat(None, _REPEATED):
            np.absolute(value)

    def binary_function() -> None:
        for _ in repeat(None, _REPEATED):
            np.minimum(value, value)

    def subscript() -> None:
        for _ in repeat(None, _REPEATED):
            vector[place]

    def cast_store() -> None:
        for _ in repeat(None, _REPEATED):
            vector[index] = whole

    steps = (
        *(bare, iteration, getitem, setitem, arith, vector_getitem, vector_setitem, entry),
        *(number_arith, python_arith, mixed_arith, compare, unary, extreme, convert, math),
        *(function, binary_function, subscript, cast_store),
    )
    return {step.__name__: step for step in steps}
