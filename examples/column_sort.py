"""Two steps of column sort: sort the columns, transpose, and sort the columns again.

With columns spread over the ranks each sort is local, and the transposition exchanges a piece
between every two ranks.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(rank="P")


@kernel(N=1024, P=16)
def sort_twice(
    keys: Annotated[NDArray[np.int64], Dist("N", "N", None, Block("rank"), on=mesh)],
    turned: Annotated[NDArray[np.int64], Dist("N", "N", None, Block("rank"), on=mesh)],
) -> NDArray[np.int64]:
    """Store the keys in `turned`, its columns sorted, after sorting the columns of `keys`.

    Parameters
    ----------
    keys, turned : array of int64, shape (N, N)
    """
    keys[...] = np.sort(keys, axis=0)
    turned[...] = keys.T
    turned[...] = np.sort(turned, axis=0)
    return turned


if __name__ == "__main__":
    shuffled = np.array([[9, 2, 7], [1, 8, 3], [6, 4, 5]])
    print(sort_twice(shuffled, np.empty_like(shuffled)))
