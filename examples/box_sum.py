"""Sum of every ``b`` x ``b`` box of an image, by repeated shifts.

Element ``(i, j)`` of the result is the sum of ``image[i-b+1 : i+1, j-b+1 : j+1]``, where what lies
outside the image counts as zero. The image is distributed by blocks over a 4 x 4 mesh of ranks.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(row=4, col=4)


@kernel(N=1000, b=3)
def box_sum(
    image: Annotated[NDArray[np.int32], Dist("N", "N", Block("row"), Block("col"), on=mesh)],
    b: int,
) -> NDArray[np.int32]:
    """Return the box sums of a square image.

    Parameters
    ----------
    image : array of int32, shape (N, N)
    b : int
        Side of the box, at least 1.
    """
    # columns first: each element takes in its neighbours above
    column = image.copy()
    moved = image.copy()
    for _ in range(b - 1):
        moved[1:, :] = moved[:-1, :]
        moved[0, :] = 0
        column += moved

    # then rows, over the column sums
    total = column.copy()
    moved = column.copy()
    for _ in range(b - 1):
        moved[:, 1:] = moved[:, :-1]
        moved[:, 0] = 0
        total += moved
    return total


if __name__ == "__main__":
    picture = np.arange(36, dtype=np.int32).reshape(6, 6)
    print(box_sum(picture, 3))
