import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank = comm.Get_rank()
size = comm.Get_size()
rows, cols = 2000, 2000 // size + 2
T = np.zeros((rows, cols))
column = MPI.DOUBLE.Create_vector(rows, 1, cols)
column.Commit()
west = rank - 1 if rank > 0 else MPI.PROC_NULL
east = rank + 1 if rank < size - 1 else MPI.PROC_NULL
for it in range(1000):
    comm.Sendrecv([T[:, 1:], 1, column], dest=west, recvbuf=[T[:, cols - 1:], 1, column], source=east)
    comm.Sendrecv([T[:, cols - 2:], 1, column], dest=east, recvbuf=[T, 1, column], source=west)
    T[1:-1, 1:-1] = 0.25 * (T[:-2, 1:-1] + T[2:, 1:-1] + T[1:-1, :-2] + T[1:-1, 2:])
column.Free()
