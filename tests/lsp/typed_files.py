"""Files to type at, with letters of several units: a plan of several steps, a program for MPI."""

PLANNED = """\
from typing import Annotated
import numpy as np
from numpy.typing import NDArray
from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(rank=16)
layers = 3  # 𝑓ä


@kernel(N=1000)
def eliminate(𝑓ä: Annotated[NDArray[np.float64], Dist("N", "N", None, Block("rank"), on=mesh)]):
    for k in range(𝑓ä.shape[0] - 1):
        𝑓ä[k + 1 :, k] = 𝑓ä[k + 1 :, k] / 𝑓ä[k, k]
        𝑓ä[k + 1 :, k + 1 :] -= 𝑓ä[k + 1 :, k, None] * 𝑓ä[k, None, k + 1 :]
    return 𝑓ä


@kernel(N=400)
def smooth(
    𝑓ä: Annotated[NDArray[np.float64], Dist("N", "N", None, Block("rank"), on=mesh)],
) -> NDArray[np.float64]:
    above = 𝑓ä.copy()  # 👩‍🚀 before
    above[:, 1:] = 𝑓ä[:, :-1]
    return above
"""
PROGRAM = """\
import numpy as np
from mpi4py import MPI

WIDTH = 300
comm = MPI.COMM_WORLD  # 😀 𝑓ä


def beside(comm):
    rank, size = comm.Get_rank(), comm.Get_size()
    return (rank - 1) % size, (rank + 1) % size


def made(n: int):
    𝑓ä = np.zeros((n, WIDTH))
    𝑓ä[0] = 1.0
    return 𝑓ä


def exchanged(𝑓ä, comm, steps):
    left, right = beside(comm)
    r = np.empty(WIDTH)
    for step in range(steps):
        t = 𝑓ä[1, :].copy()
        comm.Sendrecv(t, dest=left, recvbuf=r, source=right)  # 👩‍🚀
        𝑓ä[-1, :] = r


def shared(comm, n: int):
    for k in range(n):
        table = comm.bcast(made(n), root=0)
    return table


if __name__ == "__main__":
    field = made(20)
    exchanged(field, comm, 5)
"""
