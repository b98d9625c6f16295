"""SPMD programs made at random from idioms that rules rewrite, to be run on two ranks or more."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

TOLERANCE = 1e-13
"""Relative; sums of floats may be taken in another order by another operation."""

START = """\
rank, size = comm.Get_rank(), comm.Get_size()
left, right = (rank - 1) % size, (rank + 1) % size
x, y = (np.arange({n}) + {shift} * rank).astype(np.{dtype}), np.zeros({n}, np.{dtype})
u = (np.arange({rows} * {n}).reshape({rows}, {n}) + rank).astype(np.{dtype})
v = np.zeros(({rows}, {n}), np.{dtype})
r = np.zeros({n}, np.{dtype})
whole, other = np.zeros((size, {n}), np.{dtype}), np.zeros((size, {n}), np.{dtype})
big, total, seen = np.empty((size * {rows}, {n}), np.{dtype}), np.zeros({n}, np.{dtype}), []
for {step} in range({trips}):
    x += 1  # {remark}
"""

IDIOMS: dict[str, tuple[str, str, bool]] = {
    # name: code, lines of the loop, whether sums of floats may be taken in another order
    "pickled reduction": ("ADV601", "y = comm.allreduce(x, op=MPI.SUM)  # all", True),
    "pickled broadcast": ("ADV601", "x = comm.bcast(x, root={root})", False),
    "pickled exchange": ("ADV601", "y = comm.sendrecv(x, dest=left, source=right)  # ring", False),
    "face": (
        "ADV602",
        """\
        t = u[{row}, :].copy()  # a row
        comm.Sendrecv(t, dest=left, recvbuf=r, source=right)
        u[-1, :] = r
        u *= 2""",
        False,
    ),
    "face in place": (
        "ADV602",
        "comm.Sendrecv(u[{row}, :].copy(), right, {tag}, r, left, {tag})\nu[0, :] = r",
        False,
    ),
    "rows": (
        "ADV603",
        """\
        if rank == 0:
            for i in range({rows}):  # all rows
                comm.Send(u[i, :], dest=1, tag={tag})
        elif rank == 1:
            for i in range({rows}):
                comm.Recv(v[i, :], source=0, tag={tag})""",
        False,
    ),
    "elements": (
        "ADV603",
        """\
        if rank == 1:
            for j in range(2, {n}):
                comm.Send(u[{row}, j:j + 1], dest=0, tag={tag})
        if rank == 0:
            for j in range(2, {n}):
                comm.Recv(v[{row}, j:j + 1], source=1, tag={tag})""",
        False,
    ),
    "block of a broadcast": (
        "ADV604",
        """\
        if rank == {root}:
            big[:] = {step} + 1
        comm.Bcast(big, root={root})
        mine = big[rank * {rows}:(rank + 1) * {rows}].copy()
        v += mine""",
        False,
    ),
    "gather": (
        "ADV607",
        """\
        if rank == 0:
            whole[0] = -x
            for i in range(1, size):  # the others
                comm.Recv(whole[i], source=i)
        else:
            comm.Send(x, dest=0)""",
        False,
    ),
    "broadcast": (
        "ADV607",
        """\
        if rank == 0:
            for k in range(1, size):
                comm.Send(x, dest=k, tag={tag})
        else:
            comm.Recv(y, source=0, tag={tag})""",
        False,
    ),
    "numbers": (
        "ADV608",
        """\
        z = np.arange({n}.0) / (rank + {step} + {shift})
        first = comm.allreduce(np.sum(z), op=MPI.SUM)  # one
        second = comm.allreduce(np.sum(z * z), op=MPI.SUM)
        total[0] = first
        total[1] = second""",
        True,
    ),
    "barrier": (
        "ADV610",
        """        comm.Barrier()  # all
        total[0] = comm.allreduce(float(x[0]), op=MPI.SUM)""",
        False,
    ),
}


@dataclass(frozen=True)
class Exchanging:
    """Source of a program, the rule that it is for, and the tolerance of its results."""

    source: str
    code: str
    idiom: str
    tolerance: float


@st.composite
def exchanging(draw: st.DrawFn) -> Exchanging:
    """A loop around one idiom, with extents, types, tags and names drawn."""
    idiom = draw(st.sampled_from(sorted(IDIOMS)))
    rows = draw(st.integers(4, 12))
    chosen = {
        "n": draw(st.integers(5, 60)),
        "rows": rows,
        "row": draw(st.integers(1, rows - 2)),
        "trips": draw(st.integers(2, 4)),
        "shift": draw(st.integers(1, 9)),
        "tag": draw(st.integers(0, 9)),
        "root": draw(st.integers(0, 1)),
        "dtype": draw(st.sampled_from(["float64", "float32", "int64", "int32"])),
        "step": draw(st.sampled_from(["step", "it", "turn"])),
        "remark": draw(st.sampled_from(["on", "größer", "it's one more"])),
    }
    return exchange(idiom, chosen)


def exchange(idiom: str, chosen: Mapping[str, int | str]) -> Exchanging:
    """Return the program of an idiom with extents, types, tags and names."""
    code, lines, reordered = IDIOMS[idiom]
    head = START.format(**chosen)
    body = textwrap.indent(textwrap.dedent(lines.format(**chosen)), "    ")
    main = f"comm.Barrier()\n{head}{body}\nreturn x, y, u, v, whole, other, total, seen\n"
    source = "import numpy as np\nfrom mpi4py import MPI\n\n\ndef main(comm):\n" + textwrap.indent(
        main, "    "
    )
    floats = str(chosen["dtype"]).startswith("f")
    coarse = 1e-5 if chosen["dtype"] == "float32" else TOLERANCE
    return Exchanging(source, code, idiom, coarse if reordered and floats else 0.0)
