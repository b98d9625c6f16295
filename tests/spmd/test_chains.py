"""Ranks that wait for one another, against a simulation of blocking sends and receives."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from reading import program

from advisor.analysis.spmd.lower import lower_steps
from advisor.ir.spmd.program import RANK, RANKS
from advisor.ir.spmd.ranks import Partner
from advisor.ir.spmd.steps import Branch, Call, Communicate, Compute, Loop, Op, Step
from costdb.expr import evaluate
from costdb.process.terms import Branch as Chosen
from costdb.process.terms import Leaf, Parallel, Process, SeqLoop, Sequential
from costdb.work import Message, Statement

MESSAGE = 1000
"""Time of a message; an operation on an element takes 1."""

UPWARDS = """\
x, y, z = np.zeros(40), np.zeros(7), np.zeros(3)
{loop}
    {a}
    if rank > 0:
        comm.Recv(x, source=rank - 1)
    {b}
    if rank < size - 1:
        comm.Send(x, dest=rank + 1)
    {c}
"""
DOWNWARDS = UPWARDS.replace("rank > 0", "rank != size - 1").replace("rank < size - 1", "rank")
DOWNWARDS = DOWNWARDS.replace("source=rank - 1", "source=rank + 1")
DOWNWARDS = DOWNWARDS.replace("dest=rank + 1", "dest=rank - 1")
ABSENT = """\
x, y, z = np.zeros(40), np.zeros(7), np.zeros(3)
left = rank - 1 if rank > 0 else MPI.PROC_NULL
right = rank + 1 if rank < size - 1 else MPI.PROC_NULL
{loop}
    {a}
    comm.Recv(x, source=left)
    {b}
    comm.Send(x, dest=right)
    {c}
"""
NESTED = """\
x, y, z = np.zeros(40), np.zeros(7), np.zeros(3)
def once():
    {a}
    if rank == 0:
        comm.Send(x, dest=1)
    else:
        comm.Recv(x, source=rank - 1)
        {b}
        if rank + 1 < size:
            comm.Send(x, dest=rank + 1)
{loop}
    once()
    {c}
"""


def seconds(process: Process, here: dict[str, int]) -> int:
    """Return how long a process takes where messages and operations take what they do here."""
    match process:
        case Leaf(work=Message()):
            return MESSAGE
        case Leaf(work=Statement(operations=operations)):
            return int(evaluate(operations, here))
        case Leaf():
            return 0
        case Sequential(parts=parts):
            return sum(seconds(part, here) for part in parts)
        case Parallel(parts=parts):
            return max((seconds(part, here) for part in parts), default=0)
        case Chosen(probability, then, orelse):
            return seconds(then if evaluate(probability, here) else orelse, here)
        case SeqLoop(variable, low, high, body):
            values = range(int(evaluate(low, here)), int(evaluate(high, here)) + 1)
            return sum(seconds(body, {**here, variable: value}) for value in values)
    raise AssertionError(process)


def taken(steps: tuple[Step, ...], here: dict[str, int]) -> Iterator[tuple[str, int]]:
    """Yield what a rank does: what it takes alone, and whom it sends to or receives from."""

    def other(partner: Partner | None) -> int:
        return int(evaluate(partner.rank, here))

    for step in steps:
        match step:
            case Compute(operations=operations) if operations is not None:
                yield "work", int(evaluate(operations, here))
            case Communicate(op=op):
                rank = other(step.dest if op is Op.SEND else step.source)
                if 0 <= rank < here[RANKS]:
                    yield op.value, rank
            case Branch(condition=condition, then=then, orelse=orelse):
                yield from taken(then if evaluate(condition.value, here) else orelse, here)
            case Loop(trips=trips, body=body):
                for _ in range(int(evaluate(trips, here))):
                    yield from taken(body, here)
            case Call(body=body):
                yield from taken(body, here)
            case _:
                pass


def simulated(steps: tuple[Step, ...], ranks: int) -> int:
    """Return when the last rank is done, where a send waits for its receive."""
    plans = [list(taken(steps, {RANK: rank, RANKS: ranks})) for rank in range(ranks)]
    clocks, places = [0] * ranks, [0] * ranks
    while any(place < len(plan) for place, plan in zip(places, plans, strict=True)):
        moved = False
        for rank in range(ranks):
            if places[rank] == len(plans[rank]):
                continue
            what, value = plans[rank][places[rank]]
            if what == "work":
                clocks[rank] += value
                places[rank] += 1
                moved = True
            elif what == "send" and plans[value][places[value] :][:1] == [("recv", rank)]:
                met = max(clocks[rank], clocks[value]) + MESSAGE
                clocks[rank] = clocks[value] = met
                places[rank] += 1
                places[value] += 1
                moved = True
        assert moved, "deadlock"
    return max(clocks)


WORK = ["pass", "x += 1.0", "y += 1.0\n    x += 1.0"]


@pytest.mark.parametrize("text", [UPWARDS, DOWNWARDS, ABSENT, NESTED])
@pytest.mark.parametrize("trips", [1, 2, 5])
@pytest.mark.parametrize(("a", "b", "c"), [(0, 0, 0), (0, 1, 0), (0, 2, 1), (0, 1, 2)])
def test_a_chain_takes_as_long_as_its_ranks_one_after_the_other(
    text: str, trips: int, a: int, b: int, c: int
) -> None:
    between = WORK[b] if text is not NESTED else WORK[b].replace("\n    ", "\n        ")
    source = text.format(loop=f"for k in range({trips}):", a=WORK[a], b=between, c=WORK[c])
    (function,) = [f for f in program(source).functions if f.name == "<module>"]
    lowered = lower_steps(function.body).process
    for ranks in (2, 3, 4, 7):
        assert seconds(lowered, {RANKS: ranks}) == simulated(function.body, ranks), ranks
