import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank = comm.Get_rank()
size = comm.Get_size()
nx = 1000
ny = 1000 // size
u = np.zeros((nx, ny + 2))
left, right = (rank - 1) % size, (rank + 1) % size
sl, sr = np.empty(nx), np.empty(nx)
rl, rr = np.empty(nx), np.empty(nx)
reqs = [
    comm.Send_init(sl, dest=left, tag=0),
    comm.Send_init(sr, dest=right, tag=1),
    comm.Recv_init(rl, source=left, tag=1),
    comm.Recv_init(rr, source=right, tag=0),
]
for it in range(250):
    sl[:] = u[:, 1]
    sr[:] = u[:, ny]
    MPI.Prequest.Startall(reqs)
    MPI.Request.Waitall(reqs)
    u[:, 0] = rl
    u[:, ny + 1] = rr
    u[1:-1, 1:-1] += 0.1 * (u[1:-1, 2:] + u[1:-1, :-2] - 2 * u[1:-1, 1:-1])
