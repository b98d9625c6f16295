"""Jacobi's five-point iteration as an MPI program: the twin of ``examples/jacobi.py``.

Each rank holds a block of whole columns and, on either side, one column of its neighbour. A column
of an array that is stored by rows is not contiguous, so it is copied before it is sent and copied
again where it arrives. Run it with ``mpiexec -n 2 python examples/mpi/jacobi.py``.
"""

from __future__ import annotations

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray


def jacobi(comm: MPI.Comm, plate: NDArray[np.float64], steps: int) -> NDArray[np.float64]:
    """Return this rank's columns after some sweeps.

    Parameters
    ----------
    comm : MPI communicator
    plate : array of float64, shape (N, n)
        This rank's columns, at least one.
    steps : int
    """
    rank = comm.Get_rank()
    size = comm.Get_size()
    left = rank - 1 if rank > 0 else MPI.PROC_NULL
    right = rank + 1 if rank < size - 1 else MPI.PROC_NULL
    rows, columns = plate.shape
    now = np.empty((rows, columns + 2))
    now[:, 1:-1] = plate
    after = now.copy()
    from_left = np.empty(rows)
    from_right = np.empty(rows)
    # the rim is held fixed: ranks at the sides do not update their outermost column
    first = 2 if rank == 0 else 1
    last = columns if rank == size - 1 else columns + 1
    for _ in range(steps):
        comm.Sendrecv(now[:, 1].copy(), dest=left, recvbuf=from_right, source=right)
        comm.Sendrecv(now[:, -2].copy(), dest=right, recvbuf=from_left, source=left)
        if left != MPI.PROC_NULL:
            now[:, 0] = from_left
        if right != MPI.PROC_NULL:
            now[:, -1] = from_right
        after[1:-1, first:last] = 0.25 * (
            now[:-2, first:last]
            + now[2:, first:last]
            + now[1:-1, first - 1 : last - 1]
            + now[1:-1, first + 1 : last + 1]
        )
        now, after = after, now
    return now[:, 1:-1]


def main() -> None:
    """Heat the upper rim of a cold plate, and print what one rank has of it."""
    comm = MPI.COMM_WORLD
    plate = np.zeros((8, 8 // comm.Get_size()))
    plate[0, :] = 100.0
    done = jacobi(comm, plate, 50)
    if comm.Get_rank() == 0:
        print(done.round(1))


if __name__ == "__main__":
    main()
