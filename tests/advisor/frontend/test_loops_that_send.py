"""Loops of MPI programs that send something: what is around the messages is read, and told."""

import pytest

from advisor.engine import Options, check_source
from advisor.finding import Finding
from advisor.frontend.bindings import settled

HEAD = """\
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
left, right = (rank - 1) % size, (rank + 1) % size
n = 400_000
x = np.linspace(0.0, 1.0, n)
w = np.zeros(n)
"""
LOOP = """
for k in range(200):
    c = np.exp(x)
    w += c * k
"""


def found(source: str, code: str) -> tuple[Finding, ...]:
    return check_source("a.py", source, Options("node2026", {}, (code,), (), None)).findings


@pytest.mark.parametrize(
    ("before", "within"),
    [
        ("", "    e = comm.allreduce(w.sum())\n    w /= e\n"),
        ("comm.Bcast(x, root=0)\n", "    comm.Allreduce(MPI.IN_PLACE, w)\n"),
        ("", "    comm.Sendrecv(w[:9], dest=right, recvbuf=w[-9:], source=left)\n"),
    ],
)
def test_what_messages_leave_as_it_is_is_computed_once(before: str, within: str) -> None:
    (finding,) = found(HEAD + before + LOOP + within + "print(w.sum())\n", "ADV506")
    assert finding.span.start_line == (HEAD + before + LOOP).count("\n") - 1
    assert finding.prediction is not None and finding.saves_s is not None


@pytest.mark.parametrize(
    ("before", "within"),
    [
        ("", "    comm.Bcast(x, root=k % size)\n"),
        ("", "    comm.Allreduce(MPI.IN_PLACE, x)\n"),
        ("", "    comm.Sendrecv(w, dest=right, recvbuf=x, source=left)\n"),
        ("y = x[:9]\n", "    comm.Sendrecv(w[:9], dest=right, recvbuf=y, source=left)\n"),
        ("y = [x, MPI.DOUBLE]\n", "    comm.Bcast(y, root=k % size)\n"),
        # on the root it is what was sent
        ("", "    y = comm.bcast(x, root=0)\n    y[0] += 1.0\n"),
        ("", "    y = comm.gather(x, root=0)\n    if rank == 0:\n        y[0][0] += 1.0\n"),
        ("y = comm.Irecv(x, source=left)\n", "    if k == 3:\n        y.Wait()\n"),
        # what is called as a message is none
        (
            "class Box:\n    def gather(self, a):\n        a += 1.0\n\nbox = Box()\n",
            "    box.gather(x)\n    comm.Barrier()\n",
        ),
        (
            "def add(a, b, _):\n    x[:] += 1\n    return a + b\n\nop = MPI.Op.Create(add)\n",
            "    e = comm.allreduce(w.sum(), op=op)\n",
        ),
    ],
)
def test_what_messages_change_is_not(before: str, within: str) -> None:
    assert not found(HEAD + before + LOOP + within + "print(w.sum())\n", "ADV506")


FIELD = """\
import argparse

import numpy as np
from mpi4py import MPI


def exchange(u, comm):
    comm.Bcast(u, root=0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=600)
    args = parser.parse_args()
    comm = MPI.COMM_WORLD
    u = np.ones((args.n // comm.Get_size(), args.n))
    t = 0.0
    while t < 4.0:
        exchange(u, comm)
        flux = np.zeros(args.n)
        for i in range(args.n):
            flux[i] = np.sum(u[:, i])
        t += comm.allreduce(0.01 * flux.max(), op=MPI.MIN)
    return t


main()
"""


def test_there_are_as_many_ranks_as_cores() -> None:
    (finding,) = found(FIELD, "ADV504")
    assert finding.prediction is not None
    assumed = {one.name: one.value for one in finding.assumptions}
    assert assumed["args.n"] == 600 and assumed["u.axis0"] == 300


def test_what_an_object_is_made_with_stays() -> None:
    assert settled(FIELD) == {"n"}
    strip = """\
class Strip:
    kind: str = ""

    def __init__(self, n, other):
        self.n, self.t = n, 0.0
        other.m = n

    def step(self):
        self.t += 1.0
"""
    assert settled(strip) == {"kind", "n"}
    assert settled(strip.replace("Strip:", "Strip(Elsewhere):")) == frozenset()
    assert settled(f"{strip}\nsetattr(Strip(1, 2), name, 3)\n") == frozenset()


GUESSED = """\
import numpy as np
from elsewhere import drawn
from mpi4py import MPI

POINTS = 400


class Sites:
    def __init__(self, comm, cost, weight):
        self.comm, self.cost, self.weight = comm, cost, weight
        self.rng = np.random.default_rng(comm.rank)
        self.picks = np.array([drawn(self.rng, 120, 15) for _ in range(60)])

    def rate(self, picks):
        rated = np.zeros(len(picks))
        for k, one in enumerate(picks):
            total = 0.0
            for j in range(POINTS):
                total += self.weight[j] * self.cost[one, j].min()
            rated[k] = total
        return rated


def main():
    rng = np.random.default_rng(1)
    sites = Sites(MPI.COMM_WORLD, rng.random((120, POINTS)), rng.random(POINTS))
    print(sites.comm.allreduce(sites.rate(sites.picks).min(), op=MPI.MIN))


main()
"""


def test_least_ranks_are_of_no_use_where_others_are_known() -> None:
    # `picks` has rows, as `cost` has two dimensions, not three
    options = Options("node2026", {}, (), (), None)
    assert not check_source("a.py", GUESSED, options).findings
    known = GUESSED.replace("drawn(self.rng, 120, 15)", "self.rng.choice(120, 15)")
    (found,) = check_source("a.py", known, options).findings
    (edit,) = found.fix.edits if found.fix else ()
    assert edit.replacement.strip() == (
        "rated[:] = self.cost[picks, :POINTS].min(axis=1) @ self.weight[:POINTS]"
    )
