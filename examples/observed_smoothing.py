"""A program whose sizes only a run knows: a kernel that binds none, and its MPI twin.

``advise`` on this file alone leaves sizes open, and says for which of them a rewrite pays. After
``mpiexec -n 2 advise run examples/observed_smoothing.py 600 5`` it predicts for those of the run.
"""

from __future__ import annotations

import sys
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(row="P")


@kernel
def smoothed(
    image: Annotated[NDArray[np.int64], Dist("N", "N", Block("row"), None, on=mesh)], b: int
) -> NDArray[np.int64]:
    """Return the sum of every row with the ``b - 1`` rows above it.

    Parameters
    ----------
    image : array of int64, shape (N, N)
    b : int
        At least 1.
    """
    total = image.copy()
    moved = image.copy()
    for _ in range(b - 1):
        moved[1:, :] = moved[:-1, :]
        moved[0, :] = 0
        total += moved
    return total


def smoothed_by_ranks(part: NDArray[np.int64], b: int) -> NDArray[np.int64]:
    """Do the same for this rank's rows, which the rank before it precedes."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    above, below = (world.rank - 1, world.rank + 1)
    total, moved = part.copy(), part.copy()
    for _ in range(b - 1):
        halo = np.zeros_like(moved[:1])
        world.Sendrecv(
            moved[-1:],
            dest=below if below < world.size else MPI.PROC_NULL,
            recvbuf=halo,
            source=above if above >= 0 else MPI.PROC_NULL,
        )
        moved[1:] = moved[:-1]
        moved[:1] = halo
        total += moved
    return total


def main(size: int, b: int) -> None:
    """Smooth a picture on all ranks, and on the first one as a check."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    picture = np.arange(size * size, dtype=np.int64).reshape(size, size)
    part = np.array_split(picture, world.size)[world.rank]
    parts = world.gather(smoothed_by_ranks(part, b), root=0)
    if world.rank == 0:
        print(bool((np.concatenate(parts) == smoothed(picture, b)).all()))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
