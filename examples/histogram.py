"""Histogram: increments at places that only the data know.

The table is dealt out cyclically, so an increment is remote with probability ``(T-1)/T`` on ``T``
threads, and no two of them can be combined.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from advisor import Block, Cyclic, Dist, Mesh, kernel

mesh = Mesh(thread=12)


@kernel(N=1_000_000, M=500_000)
def histogram(
    table: Annotated[NDArray[np.int64], Dist("N", Cyclic("thread"), on=mesh)],
    places: Annotated[NDArray[np.int64], Dist("M", Block("thread"), on=mesh)],
) -> NDArray[np.int64]:
    """Count how often each place occurs, in `table`.

    Parameters
    ----------
    table : array of int64, shape (N,)
    places : array of int64, shape (M,)
        Each at least 0 and less than N.
    """
    np.add.at(table, places, 1)
    return table


if __name__ == "__main__":
    print(histogram(np.zeros(8, dtype=np.int64), np.array([1, 5, 5, 7])))
