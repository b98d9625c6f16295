"""The sentinel of several threads, which numba runs: each adds in the first cache of its core."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit, prange, set_num_threads
from numpy.typing import NDArray

_ELEMENTS = 512
_PASSES = 150


@njit(parallel=True, cache=True)  # type: ignore[untyped-decorator]
def _additions(shares: NDArray[np.float64], passes: int) -> None:
    for processor in prange(shares.shape[0]):
        share = shares[processor]
        for _ in range(passes):
            for k in range(share.size):
                share[k] = 0.5 * share[k] + 1.0


def additions_of(threads: int) -> Callable[[], None]:
    """Return additions by so many threads at once, which end when the slowest has done its own."""
    shares = np.ones((threads, _ELEMENTS))

    def additions() -> None:
        set_num_threads(threads)
        _additions(shares, _PASSES)

    return additions
