"""Supersteps with real threads: what each processor reads and writes, near or far; needs numba.

Near accesses follow one another in memory of the processor's own, which stays in its cache from
one superstep to the next. Far ones are what caches cannot help with: each is on another line, in
an order that no prefetcher foresees, of memory that is several times the last cache's and that
another processor used last. What a processor writes are other lines than it has just read: those
are in its own cache as long as they are few, and the first writes of a superstep then took a third
of what later ones took. Processors stay apart at any one time: those that fight for a line at the
same moment take from once to five times as long from one run to the next, by who comes first,
which is no function of how many accesses there are.
"""

from __future__ import annotations

import math
import random
from functools import lru_cache

import numpy as np
from numba import njit, prange, set_num_threads
from numpy.typing import NDArray

LINE_BYTES = 64

Numbers = NDArray[np.int64]

ELEMENT_BYTES = np.dtype(np.int64).itemsize
ELEMENTS_IN_LINE = LINE_BYTES // ELEMENT_BYTES
_GOLDEN = (math.sqrt(5) - 1) / 2
_LARGEST_ARENA_BYTES = 512 << 20


@njit(parallel=True, cache=True)  # type: ignore[untyped-decorator]
def _near(shared: Numbers, reads: Numbers, writes: Numbers, between: int, sums: Numbers) -> None:
    for processor in prange(reads.size):
        first = processor * between
        total = np.int64(0)
        for k in range(reads[processor]):
            total += shared[first + k]
        # One line for each processor, so that the sums are not fought over.
        sums[processor * ELEMENTS_IN_LINE] = total
    for processor in prange(reads.size):
        first = processor * between
        for k in range(writes[processor]):
            shared[first + k] = k


@njit(parallel=True, cache=True)  # type: ignore[untyped-decorator]
def _far(
    arena: Numbers,
    reads: Numbers,
    writes: Numbers,
    lines: int,
    hop: int,
    start: int,
    middle: int,
    turn: int,
    sums: Numbers,
) -> None:
    for processor in prange(reads.size):
        first = (processor + turn) % reads.size * lines
        line, total = start, np.int64(0)
        for _ in range(reads[processor]):
            total += arena[(first + line) * ELEMENTS_IN_LINE]
            line += hop
            if line >= lines:
                line -= lines
        sums[processor * ELEMENTS_IN_LINE] = total
    for processor in prange(reads.size):
        first = (processor + turn) % reads.size * lines
        line = middle
        for k in range(writes[processor]):
            arena[(first + line) * ELEMENTS_IN_LINE] = k
            line += hop
            if line >= lines:
                line -= lines


class Near:
    """A superstep of the Good family: all copy in, then all copy out.

    Parameters
    ----------
    reads, writes : tuple of int
        Elements of each processor.
    """

    def __init__(self, reads: tuple[int, ...], writes: tuple[int, ...]) -> None:
        most = max(*reads, *writes)
        self.threads = len(reads)
        # Whole lines between processors, so that none touches another's.
        self.between = -(-most // ELEMENTS_IN_LINE) * ELEMENTS_IN_LINE
        self.shared = _on_lines(self.between * self.threads)
        self.sums = _on_lines(self.threads * ELEMENTS_IN_LINE)
        self._reads, self._writes = np.array(reads), np.array(writes)

    def __call__(self) -> None:
        """Do all reads and writes, each processor in its own thread, and wait for all."""
        set_num_threads(self.threads)
        _near(self.shared, self._reads, self._writes, self.between, self.sums)


class Far:
    """A superstep of the Bad family.

    Parameters
    ----------
    reads, writes : tuple of int
        Elements of each processor.
    beyond_bytes : int
        What lies beyond all caches. The arena is twice as large, within reason.

    Notes
    -----
    A processor's accesses go on where the superstep before ended, in the share of the arena that
    its neighbour had then; the writes go on behind the reads.
    """

    def __init__(self, reads: tuple[int, ...], writes: tuple[int, ...], beyond_bytes: int) -> None:
        self.threads = len(reads)
        self.arena = _arena(min(2 * beyond_bytes, _LARGEST_ARENA_BYTES))
        self.lines = self.arena.size // ELEMENTS_IN_LINE // self.threads
        self.sums = _on_lines(self.threads * ELEMENTS_IN_LINE)
        # Not where the last superstep of another plan began, whose lines may still be near.
        self.start, self.turn = random.randrange(self.lines), 0
        self._hop = _hop(self.lines)
        self._most_reads, self._most_writes = max(reads), max(writes)
        self._reads, self._writes = np.array(reads), np.array(writes)

    @property
    def middle(self) -> int:
        """The line behind the last one that any processor reads: there they begin to write."""
        return (self.start + self._most_reads * self._hop) % self.lines

    def move(self) -> None:
        """Go on to lines that were not used lately, and last by another processor."""
        self.start = (self.middle + self._most_writes * self._hop) % self.lines
        self.turn = (self.turn + 1) % self.threads

    def __call__(self) -> None:
        """Do all reads and writes, each processor in its own thread, and wait for all."""
        set_num_threads(self.threads)
        _far(
            self.arena,
            self._reads,
            self._writes,
            self.lines,
            self._hop,
            self.start,
            self.middle,
            self.turn,
            self.sums,
        )


def _hop(lines: int) -> int:
    """Return a step around so many lines that comes to all of them, far from one another."""
    hop = max(1, round(lines * _GOLDEN))
    while math.gcd(hop, lines) > 1:
        hop += 1
    return hop


@lru_cache(maxsize=1)
def _arena(size_bytes: int) -> Numbers:
    # One for all points: fresh memory would be timed for its page faults.
    return _on_lines(size_bytes // ELEMENT_BYTES)


def _on_lines(elements: int) -> Numbers:
    raw = np.empty(elements + ELEMENTS_IN_LINE, dtype=np.int64)
    skip = (-raw.ctypes.data % LINE_BYTES) // ELEMENT_BYTES
    found: Numbers = raw[skip : skip + elements]
    found[:] = 1  # pages that were never written are no memory yet
    return found
