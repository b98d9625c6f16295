"""3-D acoustic wave, decomposed along z (last axis).

    mpirun -n 8 python program.py --n 256
"""
import argparse
from mpi4py import MPI
import numpy as np

ap = argparse.ArgumentParser()
ap.add_argument("--n", type=int, default=256)
ap.add_argument("-t", "--timesteps", type=int, default=400)
opt = ap.parse_args()


class Decomp:
    def __init__(self, n):
        self.comm = MPI.COMM_WORLD
        self.n = n
        self.p = self.comm.Get_size()
        self.r = self.comm.Get_rank()
        base, extra = divmod(n, self.p)
        self.nz = base + (1 if self.r < extra else 0)
        self.lower = self.r - 1 if self.r else MPI.PROC_NULL
        self.upper = self.r + 1 if self.r < self.p - 1 else MPI.PROC_NULL

    def swap(self, a):
        comm = self.comm
        s1 = a[:, :, 1].copy()
        s2 = a[:, :, -2].copy()
        r1 = np.empty_like(s1)
        r2 = np.empty_like(s2)
        req = [
            comm.Irecv(r1, source=self.lower, tag=1),
            comm.Irecv(r2, source=self.upper, tag=2),
            comm.Isend(s1, dest=self.lower, tag=2),
            comm.Isend(s2, dest=self.upper, tag=1),
        ]
        MPI.Request.Waitall(req)
        if self.lower != MPI.PROC_NULL:
            a[:, :, 0] = r1
        if self.upper != MPI.PROC_NULL:
            a[:, :, -1] = r2


d = Decomp(opt.n)
shape = (opt.n, opt.n, d.nz + 2)
p0, p1, p2 = (np.zeros(shape, dtype=np.float32) for _ in range(3))
for t in range(opt.timesteps):
    d.swap(p1)
    p2[1:-1, 1:-1, 1:-1] = (
        2 * p1[1:-1, 1:-1, 1:-1] - p0[1:-1, 1:-1, 1:-1]
        + 0.1 * (p1[2:, 1:-1, 1:-1] + p1[:-2, 1:-1, 1:-1] + p1[1:-1, 2:, 1:-1]
                 + p1[1:-1, :-2, 1:-1] + p1[1:-1, 1:-1, 2:] + p1[1:-1, 1:-1, :-2] - 6 * p1[1:-1, 1:-1, 1:-1])
    )
    p0, p1, p2 = p1, p2, p0
    energy = comm_sum = d.comm.allreduce(float(np.sum(p1 ** 2)))
