"""The first step of sample sort: sort what each rank has, and say where every key belongs.

Keys lie in one row for each rank. The vector of buckets is declared without a distribution: every
rank then computes the buckets of all keys, and has to be told all keys for it.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(rank="P")


@kernel(P=16, M=65536)
def find_buckets(
    keys: Annotated[NDArray[np.int64], Dist("P", "M", Block("rank"), None, on=mesh)],
    bucket: Annotated[NDArray[np.int64], Dist("P", "M", None, None, on=mesh)],
    width: int,
) -> NDArray[np.int64]:
    """Sort every row of `keys`, and store in `bucket` the rank that each key goes to.

    Parameters
    ----------
    keys : array of int64, shape (P, M)
        Each at least 0.
    bucket : array of int64, shape (P, M)
    width : int
        Keys that belong to one rank, at least 1.
    """
    keys[...] = np.sort(keys, axis=1)
    bucket[...] = keys // width
    return bucket


if __name__ == "__main__":
    given = np.array([[7, 1, 12, 3], [15, 0, 9, 4]])
    print(find_buckets(given, np.empty_like(given), 8))
