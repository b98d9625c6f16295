"""A short loop in the first cache, whose time tells whether another guest computes on the core.

Where a host runs two virtual processors on the two hardware threads of one core, each slows the
other down, and no process is told: neither load nor stolen time shows it. What needs the core's
units all the time does: additions of a few kilobytes that stay in the first cache.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache

from costdb.calibration.host.one_thread import numpy_on_one_thread

Sentinel = Callable[[], float]
"""Takes its time and returns it, in microseconds."""

# Two arrays of 4 KB leave what a sample has in the first cache nearly as it was.
_ELEMENTS = 512
_CALLS = 14
_BLOCKS = 2
_NANOSECONDS_PER_US = 1000


@cache
def sentinel_of(threads: int) -> Sentinel:
    """Return the sentinel of this thread's core or, slowest counting, of so many threads' cores.

    Parameters
    ----------
    threads : int
        More than 1 needs numba, whose threads are those that it watches.
    """
    if threads > 1:
        from costdb.calibration.host.sentinel_threads import additions_of

        return _least_of(additions_of(threads))
    np = numpy_on_one_thread()
    ones, sums = np.ones(_ELEMENTS), np.zeros(_ELEMENTS)
    add = np.add

    def additions() -> None:
        for _ in range(_CALLS):
            add(ones, ones, sums)

    return _least_of(additions)


def _least_of(run: Callable[[], object]) -> Sentinel:
    """Return what times `run` twice: an interrupt then falls on one of both, and does not count."""
    clock = time.perf_counter_ns

    def timed() -> float:
        least = 0
        for _ in range(_BLOCKS):
            begin = clock()
            run()
            taken = clock() - begin
            least = min(least or taken, taken)
        return least / _NANOSECONDS_PER_US

    run()  # compiles, or loads what was compiled, and touches the memory
    return timed
