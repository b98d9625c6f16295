"""Programs that have the idioms that rules about SPMD programs know, as `bench_spmd` runs them.

Each is the body of a function ``main(comm)`` that returns numbers or arrays. Where a rule has no
edit, `Case.by_hand` is what its suggestion comes to; such programs return what is the same however
arrays are distributed.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    """A program with an idiom.

    Attributes
    ----------
    idiom : str
    rule : str
        Its module in `transforms`.
    body : str
    by_hand : str
        The rewritten body, where the rule only shows its suggestion.
    tolerance : float
        Relative difference of results that summing in another order may make.
    """

    idiom: str
    rule: str
    body: str
    by_hand: str = ""
    tolerance: float = 0.0


_MESH = """
    n, m = {rows}, {columns}
    cart = comm.Create_cart({dims})
    u = np.zeros((n + 2, m + 2)) + comm.Get_rank()
    up, down = cart.Shift(0, 1)
    west, east = cart.Shift(1, 1)
    ghost = np.zeros(n + 2)
    for step in range(1000):
        cart.Sendrecv(u[1, :], dest=up, recvbuf=u[-1, :], source=down)
        cart.Sendrecv(u[:, 1].copy(), dest=west, recvbuf=ghost, source=east)
        u[:, -1] = ghost
    return comm.allreduce(u[1:-1, 1:-1].sum())
    """

_COLUMNS = """
    rank, size = comm.Get_rank(), comm.Get_size()
    left, right = (rank - 1) % size, (rank + 1) % size
    n = 2000
    u = np.zeros((n, n // size + 2)) + rank
    ghost = np.empty(n)
    for step in range(1000):
        comm.Sendrecv(np.ascontiguousarray(u[:, 1]), dest=left, recvbuf=ghost, source=right)
        u[:, -1] = ghost
    return comm.allreduce(u[:, 1:].sum())
    """

_ROWS = """
    rank, size = comm.Get_rank(), comm.Get_size()
    left, right = (rank - 1) % size, (rank + 1) % size
    n = 2000
    u = np.zeros((n // size + 2, n)) + rank
    for step in range(1000):
        comm.Sendrecv(u[1, :], dest=left, recvbuf=u[-1, :], source=right)
    return comm.allreduce(u[1:, :].sum())
    """

_TRIANGLE = """
    rank, size = comm.Get_rank(), comm.Get_size()
    n = 400
    nb = n // size
    a, x, y = np.ones((n, n)), np.ones(n), np.zeros(n)
    comm.Barrier()
    for i in range({share}):
        for j in range(i, n):
            y[i] += a[i, j] * x[j]
    return comm.allreduce(y.sum())
    """

CASES = (
    Case("1 pickled array, reduced", "messages.pickled_array", """
        x = np.arange(100000)
        for step in range(20):
            total = comm.allreduce(x, op=MPI.SUM)
        return total
        """),
    Case("1 pickled array, strided column", "messages.pickled_array", """
        rank, size = comm.Get_rank(), comm.Get_size()
        u = np.zeros((100000, 4))
        left, right = (rank - 1) % size, (rank + 1) % size
        for step in range(20):
            got = comm.sendrecv(u[:, 1], dest=left, source=right)
            u[:, -1] = got
        return u
        """),
    Case("2 copied faces", "messages.halo_faces", """
        rank, size = comm.Get_rank(), comm.Get_size()
        left, right = (rank - 1) % size, (rank + 1) % size
        u = np.zeros((4, 400000)) + rank
        r = np.empty(400000)
        for step in range(20):
            comm.Sendrecv(u[1, :].copy(), dest=left, recvbuf=r, source=right)
            u[-1, :] = r
        return u
        """),
    Case("3 message per row", "messages.message_loops", """
        rank = comm.Get_rank()
        a = np.zeros((3000, 4))
        for step in range(20):
            if rank == 0:
                for i in range(3000):
                    comm.Send(a[i, :], dest=1)
            elif rank == 1:
                for i in range(3000):
                    comm.Recv(a[i, :], source=0)
        return a
        """),
    Case("4 broadcast of which blocks are used", "messages.wrong_collective", """
        rank, size = comm.Get_rank(), comm.Get_size()
        n = 1000000
        nb = n // size
        a, total = np.empty(n), np.zeros(nb)
        for step in range(10):
            if rank == 0:
                a[:] = step
            comm.Bcast(a, root=0)
            mine = a[rank * nb:(rank + 1) * nb]
            total += mine
        return total
        """),
    Case("4 padded sum", "messages.wrong_collective", """
        rank, size = comm.Get_rank(), comm.Get_size()
        n = 500000
        mine = np.zeros(n) + rank
        full = np.zeros(n * size)
        for step in range(10):
            full[:] = 0
            full[rank * n:(rank + 1) * n] = mine
            comm.Allreduce(MPI.IN_PLACE, full)
        return full
        """),
    Case("4 field gathered for a number", "messages.wrong_collective", """
        rank, size = comm.Get_rank(), comm.Get_size()
        u = np.ones((500, 1000)) * (rank + 1)
        whole = np.empty((size * 500, 1000))
        worst = 0.0
        for step in range(10):
            comm.Gather(u, whole, root=0)
            if rank == 0:
                worst = np.max(whole)
            worst = comm.bcast(worst, root=0)
        return worst
        """),
    Case("5 shape of the mesh", "distributions.mesh_of_ranks",
         _MESH.format(rows=2000, columns=1000, dims="(1, 2)"),
         _MESH.format(rows=1000, columns=2000, dims="(2, 1)")),
    Case("6 stencil split along columns", "messages.partition_axis", _COLUMNS, _ROWS),
    Case("7 ring that one rank starts", "messages.hand_written", """
        rank, size = comm.Get_rank(), comm.Get_size()
        left, right = (rank - 1) % size, (rank + 1) % size
        x, y = np.arange(200000) + rank, np.zeros(200000, dtype=np.int64)
        for step in range(50):
            if rank == 0:
                comm.Send(x, dest=right)
                comm.Recv(y, source=left)
            else:
                comm.Recv(y, source=left)
                comm.Send(x, dest=right)
        return y
        """, """
        rank, size = comm.Get_rank(), comm.Get_size()
        left, right = (rank - 1) % size, (rank + 1) % size
        x, y = np.arange(200000) + rank, np.zeros(200000, dtype=np.int64)
        for step in range(50):
            comm.Sendrecv(x, dest=right, recvbuf=y, source=left)
        return y
        """),
    Case("8 reductions one after another", "messages.fused_reductions", """
        x = np.ones(100)
        for step in range(500):
            one = comm.allreduce(np.sum(x), op=MPI.SUM)
            two = comm.allreduce(np.max(x), op=MPI.SUM)
        return float(one), float(two)
        """, tolerance=1e-14),
    Case("9 triangle in blocks", "loops.dealt_loops",
         _TRIANGLE.format(share="rank * nb, (rank + 1) * nb"),
         _TRIANGLE.format(share="rank, size * nb, size")),
)  # fmt: skip
