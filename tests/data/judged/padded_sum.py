# says: ADV604 gather `full[rank * per:(rank + 1) * per]` from all ranks
# run: N=40
# holds: result
from mpi4py import MPI
import numpy as np

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
N = 500000
per = N // size
for step in range(30):
    full = np.zeros(N)
    full[rank * per:(rank + 1) * per] = np.sin(np.arange(rank * per, (rank + 1) * per) * step)
    result = np.zeros(N)
    comm.Allreduce(full, result, op=MPI.SUM)
    print(result[0])
