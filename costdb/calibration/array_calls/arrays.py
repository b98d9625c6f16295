"""Array operations and the interpreter's steps: what the array model makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from costdb.arrays.amounts import FAULT, PAGE_BYTES
from costdb.calibration.array_calls.actions import LARGE_BYTES, action_of
from costdb.calibration.array_calls.fit import caches, caches_document, ends_of, fit_classes
from costdb.calibration.array_calls.loops import (
    INTERPRETED,
    fit_steps,
    interpreted_action,
    interpreted_points,
)
from costdb.calibration.array_calls.points import array_points, call_of, fault_points
from costdb.calibration.host.hardware import Host
from costdb.calibration.section import Action, Effort, Fitted, Need, Point, Timing, World
from costdb.machines.documents import Json, measured
from costdb.repetition import ALONE


@dataclass(frozen=True, slots=True)
class ArraySection:
    """Calls of NumPy by class, element type, strides and working set."""

    name: str = "arrays"
    title: str = "array operations by class, element type, strides and working set"
    needs: frozenset[Need] = frozenset()

    def points(self, effort: Effort, processors: int, host: Host) -> Sequence[Point]:
        """Return the calls to time, and the loops that an interpreter goes through."""
        return [*interpreted_points(), *fault_points(), *array_points(effort)]

    def action(self, point: Point, world: World) -> Action:
        """Return what is timed."""
        return interpreted_action(point) if INTERPRETED in point.features else action_of(point)

    def fit(self, timings: Sequence[Timing], host: Host) -> Fitted:
        """Fit every class by itself."""
        # the process that measures decides how many threads NumPy may have, before it is imported
        from costdb.calibration.fitting import repetition

        memory = caches(host)
        loops = [timing for timing in timings if INTERPRETED in timing.point.features]
        large = [timing for timing in timings if "memory" in timing.point.features]
        calls = [timing for timing in timings if "operation" in timing.point.features]
        made = [(call_of(timing.point), timing) for timing in calls]
        rates, qualities = fit_classes(made, memory)
        elements = [
            int(t.point.features.get("rows", 1)) * int(t.point.features.get("columns", 1))
            for t in calls
        ]
        arrays: dict[str, Json] = {
            **caches_document(memory),
            "rates": rates,
            **_fault({str(t.point.features["memory"]): t for t in large if t.launches_us}),
            "range": {"elements": [1, max(elements, default=1)]},
        }
        parts: dict[str, Json] = {"arrays": arrays}
        python = fit_steps(loops)
        if python:
            parts["python"] = python
        parts |= repetition(ALONE, [*calls, *loops])
        note = "Array operations: steady state of a process that has run a while, one BLAS thread."
        return Fitted(parts, tuple(qualities), (note,))


def _fault(by_memory: dict[str, Timing]) -> dict[str, Json]:
    """Return what a page takes that the system gives anew, where both ways were timed."""
    if len(by_memory) < 2:
        return {}
    pages, kept_us = LARGE_BYTES / PAGE_BYTES, by_memory["kept"].typical_us
    low, middle, high = (max(0.0, us - kept_us) / pages for us in ends_of(by_memory["anew"]))
    return {FAULT: measured(middle, "us/page", low, high)}


SECTION = ArraySection()
