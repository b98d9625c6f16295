"""Gaussian elimination without pivoting.

Step ``k`` subtracts multiples of row ``k`` from the rows below it, so the region that is worked on
shrinks. Distributed by blocks of columns, the ranks that own the first columns soon have nothing to
do; dealt out cyclically all stay busy to the end. But in blocks ever fewer ranks need the pivot's
column, and dealt out cyclically all of them do: with few ranks the balance decides, with many the
broadcasts.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(rank="P")


@kernel(N=1000, P=16)
def eliminate(
    a: Annotated[NDArray[np.float64], Dist("N", "N", None, Block("rank"), on=mesh)],
) -> NDArray[np.float64]:
    """Reduce a matrix to upper triangular form, in place.

    Parameters
    ----------
    a : array of float64, shape (N, N)
        Diagonally dominant, so that no pivot is 0.
    """
    for k in range(a.shape[0] - 1):
        a[k + 1 :, k] = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k, None] * a[k, None, k + 1 :]
        a[k + 1 :, k] = 0.0
    return a


if __name__ == "__main__":
    matrix = np.array([[4.0, 1.0, 2.0], [1.0, 5.0, 1.0], [2.0, 1.0, 6.0]])
    print(eliminate(matrix))
