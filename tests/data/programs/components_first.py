# mpirun -np 4 python program.py
# lattice Boltzmann D2Q9, populations first
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank = comm.rank
size = comm.size
NX, NY = 400, 300
nxl = NX // size
f = np.ones((9, nxl + 2, NY))
left, right = (rank - 1) % size, (rank + 1) % size


def communicate(f):
    sendr = f[:, -2, :].copy()
    recvl = np.zeros_like(sendr)
    comm.Sendrecv(sendr, dest=right, recvbuf=recvl, source=left)
    f[:, 0, :] = recvl
    sendl = f[:, 1, :].copy()
    recvr = np.zeros_like(sendl)
    comm.Sendrecv(sendl, dest=left, recvbuf=recvr, source=right)
    f[:, -1, :] = recvr


def stream(f):
    for i in range(9):
        f[i] = np.roll(f[i], 1, axis=0)


for it in range(1000):
    communicate(f)
    stream(f)
