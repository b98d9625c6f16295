import sys
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
me, p = comm.Get_rank(), comm.Get_size()
n = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
m = n // p
a = np.zeros((m + 2, n), order="F")
b = np.zeros((m + 2, n), order="F")
nxt = me + 1 if me + 1 < p else MPI.PROC_NULL
prv = me - 1 if me > 0 else MPI.PROC_NULL
for k in range(200):
    buf = np.empty(n)
    comm.Sendrecv(np.ascontiguousarray(a[1, :]), dest=prv, recvbuf=buf, source=nxt)
    a[m + 1, :] = buf
    comm.Sendrecv(np.ascontiguousarray(a[m, :]), dest=nxt, recvbuf=buf, source=prv)
    a[0, :] = buf
    b[1:-1, 1:-1] = (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, 2:] + a[1:-1, :-2]) / 4
    a, b = b, a
