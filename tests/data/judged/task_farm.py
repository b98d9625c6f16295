# quiet: ADV601 ADV603 ADV607
"""Near miss: a task farm."""
from mpi4py import MPI
import numpy as np

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
status = MPI.Status()
if rank == 0:
    tasks = list(range(100))
    results = []
    active = size - 1
    while active:
        got = comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
        if got is not None:
            results.append(got)
        if tasks:
            comm.send(tasks.pop(), dest=status.Get_source())
        else:
            comm.send(None, dest=status.Get_source())
            active -= 1
else:
    comm.send(None, dest=0)
    while True:
        t = comm.recv(source=0)
        if t is None:
            break
        a = np.random.rand(100, 100)
        comm.send(np.linalg.norm(a @ a) * t, dest=0)
