"""Staying on the core that other guests of the host use least, for what one thread does alone.

Guests use some cores' sibling hardware threads for minutes and leave others alone. Where the
system moves a process from one to the other, its times differ by a half from one launch to the
next; on the calmest core they repeat. What several ranks or threads do needs all cores as they are.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

# NumPy with its matrix products on one thread, as a rank among others has it.

_NAMES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def numpy_on_one_thread() -> Any:
    """Return NumPy, whose library counts its threads once, when it is loaded.

    Who set the number of threads in the environment, or loaded NumPy already, is left alone.
    """
    if "numpy" not in sys.modules:
        for name in _NAMES:
            os.environ.setdefault(name, "1")
    import numpy

    return numpy


# What the C library does with freed memory: kept for good, or as in a program of some size.
#
# It keeps of the heap's free end twice the largest array that was ever freed, and gives back more.
# A process that measures arrays of many sizes has freed the largest long ago, and so keeps what a
# program with smaller ones gives back and gets anew, page by page, each time. What is measured is
# told which of the two it means. On other C libraries nothing is set.

_TRIM, _MAPPED_FROM, _MAPPED_AT_MOST = -1, -3, -4  # the C library's names for its settings
_HEAP_BYTES = 216_000
"""What the C library keeps of a heap without large arrays."""
_HEADER_BYTES = 8192
"""What an object has around its elements, and the rest of its last page, are less."""


@cache
def keep_freed_memory() -> None:
    """Tell the C library to keep what is freed, so that no sample pays for memory itself."""
    _set(_TRIM, 2**31 - 1)
    _set(_MAPPED_AT_MOST, 0)


def keep_as_with(largest_bytes: int) -> None:
    """Tell the C library to keep what it does in a program whose largest array is so large."""
    largest = max(_HEAP_BYTES, largest_bytes) + _HEADER_BYTES
    _set(_MAPPED_FROM, largest)
    _set(_TRIM, 2 * largest)


def _set(name: int, value: int) -> None:
    import ctypes

    change = getattr(ctypes.CDLL(None), "mallopt", None)
    if change is not None:
        change(name, value)


# A short loop in the first cache, whose time tells whether another guest computes on the core.
#
# Where a host runs two virtual processors on the two hardware threads of one core, each slows the
# other down, and no process is told: neither load nor stolen time shows it. What needs the core's
# units all the time does: additions of a few kilobytes that stay in the first cache.

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


_MOST_CORES = 8
"""Of more than so many the first ones are tried: a look at each costs some tens of microseconds."""
_CALM = 1.1
"""A core on which the sentinel takes so little more than it ever did is as good as any."""
_LOOKS = 3


@contextmanager
def on_calm_cores(sentinel: Sentinel | None = None) -> Iterator[Callable[[], None]]:
    """Give what moves this process to the calmest core it may use, whenever it is called.

    Where a process has one core or its system knows of none, it does nothing. In the end the
    process may use all its cores again.

    Parameters
    ----------
    sentinel : callable, optional
        Returns what it takes on the core where it is called.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield lambda: None
        return
    allowed = os.sched_getaffinity(0)
    cores = sorted(allowed)[:_MOST_CORES]
    if len(cores) < 2:
        yield lambda: None
        return
    timed = sentinel_of(1) if sentinel is None else sentinel
    least = float("inf")

    def here() -> float:
        return min(timed() for _ in range(_LOOKS))

    def on(core: int) -> float:
        os.sched_setaffinity(0, {core})
        return here()

    def stay() -> None:
        nonlocal least
        now = os.sched_getaffinity(0)
        if len(now) == 1 and here() <= _CALM * least:
            return
        taken = {core: on(core) for core in cores}
        calmest = min(taken, key=taken.__getitem__)
        least = min(least, taken[calmest])
        # to move leaves the caches behind, so cores that are alike are no reason to
        alike = [core for core in now if len(now) == 1 and taken[core] <= _CALM * taken[calmest]]
        os.sched_setaffinity(0, set(alike) or {calmest})

    try:
        yield stay
    finally:
        os.sched_setaffinity(0, allowed)
