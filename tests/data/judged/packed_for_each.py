# quiet: ADV607
# run: n=8
# holds: mine
from mpi4py import MPI
import numpy as np

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
n = 64
A = np.random.rand(n, n * size)
buf = np.empty((n, n))
mine = np.zeros((n, n))
for step in range(4):
    if rank == 0:
        for p in range(1, size):
            buf[:] = A[:, p * n:(p + 1) * n]
            comm.Send(buf, dest=p)
    else:
        comm.Recv(mine, source=0)
    A = A * 1.5
