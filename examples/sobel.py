"""Sobel's edge detector: two 3 x 3 stencils on an image in blocks of rows.

Only the first and the last row of a block need a neighbour's row, and such a row is contiguous.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(rank=12)


@kernel(N=2000)
def sobel(
    image: Annotated[NDArray[np.int32], Dist("N", "N", Block("rank"), None, on=mesh)],
    edges: Annotated[NDArray[np.int32], Dist("N", "N", Block("rank"), None, on=mesh)],
) -> NDArray[np.int32]:
    """Store the absolute gradient of `image` in `edges`, rim excepted, and return it.

    Parameters
    ----------
    image, edges : array of int32, shape (N, N)
    """
    across = (
        image[:-2, 2:]
        - image[:-2, :-2]
        + 2 * (image[1:-1, 2:] - image[1:-1, :-2])
        + image[2:, 2:]
        - image[2:, :-2]
    )
    down = (
        image[2:, :-2]
        - image[:-2, :-2]
        + 2 * (image[2:, 1:-1] - image[:-2, 1:-1])
        + image[2:, 2:]
        - image[:-2, 2:]
    )
    edges[1:-1, 1:-1] = np.abs(across) + np.abs(down)
    return edges


if __name__ == "__main__":
    step = np.zeros((5, 6), dtype=np.int32)
    step[:, 3:] = 10
    print(sobel(step, np.zeros_like(step)))
