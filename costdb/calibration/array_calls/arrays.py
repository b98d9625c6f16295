"""Array operations, the interpreter's steps, and what the array model makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from costdb.arrays.hierarchy import Hierarchy, hierarchy
from costdb.arrays.rates import KEPT, WHOLE
from costdb.calibration.array_calls.fit import fit_classes, measured
from costdb.calibration.array_calls.interpreted import (
    INTERPRETED,
    STEP,
    in_loops,
    interpreted_action,
    interpreted_points,
    step_action,
    step_points,
    steps_alone,
)
from costdb.calibration.array_calls.point_actions import action_of
from costdb.calibration.array_calls.points import array_points
from costdb.calibration.array_calls.sequence_points import (
    SEQUENCE,
    fit_sequences,
    sequence_action,
    sequence_points,
)
from costdb.calibration.array_calls.view_points import WALK, kept_of, walk_points
from costdb.calibration.host.hardware import Host
from costdb.calibration.section import Action, Effort, Fitted, Need, Point, Timing, World
from costdb.machines.documents import Json
from costdb.repetition import ALONE

_NO_CALLS = frozenset((STEP, SEQUENCE, INTERPRETED, WALK))
_LINE_BYTES = 64
_LEVELS = (32 * 2**10, 2**20, 8 * 2**20, 32 * 2**20)
_RATIO, _FARTHEST_BYTES = 4, 64 * 2**20
"""Of the ends of pieces beyond the second cache; and the farthest, as arrays that are timed are
not much larger."""


@dataclass(frozen=True, slots=True)
class ArraySection:
    """Calls of NumPy by class, element type, strides and working set."""

    name: str = "arrays"
    title: str = "array operations by class, element type, strides and working set"
    needs: frozenset[Need] = frozenset()

    def points(self, effort: Effort, processors: int, host: Host) -> Sequence[Point]:
        """Return the calls to time, and the steps of an interpreted loop."""
        loops = interpreted_points()
        calls = [*array_points(effort), *walk_points(effort)]
        return [*step_points(), *loops, *calls, *sequence_points(effort)]

    def action(self, point: Point, world: World) -> Action:
        """Return what is timed."""
        if STEP in point.features:
            return step_action(point)
        if INTERPRETED in point.features:
            return interpreted_action(point)
        return sequence_action(point) if SEQUENCE in point.features else action_of(point)

    def fit(self, timings: Sequence[Timing], host: Host) -> Fitted:
        """Fit every class by itself, and then what programs of several calls have on top."""
        # the process that measures decides how many threads NumPy may have, before it is imported
        from costdb.calibration.fitting import repetition

        memory = caches(host)
        kept = kept_of([timing.on_idle_cores() for timing in timings], memory)
        memory = memory if kept is None else replace(memory, kept=kept)
        steps = {
            str(t.point.features[STEP]): t
            for t in timings
            if STEP in t.point.features and t.launches_us
        }
        programs = [timing for timing in timings if SEQUENCE in timing.point.features]
        calls = [t for t in timings if t.point.features.keys().isdisjoint(_NO_CALLS)]
        # what computes for itself repeats best on a core of its own; what a program meets besides
        # is in the factor of whole programs, whose samples are of all states of the machine
        idle = [timing.on_idle_cores() for timing in calls]
        classes, qualities, fresh = fit_classes(idle, memory)
        rates: dict[str, Json] = {}
        for one in classes:
            by_type = rates.setdefault(one.key, {})
            assert isinstance(by_type, dict)
            by_type[one.dtype] = one.document()
        elements = [
            int(t.point.features.get("rows", 1)) * int(t.point.features.get("columns", 1))
            for t in calls
        ]
        arrays: dict[str, Json] = {
            **caches_document(memory),
            **({} if kept is None else {KEPT: measured(kept, "1")}),
            "rates": rates,
            "fresh": {"line_us": fresh},
            "range": {"elements": [1, max(elements, default=1)]},
        }
        parts: dict[str, Json] = {"arrays": arrays}
        loops = [timing for timing in timings if INTERPRETED in timing.point.features]
        python = in_loops(steps_alone(steps), loops)
        if python:
            parts["python"] = python
        whole, judged = fit_sequences(programs, parts, memory.line_bytes)
        if whole is not None:
            arrays[WHOLE] = whole
        # what programs do is repeated as they are, and so are loops; single calls less far
        parts |= repetition(ALONE, [*programs, *loops])
        notes = [
            "Array operations: steady state of a process that has run a while, one BLAS thread.",
        ]
        chosen = sum(one is not timing for one, timing in zip(idle, calls, strict=True))
        if chosen:
            notes.append(
                f"Array operations: the rates of {chosen} of {len(calls)} points are of samples "
                "during which no other guest used the core; the factor of whole programs is of all."
            )
        return Fitted(parts, (*qualities, *judged), tuple(notes))


def caches_document(memory: Hierarchy) -> dict[str, Json]:
    """Return the ends of the pieces, and the caches' ways, as a profile states them."""
    keys = [f"b{level}" for level in memory.levels]
    return {
        "levels": {k: measured(size, "byte") for k, size in zip(keys, memory.levels, strict=True)},
        "way_bytes": {k: measured(way, "byte") for k, way in zip(keys, memory.ways, strict=True)},
    }


def cache_levels(host: Host) -> tuple[int, ...]:
    """Return the ends of the pieces of shared memory, whose last reaches beyond the caches."""
    caches_found = _stated(host)
    if caches_found is None:
        return (*_LEVELS, 2 * _LEVELS[-1])
    # a large cache is shared, so that its far end is slower than its near one
    (first, _), (second, _), (last, _) = caches_found
    return first, second, max(last // 4, second + 1), last, 2 * last


def caches(host: Host) -> Hierarchy:
    """Return up to how many bytes data counts as being in each piece of the memory.

    The first two caches are a process's own. Of the last one nobody states what a process has:
    others use it too, and pages that lie far apart must be looked up. So times grow step by step
    from the second cache on, and pieces of equal ratios follow the growth up to the last cache, or
    to what is measured of a larger one.
    """
    found = _stated(host)
    if found is None:
        return hierarchy(_LEVELS, _LINE_BYTES)
    (first, first_way), (second, second_way), (last, last_way) = found
    farthest, end = min(last, _FARTHEST_BYTES), 2 * second
    ends = [first, second]
    while end < farthest:
        ends.append(end)
        end *= _RATIO
    ends.append(max(farthest, second + 1))
    ways = first_way, second_way, *(last_way for _ in ends[2:])
    return hierarchy(ends, _LINE_BYTES, ways if all(ways) else ())


def _stated(host: Host) -> list[tuple[int, int]] | None:
    """Return the bytes of each cache and of one of its ways, None where they are not all told."""
    found = {cache.level: (cache.size_bytes, cache.way_bytes) for cache in host.caches}
    return [found[level] for level in (1, 2, 3)] if sorted(found) == [1, 2, 3] else None


SECTION = ArraySection()
