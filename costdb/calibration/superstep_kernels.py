"""Supersteps with real threads: what each processor reads and writes, near or far; needs numba."""

from __future__ import annotations

import numpy as np
from numba import njit, prange, set_num_threads
from numpy.typing import NDArray

from costdb.calibration.superstep_points import ELEMENT_BYTES, LINE_BYTES

Numbers = NDArray[np.int64]

ELEMENTS_IN_LINE = LINE_BYTES // ELEMENT_BYTES


@njit(parallel=True, cache=True)  # type: ignore[untyped-decorator]
def _superstep(
    shared: Numbers, reads: Numbers, writes: Numbers, between: int, step: int, sums: Numbers
) -> None:
    for processor in prange(reads.size):
        first = processor * between
        total = np.int64(0)
        for k in range(reads[processor]):
            total += shared[first + k * step]
        # One line for each processor, so that the sums are not fought over.
        sums[processor * ELEMENTS_IN_LINE] = total
    for processor in prange(reads.size):
        first = processor * between
        for k in range(writes[processor]):
            shared[first + k * step] = k


class Superstep:
    """A superstep over a shared array: all copy in, then all copy out.

    Parameters
    ----------
    reads, writes : tuple of int
        Elements of each processor.
    good : bool
        Consecutive elements apart from the others', which stay in the processor's own cache;
        else every access on another line, over which all processors fight.
    """

    def __init__(self, reads: tuple[int, ...], writes: tuple[int, ...], *, good: bool) -> None:
        most = max(*reads, *writes)
        self._threads = len(reads)
        if good:
            # Whole lines between processors, so that none touches another's.
            self._between, self._step = -(-most // ELEMENTS_IN_LINE) * ELEMENTS_IN_LINE, 1
            elements = self._between * self._threads
        else:
            self._between, self._step = 1, ELEMENTS_IN_LINE
            elements = (most + self._threads) * ELEMENTS_IN_LINE
        self._shared = _on_lines(elements)
        self._reads, self._writes = np.array(reads), np.array(writes)
        self._sums = _on_lines(self._threads * ELEMENTS_IN_LINE)

    def __call__(self) -> None:
        """Do all reads and writes, each processor in its own thread, and wait for all."""
        set_num_threads(self._threads)
        _superstep(self._shared, self._reads, self._writes, self._between, self._step, self._sums)


def _on_lines(elements: int) -> Numbers:
    raw = np.empty(elements + ELEMENTS_IN_LINE, dtype=np.int64)
    skip = (-raw.ctypes.data % LINE_BYTES) // ELEMENT_BYTES
    found: Numbers = raw[skip : skip + elements]
    found[:] = 1  # pages that were never written are no memory yet
    return found
