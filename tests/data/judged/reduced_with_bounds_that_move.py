# shown: ADV604 reduce `part` by blocks
"""The block is named behind the call only: shown, and not written."""
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
    comm.Allreduce(part, total, op=MPI.SUM)
    lo = rank * rows
    mine = total[lo:lo + rows] * 2.0
