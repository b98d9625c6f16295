"""Matrix product, row by row of the result.

Rows of `a` and `c` live with their rank, columns of `b` are spread: every rank needs all of `b`, so
its pieces are gathered, or `b` is held by all.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(rank=16)


@kernel(N=1000)
def matmul(
    a: Annotated[NDArray[np.float64], Dist("N", "N", Block("rank"), None, on=mesh)],
    b: Annotated[NDArray[np.float64], Dist("N", "N", None, Block("rank"), on=mesh)],
    c: Annotated[NDArray[np.float64], Dist("N", "N", Block("rank"), None, on=mesh)],
) -> NDArray[np.float64]:
    """Store the product of `a` and `b` in `c` and return it.

    Parameters
    ----------
    a, b, c : array of float64, shape (N, N)
    """
    c[...] = a @ b
    return c


if __name__ == "__main__":
    left = np.arange(9.0).reshape(3, 3)
    print(matmul(left, np.eye(3), np.empty((3, 3))))
