# shown: ADV604 scatter `total`
"""The last block may be shorter: shown, for another call is needed, and not written."""
from mpi4py import MPI
import numpy as np

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
n = 100001
rows = (n + size - 1) // size
total = np.random.rand(n)
for step in range(10):
    comm.Bcast(total, root=0)
    mine = total[rank * rows:(rank + 1) * rows] * 2.0
