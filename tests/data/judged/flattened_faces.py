# says: ADV602 receive into `field[0]`
# run: n=12
# holds: field
"""Flattened views sent in place; near miss (ravel of contiguous is a view)."""
from mpi4py import MPI
import numpy as np

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
n = 800
field = np.zeros((n, n))
left, right = (rank - 1) % size, (rank + 1) % size
ghost = np.empty(n)
for it in range(50):
    edge = field[-2].ravel()
    comm.Sendrecv(edge, dest=right, recvbuf=ghost, source=left)
    field[0] = ghost
    cedge = field[:, -2].ravel()
    comm.Sendrecv(cedge, dest=right, recvbuf=ghost, source=left)
    field[:, 0] = ghost
    flat = field.reshape(-1)
    comm.Allreduce(MPI.IN_PLACE, flat, op=MPI.MAX)
