"""Ranks that compute at the same time: what their lines cost more than those of one alone.

Processors share what lies beyond their own caches: the last cache and the memory. The same copies
and sums are timed by one rank while the others wait, and by all at once, each on arrays of its
own. What a processor does within its own caches takes no longer in company.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from costdb.calibration.array_calls.arrays import cache_levels, caches
from costdb.calibration.host.hardware import Host
from costdb.calibration.ranks.together_fit import ALL, ARRAYS_OF, ONE, fit_together
from costdb.calibration.section import Action, Effort, Fitted, Need, Point, Timing, World
from costdb.calibration.sizes import repetitions, spread_sizes

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
