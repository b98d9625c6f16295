# quiet: ADV604
# run: n=24
# holds: mine,norm
"""Every rank needs the whole result for its norm."""
from mpi4py import MPI
import numpy as np

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
n = 100000
rows = n // size
part = np.zeros(n)
total = np.empty(n)
for step in range(10):
    part += np.random.rand(n)
    comm.Allreduce(part, total)
    norm = np.linalg.norm(total)
    mine = total[rank * rows:(rank + 1) * rows] / norm
