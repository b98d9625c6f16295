"""One pass of radix sort: count the digits, and sum the counts up to places.

Keys are in blocks over the ranks, and so are the counters. A key's digit may be any, so most
increments are remote, one by one. The places come from a prefix sum over the counters.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(thread=12)


@kernel(N=1_000_000, R=65_536)
def count_digits(
    keys: Annotated[NDArray[np.int64], Dist("N", Block("thread"), on=mesh)],
    counters: Annotated[NDArray[np.int64], Dist("R", Block("thread"), on=mesh)],
    places: Annotated[NDArray[np.int64], Dist("R", Block("thread"), on=mesh)],
) -> NDArray[np.int64]:
    """Add the number of keys of each digit to `counters`; store where each digit ends in `places`.

    Parameters
    ----------
    keys : array of int64, shape (N,)
        Each at least 0 and less than R.
    counters, places : array of int64, shape (R,)
    """
    np.add.at(counters, keys, 1)
    places[...] = np.cumsum(counters)
    return places


if __name__ == "__main__":
    digits = np.array([2, 0, 2, 3, 1, 2])
    print(count_digits(digits, np.zeros(4, dtype=np.int64), np.empty(4, dtype=np.int64)))
