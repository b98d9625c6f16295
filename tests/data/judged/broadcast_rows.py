# says: ADV604 scatter `A`
# run: n=16
# holds: out,block
from mpi4py import MPI
import numpy as np

comm = MPI.COMM_WORLD
rank = comm.Get_rank()
size = comm.Get_size()
n = 2048
rows = n // size
A = np.empty((n, n))
if rank == 0:
    A[:] = np.random.rand(n, n)
out = np.empty(rows)
for k in range(20):
    comm.Bcast(A, root=0)
    block = A[rank * rows:(rank + 1) * rows, :]
    out = block.sum(axis=1)
    comm.Barrier()
    if rank == 0:
        A *= 0.5
