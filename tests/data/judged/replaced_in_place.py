# quiet: ADV602
# run: n=16
# holds: u,h
"""What is sent and what comes are one buffer: the copy is what is sent."""
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
n = 1000
u = np.random.rand(n, n)
left, right = (rank - 1) % size, (rank + 1) % size
for it in range(10):
    row = u[1, :].copy()
    comm.Sendrecv_replace(row, dest=left, source=right)
    u[-1, :] = row
    g = np.zeros(n)
    comm.Sendrecv_replace(g, dest=left, source=right)
    u[0, :] = g
    h = u[2].copy()
    comm.Sendrecv_replace(h, dest=left, source=right)
