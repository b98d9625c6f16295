"""2-D Jacobi with dictionary buffers. Run: mpirun -n 4 python program.py"""
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank = comm.Get_rank()
size = comm.Get_size()

N = 1024
STEPS = 500
ncol = N // size

u = np.zeros((N, ncol + 2))
un = u.copy()
sendbuf = {side: np.empty(N) for side in ("left", "right")}
recvbuf = {side: np.empty(N) for side in ("left", "right")}
left = rank - 1 if rank > 0 else MPI.PROC_NULL
right = rank + 1 if rank < size - 1 else MPI.PROC_NULL

for step in range(STEPS):
    sendbuf["left"][:] = u[:, 1]
    sendbuf["right"][:] = u[:, -2]
    comm.Sendrecv(sendbuf["left"], dest=left, recvbuf=recvbuf["right"], source=right)
    comm.Sendrecv(sendbuf["right"], dest=right, recvbuf=recvbuf["left"], source=left)
    u[:, 0] = recvbuf["left"]
    u[:, -1] = recvbuf["right"]
    un[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    u, un = un, u
