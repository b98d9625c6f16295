"""Loops over elements that an interpreter goes through, beside what their steps take by themselves.

Each step is timed by itself, again and again on the same element. In a loop it has another element
and another index each time, and steps follow one another. How many times longer they take then is
found with loops that none of the steps was fitted to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from math import sqrt
from statistics import median
from typing import TYPE_CHECKING, Any

from costdb.calibration.host.calm_core import numpy_on_one_thread
from costdb.calibration.section import Action, Point, Timing
from costdb.elements import price_interpretation
from costdb.estimate import Priced
from costdb.evaluate import evaluate_price
from costdb.expr import ONE
from costdb.interpretation import Interpretation, Step
from costdb.machines.documents import Json, measured, to_float
from costdb.machines.machine import machine_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


# The interpreter's steps, each timed by itself, again and again on the same element.

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


INTERPRETED = "interpreted"
_ROWS, _COLUMNS = 12, 40
_QUANTILES = (0.05, 0.95)
_TYPES = ("float64", "int32")


def _sums(a: Array, b: Array, c: Array, v: Array) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j] + b[i, j]


def _neighbours(a: Array, b: Array, c: Array, v: Array) -> None:
    for j in range(1, a.shape[1]):
        for i in range(1, a.shape[0]):
            c[i, j] = a[i - 1, j] - a[i, j - 1] * b[i, j]


def _totals(a: Array, b: Array, c: Array, v: Array) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            v[j] = v[j] + a[i, j]


def _recurrence(a: Array, b: Array, c: Array, v: Array) -> None:
    for i in range(1, a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = c[i - 1, j] + a[i, j]


def _scaled(a: Array, b: Array, c: Array, v: Array) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j] * v[j]


def _moved(a: Array, b: Array, c: Array, v: Array) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j]


def _extremes(a: Array, b: Array, c: Array, v: Array) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = max(min(a[i, j], v[j]), b[i, j])


def _numbers(a: Array, b: Array, c: Array, v: Array) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = 3 * a[i, j] + 2 * j


def _functions(a: Array, b: Array, c: Array, v: Array) -> None:
    np = numpy_on_one_thread()
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = abs(b[i, j]) - np.absolute(a[i, j])


def _least(a: Array, b: Array, c: Array, v: Array) -> None:
    np = numpy_on_one_thread()
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = np.minimum(a[i, j], b[i, j])


def _chosen(a: Array, b: Array, c: Array, v: Array) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j] if a[i, j] < v[j] else b[i, j]


def _products(a: Array, b: Array, c: Array, v: Array) -> None:
    for i in range(a.shape[0]):
        total = a.dtype.type(0)
        for j in range(a.shape[1]):
            total = total + a[i, j] * v[j]


@dataclass(frozen=True, slots=True)
class _Loop:
    """A nest, and the work of one of its iterations in the words of the model."""

    run: Callable[[Array, Array, Array, Array], None]
    each: Interpretation
    rows: int = _ROWS
    columns: int = _COLUMNS


_LOOPS: Mapping[str, _Loop] = {
    "sums": _Loop(_sums, Interpretation(ONE, loads=2, stores=1, operations=1)),
    "neighbours": _Loop(
        _neighbours,
        Interpretation(ONE, loads=3, stores=1, operations=2, others=((Step.PYTHON_ARITH, 2),)),
        _ROWS - 1,
        _COLUMNS - 1,
    ),
    "totals": _Loop(
        _totals,
        Interpretation(ONE, loads=1, stores=0, operations=1, vector_loads=1, vector_stores=1),
    ),
    "recurrence": _Loop(
        _recurrence,
        Interpretation(ONE, loads=2, stores=1, operations=1, others=((Step.PYTHON_ARITH, 1),)),
        _ROWS - 1,
    ),
    "scaled": _Loop(_scaled, Interpretation(ONE, loads=1, stores=1, operations=1, vector_loads=1)),
    "moved": _Loop(_moved, Interpretation(ONE, loads=1, stores=1, operations=0)),
    "extremes": _Loop(
        _extremes,
        Interpretation(ONE, loads=2, stores=1, vector_loads=1, others=((Step.EXTREME, 2),)),
    ),
    "numbers": _Loop(
        _numbers,
        Interpretation(
            ONE,
            loads=1,
            stores=1,
            others=((Step.NUMBER_ARITH, 2), (Step.PYTHON_ARITH, 1)),
        ),
    ),
    "functions": _Loop(
        _functions,
        Interpretation(
            ONE, loads=2, stores=1, operations=1, others=((Step.FUNCTION, 1), (Step.UNARY, 1))
        ),
    ),
    "least": _Loop(
        _least, Interpretation(ONE, loads=2, stores=1, others=((Step.BINARY_FUNCTION, 1),))
    ),
    "chosen": _Loop(
        _chosen,
        # the answer is no wherever elements are 2 or 0 and those of the vector are 0
        Interpretation(ONE, loads=2, stores=1, vector_loads=1, others=((Step.COMPARE, 1),)),
    ),
    "products": _Loop(_products, Interpretation(ONE, loads=1, vector_loads=1, operations=2)),
}


def interpreted_points() -> list[Point]:
    """Return the loops; none is fitted, so that all are held out."""
    return [
        Point(INTERPRETED, {INTERPRETED: name, "dtype": dtype}, held_out=True)
        for name in _LOOPS
        for dtype in _TYPES
    ]


def interpreted_action(point: Point) -> Action:
    """Return one loop; its repetitions are its iterations."""
    np = numpy_on_one_thread()
    loop = _LOOPS[str(point.features[INTERPRETED])]
    shape, dtype = (_ROWS, _COLUMNS), str(point.features["dtype"])
    a, b, c = (np.full(shape, value).astype(dtype) for value in (2.0, 0.5, 0.0))
    # whole numbers that are 0 add up to 0 however often
    a, v = (a if dtype == "float64" else a * 0), np.zeros(_COLUMNS, dtype)

    def run() -> None:
        loop.run(a, b, c, v)

    return Action(run, loop.rows * loop.columns, alone=True)


def in_loops(python: Mapping[str, Json], timings: Sequence[Timing]) -> dict[str, Json]:
    """Return the steps as loops take them, with ends that hold nine in ten launches of loops.

    Parameters
    ----------
    python : mapping of str to JSON
        What each step takes by itself; empty where that was not measured.
    timings : sequence of Timing
        Of loops; the steps are returned as they are where there are none.
    """
    # the process that measures decides how many threads NumPy may have, before it is imported
    import numpy as np

    from costdb.machines.documents import measured

    ratios = []
    for timing in timings:
        alone_us = _by_steps(python, timing) if timing.launches_us else None
        if alone_us:
            ratios.append([launch / alone_us for launch in timing.each_launch_us])
    if not ratios:
        return dict(python)
    middle = median(median(launches) for launches in ratios)
    every = [ratio for launches in ratios for ratio in launches]
    low, high = (float(np.quantile(every, q)) for q in _QUANTILES)
    made: dict[str, Json] = {}
    for key, stated in python.items():
        assert isinstance(stated, dict)
        alone_us, note = to_float(stated["value"]), "as loops take it, over what it takes alone"
        ends = alone_us * min(low, middle), alone_us * max(high, middle)
        made[key] = measured(alone_us * middle, "us", *ends, note)
    return made


def _by_steps(python: Mapping[str, Json], timing: Timing) -> float | None:
    """Return what an iteration takes by its steps alone, None where they are not known."""
    document: dict[str, Json] = {
        "schema_version": 1,
        "name": "steps",
        "title": "what steps take alone",
        "library": "none",
        "sources": {"calibration": "this one"},
        "python": dict(python),
    }
    loop = _LOOPS[str(timing.point.features[INTERPRETED])]
    price = price_interpretation(loop.each, machine_of(document, "calibration"))
    found = 1e6 * evaluate_price(price, {}).mid if isinstance(price, Priced) else 0.0
    return found or None
