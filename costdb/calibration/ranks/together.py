"""Ranks that compute at the same time: what their lines cost more than those of one alone.

Processors share what lies beyond their own caches: the last cache and the memory. The same copies
and sums are timed by one rank while the others wait, and by all at once, each on arrays of its
own. What a processor does within its own caches takes no longer in company.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from costdb.arrays.memory import Hierarchy
from costdb.calibration.array_calls.fit import cache_levels, caches, caches_document
from costdb.calibration.fitting import quality
from costdb.calibration.host.hardware import Host
from costdb.calibration.section import (
    Action,
    Effort,
    Fitted,
    Need,
    Point,
    Quality,
    Timing,
    World,
    repetitions,
    spread_sizes,
)
from costdb.machines.documents import Json, measured

_LARGEST_BYTES = 128 << 20
_COUNTS = {Effort.QUICK: 8, Effort.FULL: 16}
_ITEM_BYTES = 8
_BYTES_PER_US = 20_000.0


class Together:
    """The section that measures and fits ``arrays.together``."""

    name = "together"
    title = "arrays of ranks that compute at the same time"
    needs = frozenset((Need.MPI,))

    def points(self, effort: Effort, processors: int, host: Host) -> Sequence[Point]:
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
                held_out=(number + turn) % 2 == 1,
            )
            for turn, operation in enumerate(ARRAYS_OF)
            for number, size in enumerate(sizes)
            for who in (ONE, ALL)
        ]

    def action(self, point: Point, world: World) -> Action:
        """Return a call on whole arrays; where one computes alone, the others only wait for it."""
        size = int(point.features["bytes"])
        operation = point.operation.removeprefix("together.")
        count = size // ARRAYS_OF[operation] // _ITEM_BYTES
        x, y, z = (_doubles(which, count) for which in range(3))
        times = repetitions(size / _BYTES_PER_US)
        idle = point.features["who"] == ONE and world.rank > 0

        def run() -> None:
            for _ in range(0 if idle else times):
                if operation == "copy":
                    np.copyto(y, x)
                else:
                    np.add(x, y, out=z)

        return Action(run, times)

    def fit(self, timings: Sequence[Timing], host: Host) -> Fitted:
        """Fit how many times longer lines take, by the level that they come from."""
        return fit_together(timings, caches(host))


SECTION = Together()


@lru_cache(maxsize=3)
def _memory(which: int) -> NDArray[np.float64]:
    # half of the largest working set is the largest array of any operation
    return np.ones(_LARGEST_BYTES // 2 // _ITEM_BYTES)


def _doubles(which: int, count: int) -> NDArray[np.float64]:
    return _memory(which)[:count]


# How many times longer a cache line takes when all ranks compute, by the level it comes from.
#
# Of a call on a working set beyond a processor's own caches, the part that grows in company is what
# is left when the time of as many elements within these caches is taken off.

ARRAYS_OF: Mapping[str, int] = {"copy": 2, "add": 3}
"""The operations, and how many arrays share the working set of each."""

ONE, ALL = "one", "all"
_LEAST_PART = 0.25
"""Of a call's time: a smaller part of lines says little about how far their factor scatters."""


def fit_together(timings: Sequence[Timing], memory: Hierarchy) -> Fitted:
    """Fit the section ``arrays.together`` of a profile.

    Parameters
    ----------
    timings : sequence of Timing
    memory : Hierarchy
        Whose first two levels are a processor's own.
    """
    pairs = _Pairs(timings, memory)
    factors: dict[str, float] = {}
    stated: dict[str, Json] = {}
    last: tuple[float, float, float] | None = None
    for key in memory.keys[1:]:
        last = pairs.factor(key) or last
        if last is not None:
            # what is farther than anything measured is shared as much as the farthest that was
            stated[key] = measured(last[0], "1", *last[1:])
            factors[key] = last[0]
    if not stated:
        return Fitted({}, (), ("Ranks together: no working set was measured in the time given.",))
    ranks = int(timings[0].point.features["ranks"])
    arrays: Json = {
        **caches_document(memory),
        "together": {f"p{ranks}": {"line_factor": stated}},
    }
    return Fitted({"arrays": arrays}, tuple(pairs.qualities(factors)))


class _Pairs:
    """Times of the same call by one rank and by all."""

    def __init__(self, timings: Sequence[Timing], memory: Hierarchy) -> None:
        self._levels, self._keys = memory.levels, memory.keys
        self._times: dict[tuple[str, int], dict[str, Timing]] = {}
        for timing in timings:
            if timing.launches_us:
                key = timing.point.operation, int(timing.point.features["bytes"])
                self._times.setdefault(key, {})[str(timing.point.features["who"])] = timing

    def factor(self, piece: str) -> tuple[float, float, float] | None:
        """Return the factor of lines from a piece, by relative least squares, and its ends.

        The ends are those of the single calls that consist of such lines to a good part. None
        where no call has any; a factor below 1 is a disturbed measurement.
        """
        found = [
            (alone - own, together - own, together, alone)
            for alone, together, own in self._parts(piece, held_out=False)
        ]
        norm = sum((lines / together) ** 2 for lines, _, together, _ in found)
        if not norm:
            return None
        fitted = sum(lines * grown / together**2 for lines, grown, together, _ in found) / norm
        seen = [grown / lines for lines, grown, _, alone in found if lines >= _LEAST_PART * alone]
        ends = min([fitted, *seen]), max([fitted, *seen])
        return max(1.0, fitted), max(1.0, ends[0]), max(1.0, ends[1])

    def qualities(self, factors: Mapping[str, float]) -> Iterator[Quality]:
        """Yield how well the factors predict calls in company, beside what one alone takes."""
        found = [
            (together, own + factors[piece] * (alone - own), alone)
            for piece in factors
            for alone, together, own in self._parts(piece, held_out=True)
        ]
        if found:
            times, predicted, alone = (np.array(column) for column in zip(*found, strict=True))
            yield quality("together", "as one alone", times, alone, chosen=False)
            yield quality("together", "shared lines", times, predicted, chosen=True)

    def _parts(self, piece: str, *, held_out: bool) -> Iterator[tuple[float, float, float]]:
        """Yield the times of one and of all, and what of them is not of shared lines."""
        for (operation, size), both in self._times.items():
            each_us = self._own_us_per_byte(operation)
            if each_us is None or len(both) < 2 or self._piece(size) != piece:
                continue
            if both[ALL].point.held_out is held_out:
                alone = both[ONE].typical_us
                yield alone, both[ALL].typical_us, min(each_us * size, alone)

    def _own_us_per_byte(self, operation: str) -> float | None:
        """Return what a byte takes within a processor's own caches, None where that is unknown."""
        times = [
            both[ONE].typical_us / size
            for (name, size), both in self._times.items()
            if name == operation and size <= self._levels[1] and ONE in both
        ]
        return min(times, default=None)

    def _piece(self, size: int) -> str:
        for level, key in zip(self._levels[1:], self._keys, strict=False):
            if size <= level:
                return key
        return self._keys[-1]
