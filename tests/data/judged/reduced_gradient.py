# says: ADV604 reduce `grad` by blocks: every rank uses `total[lo:hi]` of the result
# run: n=22
# holds: weights,rank
"""Allreduce of a whole gradient of which each rank uses only its own block."""
from mpi4py import MPI
import numpy as np

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
n = 1048576
chunk = n // size
lo, hi = rank * chunk, (rank + 1) * chunk
weights = np.zeros(chunk)
grad = np.empty(n)
total = np.empty(n)
for epoch in range(5):
    grad[:] = np.random.rand(n)
    comm.Allreduce(grad, total, op=MPI.SUM)
    weights -= 0.01 * total[lo:hi]
print(rank, weights.sum())
