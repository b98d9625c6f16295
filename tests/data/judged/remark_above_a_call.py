# says: ADV602 send `u[1]` as it is
# run: n=16
# holds: u
from mpi4py import MPI
import numpy as np

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
n = 1000
u = np.random.rand(n, n)
up, down = (rank - 1) % size, (rank + 1) % size
for it in range(10):
    # face is copied first, so that u stays as it is while face is under way
    face = u[1].copy()
    comm.Sendrecv(face, dest=up, recvbuf=u[-1], source=down)
