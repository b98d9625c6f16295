# says: ADV604 reduce `part` by blocks
# run: n=24
# holds: mine,best
from mpi4py import MPI
import numpy as np

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
n = 1000
rows = n // size
part = np.zeros((n, 30))
total = np.empty((n, 30))
mine = np.zeros((rows, 30))
best = np.zeros(30)
for step in range(10):
    part += np.random.rand(n, 30)
    # total of all ranks; each goes on with its rows
    comm.Allreduce(part, total, op=MPI.MAX)
    mine += total[rank * rows:(rank + 1) * rows]
    best = total[rank * rows:(rank + 1) * rows].max(axis=0)
