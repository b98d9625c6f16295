"""Loops over elements: compiled ones, and ones that an interpreter goes through step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache, partial
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from costdb.arrays.amounts import Hierarchy
from costdb.calibration.fitting import (
    cache_levels,
    caches,
    caches_document,
    fit_above,
    fit_classes,
    predict,
    quantity_of_ratios,
    ratios_of,
)
from costdb.calibration.section import (
    Action,
    Effort,
    Fitted,
    Host,
    Need,
    Point,
    Section,
    Timing,
    World,
    repeated,
    repetitions,
    spread_sizes,
)
from costdb.expr import ONE, num
from costdb.machines import Json, measured
from costdb.pricing import STEPS
from costdb.records import dataclass
from costdb.work import ArrayCall, ArrayOperation, Interpretation, Region, Visit

Array = NDArray[Any]

INTERPRETED = "interpreted"
_ROWS, _COLUMNS = 12, 40


_SOURCE = """
def run(np, a, b, c, v):
    {before}
    for i in range({rows}):
        {in_row}
        for j in range({columns}):
            {body}
"""


@dataclass(frozen=True, slots=True)
class _Loop:
    """What a nest does for each element, and that in the words of the model.

    Sums of a vector, which are no step of the interpreter, come beside it.
    """

    body: str
    each: Interpretation
    before: str = "pass"
    in_row: str = "pass"
    sums: int = 0

    @property
    def run(self) -> Callable[[Any, Array, Array, Array, Array], None]:
        """The nest as a function of the interpreter's."""
        names: dict[str, Any] = {}
        parts = {"before": self.before, "in_row": self.in_row, "body": self.body}
        exec(_SOURCE.format(rows=_ROWS, columns=_COLUMNS, **parts), names)
        found: Callable[[Any, Array, Array, Array, Array], None] = names["run"]
        return found


_LOOPS: Mapping[str, _Loop] = {
    "empty": _Loop("pass", Interpretation(ONE)),
    "filled": _Loop("c[i, j] = number", Interpretation(ONE, stores=1), "number = a[0, 0]"),
    "moved": _Loop("c[i, j] = a[i, j]", Interpretation(ONE, loads=1, stores=1)),
    "sums": _Loop(
        "c[i, j] = a[i, j] + b[i, j]", Interpretation(ONE, loads=2, stores=1, operations=1)
    ),
    "neighbours": _Loop(
        "c[i, j] = a[i - 1, j] - a[i, j - 1] * b[i, j]",
        Interpretation(ONE, loads=3, stores=1, operations=2),
    ),
    "totals": _Loop("v[j] = v[j] + a[i, j]", Interpretation(ONE, loads=2, stores=1, operations=1)),
    # the answer is no wherever elements are 2 or 0 and those of the vector are 0
    "chosen": _Loop(
        "c[i, j] = a[i, j] if a[i, j] < v[j] else b[i, j]",
        Interpretation(ONE, loads=3, stores=1, operations=1),
    ),
    "least": _Loop(
        "c[i, j] = np.minimum(a[i, j], b[i, j])", Interpretation(ONE, loads=2, stores=1, calls=1)
    ),
    "functions": _Loop(
        "c[i, j] = abs(b[i, j]) - np.absolute(a[i, j])",
        Interpretation(ONE, loads=2, stores=1, operations=2, calls=1),
    ),
    "products": _Loop(
        "total = total + a[i, j] * v[j]",
        Interpretation(ONE, loads=2, operations=2),
        in_row="total = a.dtype.type(0)",
    ),
    # operators on numbers out of arrays, by themselves: elsewhere they hide behind the elements
    "powers": _Loop(
        "c[i, j] = ((x := a[i, j]) * x - x) * x + x",
        Interpretation(ONE, loads=1, stores=1, operations=4),
    ),
    "polynomials": _Loop(
        "total = ((x * x - x) * x + x) * x - x",
        Interpretation(ONE, operations=6),
        before="x = a[0, 0]",
    ),
    # the same sum by both: what is left is the function's own
    "methods": _Loop("v.sum()", Interpretation(ONE), sums=1),
    "wrapped": _Loop("np.sum(v)", Interpretation(ONE, functions=1), sums=1),
}


def interpreted_points() -> list[Point]:
    """Return the loops that an interpreter goes through."""
    return [
        Point(INTERPRETED, {INTERPRETED: name, "dtype": dtype})
        for name in _LOOPS
        for dtype in ("float64", "int32")
    ]


def interpreted_action(point: Point) -> Action:
    """Return one loop; its repetitions are its iterations."""
    loop = _LOOPS[str(point.features[INTERPRETED])]
    shape, dtype = (_ROWS, _COLUMNS), str(point.features["dtype"])
    a, b, c = (np.full(shape, value).astype(dtype) for value in (2.0, 0.5, 0.0))
    # whole numbers that are 0 add up to 0 however often
    a, v = (a if dtype == "float64" else a * 0), np.zeros(_COLUMNS, dtype)
    run = loop.run
    return Action(lambda: run(np, a, b, c, v), _ROWS * _COLUMNS, alone=True)


def fit_steps(timings: Sequence[Timing]) -> dict[str, Json]:
    """Return what each step takes in loops; nothing where too few were timed to tell."""
    known = [timing for timing in timings if timing.launches_us]
    if len({timing.point.features[INTERPRETED] for timing in known}) <= len(STEPS):
        return {}
    rows = [_counts(_LOOPS[str(timing.point.features[INTERPRETED])]) for timing in known]
    columns = {
        key: np.array([row[place] for row in rows], float)
        for place, key in enumerate((*STEPS, "sums"))
    }
    found = fit_above(columns, np.array([timing.typical_us for timing in known]))
    ratios = ratios_of(known, predict(columns, found).tolist())
    return {key: quantity_of_ratios(found[key], "us", ratios) for key in STEPS}


def _counts(loop: _Loop) -> tuple[int, ...]:
    """Return the steps of an iteration, in the order of `STEPS`, and its sums."""
    each = loop.each
    steps = each.loads, each.stores, each.operations, each.calls, each.functions
    return int(each.loop), *steps, loop.sums


_ITEM_BYTES = 8
_OPERATIONS = 2
_SHAPES = (
    (20, 30), (50, 400), (400, 50), (300, 300), (700, 680), (1000, 1010), (1500, 1300),
    (2000, 1900), (60, 5000), (5000, 60), (1024, 1024), (100, 110), (500, 500), (900, 200),
)  # fmt: skip


def _points(effort: Effort, processors: int, host: Host) -> Sequence[Point]:
    """Return nests of either order over arrays of many sizes."""
    shapes = _SHAPES if effort is Effort.FULL else _SHAPES[:6]
    return [
        Point("loop", {"rows": rows, "columns": columns, "by": by})
        for by in ("rows", "columns")
        for rows, columns in shapes
    ]


def _action(point: Point, world: World) -> Action:
    """Return one nest of a triad, ``c[i, j] = a[i, j] + s * b[i, j]``, compiled by Numba."""
    shape = int(point.features["rows"]), int(point.features["columns"])
    a, b, c = (np.full(shape, value) for value in (1.0, 2.0, 0.0))
    triad = _compiled(str(point.features["by"]))
    return repeated(lambda: triad(a, b, c, 0.5), max(1, 100_000 // a.size), alone=True)


def _fitted(timings: Sequence[Timing], host: Host) -> Fitted:
    """Fit the innermost loop, as often as it is entered."""
    runs = [_innermost(timing) for timing in timings if timing.launches_us]
    if not runs:
        return Fitted({}, (), ("Compiled loops: none was measured in the time given.",))
    memory = caches(host)
    rates, qualities = fit_classes(runs, memory)
    arrays: Json = {**caches_document(memory), "rates": rates}
    return Fitted({"arrays": arrays}, tuple(qualities))


def _innermost(timing: Timing) -> tuple[ArrayCall, Timing]:
    """Return what one entry of the innermost loop does, and its share of the time."""
    rows, columns = int(timing.point.features["rows"]), int(timing.point.features["columns"])
    by_rows = timing.point.features["by"] == "rows"
    count, entered = (columns, rows) if by_rows else (rows, columns)
    step = _ITEM_BYTES if by_rows else _ITEM_BYTES * columns
    run = Region(_ITEM_BYTES, (num(count),), (num(step),))
    # one more iteration around moves to the next row, or by one element along all of them
    moves = num(_ITEM_BYTES * columns if by_rows else _ITEM_BYTES)
    whole = num(3 * _ITEM_BYTES * rows * columns)
    visits = tuple(Visit(run, name, whole, moves) for name in "abc")
    call = ArrayCall(ArrayOperation.LOOP, "float64", num(_OPERATIONS * count), None, visits)
    shared = (
        tuple(tuple(us / entered for us in visit) for visit in launch)
        for launch in timing.launches_us
    )
    return call, Timing(timing.point, tuple(shared))


@cache
def _compiled(by: str) -> Callable[..., Any]:
    import numba

    def by_rows(a: Any, b: Any, c: Any, s: float) -> None:
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                c[i, j] = a[i, j] + s * b[i, j]

    def by_columns(a: Any, b: Any, c: Any, s: float) -> None:
        for j in range(a.shape[1]):
            for i in range(a.shape[0]):
                c[i, j] = a[i, j] + s * b[i, j]

    made: Callable[..., Any] = numba.njit(by_rows if by == "rows" else by_columns)
    return made


SECTION = Section(
    "loops",
    "compiled loops by rows and by columns",
    frozenset({Need.NUMBA}),
    _points,
    _action,
    _fitted,
)


# Ranks that compute at the same time: what their lines cost more than those of one alone.
#
# Processors share what lies beyond their own caches: the last cache and the memory. The same
# copies and sums are timed by one rank while the others wait, and by all at once, each on arrays
# of its own. What a processor does within its own caches takes no longer in company.


_LARGEST_BYTES = 128 << 20
_COUNTS = {Effort.QUICK: 8, Effort.FULL: 16}
_BYTES_PER_US = 20_000.0


def _shared_points(effort: Effort, processors: int, host: Host) -> Sequence[Point]:
    """Return working sets from half the processor's own cache on, alone and in company."""
    if processors < 2:
        return ()
    levels = cache_levels(host)
    largest = max(2 * levels[1], min(2 * levels[-1], _LARGEST_BYTES))
    sizes = spread_sizes(levels[1] // 2, largest, _COUNTS[effort], _ITEM_BYTES)
    return [
        Point(
            f"together.{operation}",
            {"bytes": size, "who": who, "ranks": processors},
        )
        for operation in ARRAYS_OF
        for size in sizes
        for who in (BY_ONE, BY_ALL)
    ]


def _shared_action(point: Point, world: World) -> Action:
    """Return a call on whole arrays; where one computes alone, the others only wait for it."""
    size = int(point.features["bytes"])
    operation = point.operation.removeprefix("together.")
    x, y, z = (_memory(which)[: size // ARRAYS_OF[operation] // _ITEM_BYTES] for which in range(3))
    step = partial(np.copyto, y, x) if operation == "copy" else partial(np.add, x, y, out=z)
    times = repetitions(size / _BYTES_PER_US)
    if point.features["who"] == BY_ONE and world.rank > 0:
        return Action(lambda: None, times)
    return repeated(step, times)


@lru_cache(maxsize=3)
def _memory(which: int) -> NDArray[np.float64]:
    # half of the largest working set is the largest array of any operation
    return np.ones(_LARGEST_BYTES // 2 // _ITEM_BYTES)


# How many times longer a cache line takes when all ranks compute, by the level it comes from.
#
# Of a call on a working set beyond a processor's own caches, the part that grows in company is what
# is left when the time of as many elements within these caches is taken off.

ARRAYS_OF: Mapping[str, int] = {"copy": 2, "add": 3}
"""The operations, and how many arrays share the working set of each."""

BY_ONE, BY_ALL = "one", "all"
_LEAST_PART = 0.25
"""Of a call's time: a smaller part of lines says little about how far their factor scatters."""


def fit_together(timings: Sequence[Timing], memory: Hierarchy) -> Fitted:
    """Find the section ``arrays.together`` of a profile: of each level, what is typical of calls.

    The ends are those of single calls that consist of such lines to a good part; a factor below 1
    is a disturbed measurement.

    Parameters
    ----------
    timings : sequence of Timing
    memory : Hierarchy
        Whose first two levels are a processor's own.
    """
    times: dict[tuple[str, int], dict[str, float]] = {}
    for timing in timings:
        if timing.launches_us:
            key = timing.point.operation, int(timing.point.features["bytes"])
            times.setdefault(key, {})[str(timing.point.features["who"])] = timing.typical_us
    each_us: dict[str, float] = {}
    for (operation, size), us in times.items():
        if size <= memory.levels[1] and BY_ONE in us:
            each_us[operation] = min(us[BY_ONE] / size, each_us.get(operation, np.inf))
    seen: dict[str, list[float]] = {}
    for (operation, size), us in times.items():
        if operation in each_us and len(us) == 2:
            own = each_us[operation] * size
            lines = us[BY_ONE] - own
            if lines >= _LEAST_PART * us[BY_ONE]:
                farther = zip(memory.levels[1:], memory.keys, strict=False)
                piece = next((key for level, key in farther if size <= level), memory.keys[-1])
                seen.setdefault(piece, []).append(max(1.0, (us[BY_ALL] - own) / lines))
    stated: dict[str, Json] = {}
    last: list[float] = []
    for piece in memory.keys[1:]:
        # what is farther than anything measured is shared as much as the farthest that was
        last = seen.get(piece, last)
        if last:
            stated[piece] = measured(median(last), "1", min(last), max(last))
    if not stated:
        return Fitted({}, (), ("Ranks together: no working set was measured in the time given.",))
    together: Json = {f"p{timings[0].point.features['ranks']}": {"line_factor": stated}}
    return Fitted({"arrays": {**caches_document(memory), "together": together}})


TOGETHER = Section(
    "together",
    "arrays of ranks that compute at the same time",
    frozenset((Need.MPI,)),
    _shared_points,
    _shared_action,
    lambda timings, host: fit_together(timings, caches(host)),
)
