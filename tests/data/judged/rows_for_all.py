# shown: ADV607 let one `Bcast` send to all ranks, not a message for each piece
from mpi4py import MPI
import numpy as np

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
n = 64
data = np.arange(n * 9.0).reshape(9, n) if rank == 0 else np.zeros((9, n))
for step in range(4):
    if rank == 0:
        for dst in range(1, size):
            for s in range(9):
                comm.Send(data[s], dest=dst, tag=s)
    else:
        for s in range(9):
            comm.Recv(data[s], source=0, tag=s)
    data = data * 1.5
