# shown: ADV604 gather `full
"""The last block may be shorter: shown, for another call is needed, and not written."""
from mpi4py import MPI
import numpy as np

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
n = 100001
rows = (n + size - 1) // size
full = np.empty(n)
for step in range(10):
    full[:] = 0.0
    full[rank * rows:(rank + 1) * rows] = step
    comm.Allreduce(MPI.IN_PLACE, full, op=MPI.SUM)
    s = full.sum()
