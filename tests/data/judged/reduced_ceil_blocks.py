# shown: ADV604 reduce `part` by blocks
"""The last block may be shorter: shown, for another call is needed, and not written."""
from mpi4py import MPI
import numpy as np

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
n = 100001
rows = (n + size - 1) // size
part = np.zeros(n)
total = np.empty(n)
for step in range(10):
    part += np.random.rand(n)
    comm.Allreduce(part, total, op=MPI.SUM)
    mine = total[rank * rows:(rank + 1) * rows] * 2.0
