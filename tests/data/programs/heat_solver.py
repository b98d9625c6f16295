import argparse
import numpy as np
from mpi4py import MPI


class HeatSolver:
    def __init__(self, comm, nx, ny):
        self.comm = comm
        self.rank = comm.Get_rank()
        self.size = comm.Get_size()
        self.nx = nx
        self.ny_local = ny // self.size
        self.u = np.zeros((nx, self.ny_local + 2), dtype=np.float64)
        self.u_new = np.zeros_like(self.u)
        self.up = (self.rank + 1) % self.size
        self.down = (self.rank - 1) % self.size

    def exchange(self):
        recv = np.empty(self.nx)
        send = np.ascontiguousarray(self.u[:, -2])
        self.comm.Sendrecv(send, self.up, 0, recv, self.down, 0)
        self.u[:, 0] = recv
        send = np.ascontiguousarray(self.u[:, 1])
        self.comm.Sendrecv(send, self.down, 1, recv, self.up, 1)
        self.u[:, -1] = recv

    def step(self):
        self.exchange()
        self.u_new[1:-1, 1:-1] = 0.25 * (
            self.u[:-2, 1:-1] + self.u[2:, 1:-1] + self.u[1:-1, :-2] + self.u[1:-1, 2:]
        )
        self.u, self.u_new = self.u_new, self.u

    def residual(self):
        local = np.sum((self.u - self.u_new) ** 2)
        return np.sqrt(self.comm.allreduce(local, op=MPI.SUM))

    def run(self, steps):
        for i in range(steps):
            self.step()
            if i % 50 == 0:
                r = self.residual()
                if self.rank == 0:
                    print(i, r)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nx", type=int, default=2048)
    parser.add_argument("--ny", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=1000)
    args = parser.parse_args()
    solver = HeatSolver(MPI.COMM_WORLD, args.nx, args.ny)
    solver.run(args.steps)


if __name__ == "__main__":
    main()
