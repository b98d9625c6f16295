# says: ADV607 let one `Bcast` send to all ranks
# run: n=8
# holds: mine
from mpi4py import MPI
import numpy as np

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
n = 64
x = np.random.rand(n)
mine = np.zeros(n)
for step in range(4):
    if rank == 0:
        for p in range(1, size):
            comm.Send(x, dest=p)
        mine[:] = x
    else:
        comm.Recv(mine, source=0)
    x = x * 1.5
