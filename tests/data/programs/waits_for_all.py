from mpi4py import MPI
import numpy as np

COMM = MPI.COMM_WORLD


def halo_exchange(grid, comm=COMM):
    rank = comm.Get_rank()
    size = comm.Get_size()
    reqs = []
    if rank > 0:
        reqs.append(comm.Isend(grid[1], dest=rank - 1, tag=11))
        reqs.append(comm.Irecv(grid[0], source=rank - 1, tag=12))
    if rank < size - 1:
        reqs.append(comm.Isend(grid[-2], dest=rank + 1, tag=12))
        reqs.append(comm.Irecv(grid[-1], source=rank + 1, tag=11))
    MPI.Request.Waitall(reqs)


def evolve(grid, new):
    new[1:-1, 1:-1] = grid[1:-1, 1:-1] + 0.1 * (
        grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:] - 4 * grid[1:-1, 1:-1]
    )


def main():
    n = 4000
    size = COMM.Get_size()
    grid = np.zeros((n // size + 2, n))
    new = np.zeros_like(grid)
    for step in range(100):
        halo_exchange(grid)
        evolve(grid, new)
        grid, new = new, grid


main()
