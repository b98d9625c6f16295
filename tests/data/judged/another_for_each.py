# quiet: ADV607
from mpi4py import MPI
import numpy as np

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
n = 64
x = np.random.rand(n)
for step in range(5):
    if rank == 0:
        for p in range(1, size):
            comm.send(x * p, dest=p, tag=p)
        y = x
    else:
        y = comm.recv(source=0, tag=rank)
    x = y + 1
