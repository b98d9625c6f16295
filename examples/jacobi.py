"""Heat on a square plate: Jacobi's five-point iteration.

The temperature inside the plate is the mean of its four neighbours; the rim is held fixed. Each
sweep needs the faces of the four neighbouring blocks, so what matters is how long those faces are
and whether they are contiguous in memory.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(rank=16)


@kernel(N=2000, steps=100)
def jacobi(
    plate: Annotated[NDArray[np.float64], Dist("N", "N", None, Block("rank"), on=mesh)],
    steps: int,
) -> NDArray[np.float64]:
    """Return the plate after some sweeps.

    Parameters
    ----------
    plate : array of float64, shape (N, N)
    steps : int
    """
    now = plate.copy()
    after = plate.copy()
    for _ in range(steps):
        after[1:-1, 1:-1] = 0.25 * (now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:])
        now, after = after, now
    return now


if __name__ == "__main__":
    cold = np.zeros((8, 8))
    cold[0, :] = 100.0
    print(jacobi(cold, 50).round(1))
