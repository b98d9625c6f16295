# quiet: ADV604
# run: n=24
# holds: mine
"""The last rank takes what is left, so blocks are not all as long."""
from mpi4py import MPI
import numpy as np

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
n = 100000
rows = n // size
low = rank * rows
high = n if rank == size - 1 else low + rows
part = np.zeros(n)
total = np.empty(n)
for step in range(10):
    part += np.random.rand(n)
    comm.Allreduce(part, total, op=MPI.SUM)
    mine = total[low:high] * 2.0
