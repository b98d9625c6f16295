"""Matrix product as an MPI program: the twin of ``examples/matmul.py``.

Each rank holds rows of `a` and of the result, and rows of `b`. It needs all of `b`: either every
rank gathers it at once, or the blocks travel around a ring while each rank multiplies what it has.
Run it with ``mpiexec -n 2 python examples/mpi/matmul.py``.
"""

from __future__ import annotations

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray


def by_gathering(
    comm: MPI.Comm, a: NDArray[np.float64], b: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return this rank's rows of the product; all of `b` is held once.

    Parameters
    ----------
    comm : MPI communicator
    a : array of float64, shape (n, N)
    b : array of float64, shape (n, N)
        Rows, as many on every rank; ``N`` is ``n`` times the number of ranks.
    """
    whole = np.empty((b.shape[0] * comm.Get_size(), b.shape[1]))
    comm.Allgather(b, whole)
    return a @ whole


def around_a_ring(
    comm: MPI.Comm, a: NDArray[np.float64], b: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return this rank's rows of the product; two blocks of `b` are held at a time.

    Parameters are those of `by_gathering`; sums are made in another order.
    """
    rank = comm.Get_rank()
    size = comm.Get_size()
    rows = b.shape[0]
    product = np.zeros((a.shape[0], b.shape[1]))
    here = b.copy()
    coming = np.empty_like(b)
    for step in range(size):
        owner = (rank + step) % size
        product += a[:, owner * rows : (owner + 1) * rows] @ here
        comm.Sendrecv(here, dest=(rank - 1) % size, recvbuf=coming, source=(rank + 1) % size)
        here, coming = coming, here
    return product


def main() -> None:
    """Multiply by the unit matrix both ways, and print what one rank has of it."""
    comm = MPI.COMM_WORLD
    size = comm.Get_size()
    rows = 2
    order = rows * size
    first = comm.Get_rank() * rows
    a = np.arange(float(order * order)).reshape(order, order)[first : first + rows]
    b = np.eye(order)[first : first + rows]
    gathered = by_gathering(comm, a, b)
    if not np.array_equal(gathered, around_a_ring(comm, a, b)):
        raise SystemExit("the two ways differ")
    if comm.Get_rank() == 0:
        print(gathered)


if __name__ == "__main__":
    main()
