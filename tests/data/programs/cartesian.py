# mpirun -n 16 python program.py
import numpy as np
from mpi4py import MPI


def main(n=1200, steps=300):
    world = MPI.COMM_WORLD
    dims = MPI.Compute_dims(world.Get_size(), 2)
    cart = world.Create_cart(dims, periods=[False, False], reorder=True)
    px, py = dims
    nx, ny = n // px, n // py
    u = np.zeros((nx + 2, ny + 2))
    north, south = cart.Shift(0, 1)
    west, east = cart.Shift(1, 1)
    for _ in range(steps):
        cart.Sendrecv(u[1, :], dest=north, recvbuf=u[-1, :], source=south)
        cart.Sendrecv(u[-2, :], dest=south, recvbuf=u[0, :], source=north)
        sbuf = u[:, 1].copy()
        rbuf = np.empty_like(sbuf)
        cart.Sendrecv(sbuf, dest=west, recvbuf=rbuf, source=east)
        if east != MPI.PROC_NULL:
            u[:, -1] = rbuf
        sbuf = u[:, -2].copy()
        cart.Sendrecv(sbuf, dest=east, recvbuf=rbuf, source=west)
        if west != MPI.PROC_NULL:
            u[:, 0] = rbuf
        u[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        diff = np.array(0.0)
        cart.Allreduce(MPI.IN_PLACE, diff, op=MPI.MAX)


if __name__ == "__main__":
    main()
