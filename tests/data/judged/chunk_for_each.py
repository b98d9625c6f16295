# quiet: ADV607
# run: n=8
# holds: mine
from mpi4py import MPI
import numpy as np

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
n = 64
chunks = [np.random.rand(n) for _ in range(size)]
mine = np.zeros(n)
for step in range(4):
    if rank == 0:
        for p in range(1, size):
            comm.Send(chunks[p], dest=p)
        mine = chunks[0]
    else:
        comm.Recv(mine, source=0)
