"""Box sums as an MPI program, by shifts and by scans: the twin of ``examples/box_sum.py``.

Each rank holds a block of whole rows. By shifts, one row comes from the rank above for each unit
of ``b``; by scans, running sums are made along both axes, and what the scan needs from above comes
in one prefix over the ranks. Run it with ``mpiexec -n 2 python examples/mpi/box_sum.py``.
"""

from __future__ import annotations

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray


def box_by_shifts(comm: MPI.Comm, image: NDArray[np.int64], b: int) -> NDArray[np.int64]:
    """Return the box sums of this rank's rows, moving the image by one row and column a time.

    Parameters
    ----------
    comm : MPI communicator
    image : array of int64, shape (n, N)
        This rank's rows, at least one.
    b : int
        Side of the box, at least 1.
    """
    rank = comm.Get_rank()
    size = comm.Get_size()
    above = rank - 1 if rank > 0 else MPI.PROC_NULL
    below = rank + 1 if rank < size - 1 else MPI.PROC_NULL
    column = image.copy()
    moved = image.copy()
    for _ in range(b - 1):
        edge = np.zeros(image.shape[1], dtype=np.int64)
        last = moved[-1].copy()
        comm.Sendrecv(last, dest=below, recvbuf=edge, source=above)
        moved[1:, :] = moved[:-1, :]
        moved[0, :] = edge
        column += moved
    total = column.copy()
    moved = column.copy()
    for _ in range(b - 1):
        moved[:, 1:] = moved[:, :-1]
        moved[:, 0] = 0
        total += moved
    return total


def box_by_scans(comm: MPI.Comm, image: NDArray[np.int64], b: int) -> NDArray[np.int64]:
    """Return the box sums of this rank's rows, from running sums along both axes.

    Parameters
    ----------
    comm : MPI communicator
    image : array of int64, shape (n, N)
        This rank's rows; every rank but the first and the last has at least ``b``.
    b : int
        Side of the box, at least 1.
    """
    rank = comm.Get_rank()
    size = comm.Get_size()
    above = rank - 1 if rank > 0 else MPI.PROC_NULL
    below = rank + 1 if rank < size - 1 else MPI.PROC_NULL
    rows, columns = image.shape
    sums = np.cumsum(np.cumsum(image, axis=0), axis=1)
    before = np.zeros(columns, dtype=np.int64)
    comm.Exscan(sums[-1], before, op=MPI.SUM)
    if rank > 0:
        sums += before
    padded = np.zeros((rows + b, columns + b), dtype=np.int64)
    padded[b:, b:] = sums
    edge = np.zeros((b, columns), dtype=np.int64)
    # of a rank with fewer rows, the rows above them are zero or lie with the rank before
    comm.Sendrecv(padded[-b:, b:].copy(), dest=below, recvbuf=edge, source=above)
    padded[:b, b:] = edge
    return padded[b:, b:] - padded[:-b, b:] - padded[b:, :-b] + padded[:-b, :-b]


def main() -> None:
    """Sum the boxes of a small image both ways, and print what one rank has of them."""
    comm = MPI.COMM_WORLD
    rows = 6 // comm.Get_size()
    picture = np.arange(36, dtype=np.int64).reshape(6, 6)
    own = picture[comm.Get_rank() * rows : (comm.Get_rank() + 1) * rows]
    by_shifts = box_by_shifts(comm, own, 3)
    by_scans = box_by_scans(comm, own, 3)
    if comm.Get_rank() == 0:
        print(by_shifts)
        print("the same by scans:", np.array_equal(by_shifts, by_scans))


if __name__ == "__main__":
    main()
