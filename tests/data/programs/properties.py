import numpy as np
from dataclasses import dataclass
from mpi4py import MPI


@dataclass
class Settings:
    nx: int = 1200
    ny: int = 1200
    steps: int = 50


class Grid:
    def __init__(self, settings, comm):
        self._s = settings
        self._comm = comm
        self._fields = {name: np.zeros((settings.nx // comm.size + 2, settings.ny)) for name in ("h", "u", "v")}

    @property
    def comm(self):
        return self._comm

    @property
    def top(self):
        return (self.comm.rank + 1) % self.comm.size

    @property
    def bottom(self):
        return (self.comm.rank - 1) % self.comm.size

    def exchange(self, name):
        f = self._fields[name]
        self.comm.Sendrecv(f[-2], dest=self.top, recvbuf=f[0], source=self.bottom)
        self.comm.Sendrecv(f[1], dest=self.bottom, recvbuf=f[-1], source=self.top)

    def step(self):
        for name in self._fields:
            self.exchange(name)


def run():
    s = Settings()
    g = Grid(s, MPI.COMM_WORLD)
    for i in range(s.steps):
        g.step()


if __name__ == "__main__":
    run()
