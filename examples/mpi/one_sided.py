"""Three one-sided programs: a histogram, a matrix product, and Sobel's edge detector.

They reach into each other's memory as programs of a partitioned global address space do: single
references one by one, columns at once. Run them with
``mpiexec -n 2 python examples/mpi/one_sided.py``.
"""

from __future__ import annotations

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray


class Shared:
    """A vector of doubles that lies in equal blocks over all ranks.

    Parameters
    ----------
    comm : MPI communicator
    count : int
        Elements on each rank.
    """

    def __init__(self, comm: MPI.Comm, count: int) -> None:
        self.rank = comm.Get_rank()
        self.count = count
        self.window = MPI.Win.Allocate(8 * count, 8, comm=comm)
        self.own = np.frombuffer(self.window, dtype=np.float64)
        self.own[:] = 0.0
        comm.Barrier()
        self.window.Lock_all()

    def free(self) -> None:
        """End all access; every rank calls it."""
        self.window.Unlock_all()
        self.window.Free()


def histogram(table: Shared, locations: NDArray[np.int64]) -> None:
    """Add 1 to the elements of `table` at global `locations`, one after another.

    Two ranks that add to one element at the same time may lose one of the additions.
    """
    window, own, rank, count = table.window, table.own, table.rank, table.count
    cell = np.empty(1)
    for location in locations.tolist():
        owner, place = divmod(location, count)
        if owner == rank:
            own[place] += 1.0
        else:
            window.Get(cell, owner, (place, 1, MPI.DOUBLE))
            window.Flush(owner)
            cell[0] += 1.0
            window.Put(cell, owner, (place, 1, MPI.DOUBLE))
            window.Flush(owner)


def matmul(a: NDArray[np.float64], b: Shared, product: NDArray[np.float64]) -> None:
    """Store in `product` this rank's rows of ``a @ b``.

    Parameters
    ----------
    a, product : array of float64, shape (rows, N)
    b : Shared
        Columns in blocks over the ranks, one column after another.
    """
    window, own, rank = b.window, b.own, b.rank
    order = a.shape[1]
    columns = b.count // order
    fetched = np.empty(order)
    for row in range(a.shape[0]):
        for number in range(order):
            owner, place = divmod(number, columns)
            if owner == rank:
                column = own[place * order : (place + 1) * order]
            else:
                window.Get(fetched, owner, (place * order, order, MPI.DOUBLE))
                window.Flush(owner)
                column = fetched
            product[row, number] = a[row] @ column


def sobel(image: Shared, width: int, edges: NDArray[np.float64]) -> None:
    """Store the absolute gradient of this rank's rows of `image` in `edges`, rim excepted.

    Parameters
    ----------
    image : Shared
        Rows in blocks over the ranks.
    edges : array of float64, shape (rows, width)
    """
    window, own, rank, count = image.window, image.own, image.rank, image.count
    ranks = window.Get_group().Get_size()
    rows = count // width
    cell = np.empty(1)

    def at(row: int, column: int) -> float:
        owner, place = divmod(row * width + column, count)
        if owner == rank:
            return own[place]
        window.Get(cell, owner, (place, 1, MPI.DOUBLE))
        window.Flush(owner)
        return float(cell[0])

    first = rank * rows
    for row in range(max(first, 1), min(first + rows, ranks * rows - 1)):
        for column in range(1, width - 1):
            northwest, north, northeast = (at(row - 1, column + step) for step in (-1, 0, 1))
            west, east = at(row, column - 1), at(row, column + 1)
            southwest, south, southeast = (at(row + 1, column + step) for step in (-1, 0, 1))
            across = northeast - northwest + 2 * (east - west) + southeast - southwest
            down = southwest - northwest + 2 * (south - north) + southeast - northeast
            edges[row - first, column] = abs(across) + abs(down)


def main() -> None:
    """Run all three on small sizes, and print what rank 0 has of them."""
    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()

    table = Shared(comm, 4)
    # each rank adds to places of its own, so that no addition is lost
    histogram(table, (np.arange(4 * size, dtype=np.int64) * size + rank) % (4 * size))
    comm.Barrier()
    if rank == 0:
        print(table.own)
    comm.Barrier()
    table.free()

    order = 2 * size
    matrix = np.arange(float(order * order)).reshape(order, order)
    columns = Shared(comm, 2 * order)
    columns.own[:] = np.eye(order)[:, 2 * rank : 2 * rank + 2].T.ravel()
    comm.Barrier()
    product = np.empty((2, order))
    matmul(matrix[2 * rank : 2 * rank + 2], columns, product)
    if not np.array_equal(product, matrix[2 * rank : 2 * rank + 2]):
        raise SystemExit("the product by the unit matrix differs")
    comm.Barrier()
    columns.free()

    width = 6
    image = Shared(comm, 2 * width)
    image.own[:] = np.tile(np.repeat([0.0, 10.0], width // 2), 2)
    comm.Barrier()
    edges = np.zeros((2, width))
    sobel(image, width, edges)
    if rank == 0:
        print(edges)
    comm.Barrier()
    image.free()


if __name__ == "__main__":
    main()
