# quiet: ADV602 ADV607
"""Slab FFT: transposition with Alltoall, good practice; nothing to say but copies."""
from mpi4py import MPI
import numpy as np

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
n = 512
m = n // size
u = np.random.rand(m, n).astype(complex)
send = np.empty((size, m, m), dtype=complex)
recv = np.empty((size, m, m), dtype=complex)
for it in range(20):
    v = np.fft.fft(u, axis=1)
    for p in range(size):
        send[p] = v[:, p * m:(p + 1) * m]
    comm.Alltoall(send, recv)
    w = np.empty((n, m), dtype=complex)
    for p in range(size):
        w[p * m:(p + 1) * m] = recv[p]
    w = np.fft.fft(w, axis=0)
    u = np.ascontiguousarray(w.T)
