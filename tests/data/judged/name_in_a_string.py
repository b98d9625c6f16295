# quiet: ADV602
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
    face = u[1].copy()
    comm.Sendrecv(face, dest=up, recvbuf=u[-1], source=down)
    print(f"{'#'}{face.sum()}")
