"""Sums over an ensemble whose members ranks share: mpiexec -n 2 python ensemble.py"""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD

field = np.full(200_000, comm.rank + 1.0)
mean = np.zeros(200_000)
for _ in range(100):
    field = 0.5 * (field + np.roll(field, 1))
    total = comm.allreduce(field)
    mean += total
if comm.rank == 0:
    print(mean.sum())
