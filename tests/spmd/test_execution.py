"""Generated programs: what is read of them is what they do when they run, on every rank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reading import HEAD, program

from advisor.analysis.spmd.lower import lower_steps
from advisor.analysis.spmd.statements import itemsize
from advisor.ir.spmd.steps import Branch, Call, Communicate, Copy, Leave, Loop, Step
from costdb.expr import Expr, evaluate, free_symbols
from costdb.work import Branch as Chosen
from costdb.work import Collective, Leaf, Message, Parallel, Process, SeqLoop, Sequential

Tally = Counter[tuple[str, int]]
"""How often each method moved so many bytes."""


@dataclass
class Recorder:
    """A communicator that moves nothing and writes down what it was asked to."""

    rank: int
    size: int
    tally: Tally = field(default_factory=Counter)

    def note(self, method: str, data: np.ndarray) -> None:
        assert data.flags.c_contiguous or data.flags.f_contiguous, "mpi4py would refuse it"
        self.tally[method, data.nbytes] += 1

    def Send(self, buf, dest, tag=0):  # noqa: N802
        self.note("Send", buf)

    def Recv(self, buf, source, tag=0):  # noqa: N802
        self.note("Recv", buf)

    def Sendrecv(self, sendbuf, dest, sendtag=0, recvbuf=None, source=0):  # noqa: N802
        assert sendbuf.nbytes == recvbuf.nbytes
        self.note("Sendrecv", sendbuf)

    def Bcast(self, buf, root=0):  # noqa: N802
        self.note("Bcast", buf)

    def Allreduce(self, sendbuf, recvbuf, op=None):  # noqa: N802
        self.note("Allreduce", sendbuf)


SIZES = st.sampled_from(["n", "m", "n + 1", "n // size + 2", "2 * m", "7"])
DTYPES = st.sampled_from(["np.float64", "'f4'", "np.int32", "complex"])
MATRICES = ("u", "v")
# rows and columns of both have at least 3 entries
FACES = st.sampled_from(
    ["[0]", "[1, :]", "[:, 1].copy()", "[:, -1].copy()", "[1:-1].copy()", "[:, 1:3].copy()",
     ".T.copy()", "[i + 1:].copy()", "[:, :j + 1].copy()", ".sum(axis=0)",
     "[::2].copy()", "[-1, 1:-1]", ".ravel()", ".flatten()"]
)  # fmt: skip
CONDITIONS = st.sampled_from(
    ["rank == 0", "rank > 0", "rank < size - 1", "rank % 2 == 0", "rank != 1", "i % 2 == 0",
     "rank == size - 1 and i > 0", "not rank", "0 < rank < size - 1", "i + rank == 2"]
)  # fmt: skip
PARTNERS = st.sampled_from(["rank - 1", "rank + 1", "(rank + 1) % size", "0", "left", "right"])
METHODS = st.sampled_from(
    ["comm.Send(s, {p})", "comm.Recv(s, {p})", "comm.Bcast(s)", "comm.Send([s, MPI.BYTE], {p})",
     "comm.Sendrecv(s, {p}, recvbuf=s.copy(), source={p})", "comm.Allreduce(s, s.copy())"]
)  # fmt: skip


@st.composite
def blocks(draw: st.DrawFn, depth: int = 0) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.integers(0, 4 if depth < 2 else 1))
        if kind <= 1:
            face = draw(st.sampled_from(MATRICES)) + draw(FACES)
            call = draw(METHODS).format(p=draw(PARTNERS)).replace("[s, MPI.BYTE]", "s")
            lines += [f"s = np.ascontiguousarray({face})", call]
            continue
        inner = ["    " + line for line in draw(blocks(depth + 1))]
        if kind == 2:
            lines += [f"if {draw(CONDITIONS)}:", *inner]
            if draw(st.booleans()):
                lines += ["else:", *("    " + line for line in draw(blocks(depth + 1)))]
        elif kind == 3:
            bound = draw(st.sampled_from(["2", "3", "size", "rank + 1"]))
            lines += [f"for i in range({bound}):", *inner, "i = 1"]
        else:
            step = draw(st.sampled_from(["range(rank, 5, size)", "range(1, 4)", "range(4, 0, -1)"]))
            lines += [f"for j in {step}:", *inner, "j = 1"]
    return lines


@st.composite
def programs(draw: st.DrawFn) -> str:
    made = [
        f"{name} = np.zeros(({draw(SIZES)}, {draw(SIZES)}), dtype={draw(DTYPES)}"
        + draw(st.sampled_from([")", ", order='F')"]))
        for name in MATRICES
    ]
    start = ["n = 12", "m = 9", "i = j = 1", "left, right = rank - 1, rank + 1"]
    if draw(st.booleans()):
        body = draw(blocks())
        return "\n".join([*start, *made, *body, ""])
    inner = ["    " + line for line in ["i = j = 1", "left, right = 0, 1", *draw(blocks())]]
    return "\n".join([*start, *made, "def work(comm, u, v):", *inner, "work(comm, u, v)", ""])


def ran(text: str, rank: int, size: int) -> Tally:
    """Return what a rank does when the program runs."""
    recorder = Recorder(rank, size)
    names = {"np": np, "comm": recorder, "rank": rank, "size": size, "MPI": None}
    exec(compile(text, "program.py", "exec"), names)
    return recorder.tally


def read(steps: tuple[Step, ...], values: Mapping[str, int], tally: Tally) -> None:
    """Add up what the steps say that a rank does."""
    for step in steps:
        match step:
            case Communicate():
                payload = step.send or step.receive
                assert payload.count is not None, payload
                count = whole(payload.count, values)
                tally[step.method, count * itemsize(payload.dtype)] += 1
            case Loop(variable=variable, low=low, high=high, step=stride, trips=trips):
                count = whole(trips, values)
                first = whole(low, values)
                if step.stride is not None:
                    stride = whole(step.stride, values)
                if stride > 0:
                    assert len(range(first, whole(high, values), stride)) == max(count, 0)
                for turn in range(count):
                    index = first + turn * stride
                    read(step.body, {**values, variable: index}, tally)
            case Branch():
                assert step.condition.value is not None, step.condition.text
                taken = step.then if whole(step.condition.value, values) else step.orelse
                read(taken, values, tally)
            case Call():
                read(step.body, values, tally)
            case Copy():
                assert step.source.count is not None
            case Leave():
                raise AssertionError("the programs leave nothing early")


def whole(expr: Expr, values: Mapping[str, int]) -> int:
    # a number that changes within a loop may be unknown, but never wrong
    assume(free_symbols(expr) <= values.keys())
    found = evaluate(expr, values)
    assert found == int(found)
    return int(found)


@settings(max_examples=60, deadline=None)
@given(programs(), st.integers(1, 4))
def test_every_rank_does_what_was_read(text: str, size: int) -> None:
    found = program(text + "comm.Bcast(u)\n", HEAD)
    main = found.functions[-1]
    facts = {name: int(f.value) for name, f in found.sizes.items() if f.value is not None}
    for rank in range(size):
        tally: Tally = Counter()
        read(main.body, {**facts, "rank": rank, "P": size}, tally)
        assert tally == ran(text + "comm.Bcast(u)\n", rank, size), text


def lowered(term: Process, values: Mapping[str, int]) -> int:
    """Return the bytes of the messages and collectives of a process, at its largest."""
    match term:
        case Leaf(Message(region=region) | Collective(region=region)):
            total = region.itemsize_bytes
            for count in region.counts:
                total *= whole(count, values)
            return total
        case Leaf():
            return 0
        case Sequential(parts):
            return sum(lowered(part, values) for part in parts)
        case Parallel(parts):
            return max(lowered(part, values) for part in parts)
        case SeqLoop(variable, low, high, body):
            turns = range(whole(low, values), whole(high, values) + 1)
            return sum(lowered(body, {**values, variable: turn}) for turn in turns)
        case Chosen(condition, then, orelse):
            return lowered(then if whole(condition, values) else orelse, values)
    raise AssertionError(term)


@settings(max_examples=40, deadline=None)
@given(programs())
def test_the_slowest_of_the_ranks_is_priced(text: str) -> None:
    # what comes in while as much goes out is one wait, so only one of both may be in a program
    text = text.replace("comm.Recv(s,", "comm.Send(s,") + "comm.Bcast(u)\n"
    found = program(text, HEAD)
    facts = {name: int(f.value) for name, f in found.sizes.items() if f.value is not None}
    priced = lower_steps(found.functions[-1].body)
    assert priced.gaps == ()
    for size in (2, 3):
        moved = [sum(b * k for (_, b), k in ran(text, r, size).items()) for r in range(size)]
        assert lowered(priced.process, {**facts, "P": size}) == max(moved), text
