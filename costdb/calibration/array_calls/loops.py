"""Compiled loops over elements, by rows and by columns: what they cost where nothing interprets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from costdb.calibration.array_calls.arrays import caches, caches_document
from costdb.calibration.array_calls.fit import fit_calls
from costdb.calibration.host.hardware import Host
from costdb.calibration.section import Action, Effort, Fitted, Need, Point, Timing, World
from costdb.expr import num
from costdb.machines.documents import Json
from costdb.work import ArrayCall, ArrayOperation, Region, Visit

_ITEM_BYTES = 8
_OPERATIONS = 2
_SHAPES = (
    (20, 30), (50, 400), (400, 50), (300, 300), (700, 680), (1000, 1010), (1500, 1300),
    (2000, 1900), (60, 5000), (5000, 60), (1024, 1024), (100, 110), (500, 500), (900, 200),
)  # fmt: skip
_HELD_OUT = (3, 5, 11)


@dataclass(frozen=True, slots=True)
class LoopSection:
    """A triad, ``c[i, j] = a[i, j] + s * b[i, j]``, compiled by Numba."""

    name: str = "loops"
    title: str = "compiled loops by rows and by columns"
    needs: frozenset[Need] = frozenset({Need.NUMBA})

    def points(self, effort: Effort, processors: int, host: Host) -> Sequence[Point]:
        """Return nests of either order over arrays of many sizes."""
        shapes = _SHAPES if effort is Effort.FULL else _SHAPES[:6]
        return [
            Point("loop", {"rows": rows, "columns": columns, "by": by}, number in _HELD_OUT)
            for by in ("rows", "columns")
            for number, (rows, columns) in enumerate(shapes)
        ]

    def action(self, point: Point, world: World) -> Action:
        """Return one nest."""
        import numpy as np

        shape = int(point.features["rows"]), int(point.features["columns"])
        a, b, c = (np.full(shape, value) for value in (1.0, 2.0, 0.0))
        triad = _compiled(str(point.features["by"]))
        times = max(1, 100_000 // a.size)

        def run() -> None:
            for _ in range(times):
                triad(a, b, c, 0.5)

        return Action(run, times, alone=True)

    def fit(self, timings: Sequence[Timing], host: Host) -> Fitted:
        """Fit the innermost loop, as often as it is entered."""
        runs = [_innermost(timing.on_idle_cores()) for timing in timings if timing.launches_us]
        if not runs:
            return Fitted({}, (), ("Compiled loops: none was measured in the time given.",))
        memory = caches(host)
        found, qualities = fit_calls("loop", "float64", runs, memory)
        rates: Json = {"loop": {"float64": found.document()}}
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


SECTION = LoopSection()
