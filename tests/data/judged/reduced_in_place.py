# quiet: ADV604
# run: n=24
# holds: mine
"""What is reduced in place would come to the front of the array."""
from mpi4py import MPI
import numpy as np

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
n = 100000
rows = n // size
total = np.empty(n)
for step in range(10):
    total[:] = np.random.rand(n)
    comm.Allreduce(MPI.IN_PLACE, total, op=MPI.SUM)
    mine = total[rank * rows:(rank + 1) * rows] * 2.0
