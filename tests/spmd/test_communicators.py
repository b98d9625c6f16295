"""Communicators of all ranks and of some, however functions get them and whoever calls them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from reading import HEAD, program, steps, the_operation

from advisor.analysis.spmd.lower import lower_steps
from advisor.frontend.spmd.reader import read_program
from advisor.ir.spmd.program import RANK, RANKS
from advisor.ir.spmd.steps import (
    Branch,
    Call,
    Communicate,
    Compute,
    Loop,
    Op,
    Partner,
    PartnerKind,
    Step,
    Unknown,
    walk,
)
from costdb.expr import evaluate, to_text
from costdb.work import Branch as Chosen
from costdb.work import Leaf, Message, Parallel, Process, SeqLoop, Sequential, Statement

EXCHANGE = """
def exchange(u, comm):
    comm.Allreduce(MPI.IN_PLACE, u)
"""


def communicators(text: str, function: str) -> list[tuple[str, str]]:
    """Return size and rank of what a function communicates over, in the order of its calls."""
    source = f"import numpy as np\nfrom mpi4py import MPI\n\nworld = MPI.COMM_WORLD\n{text}"
    compile(source, "program.py", "exec")
    program = read_program("program.py", source)
    found = program.function(function)
    sent = [v.step for v in walk(found.body) if isinstance(v.step, Communicate)]
    return [(to_text(s.communicator.size), to_text(s.communicator.rank)) for s in sent]


OF_ALL = ("P", "rank")


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("world", OF_ALL),
        ("world.Dup()", OF_ALL),
        ("world.Split(world.rank % 2)", ("P.part", "rank.part")),
        ("world.Split_type(MPI.COMM_TYPE_SHARED)", ("P.part", "rank.part")),
        ("world.Create_group(world.Get_group())", ("P.part", "rank.part")),
    ],
)
def test_a_parameter_is_the_communicator_that_is_passed(
    made: str, expected: tuple[str, str]
) -> None:
    assert communicators(
        f"{EXCHANGE}\npart = {made}\nexchange(np.zeros(4), part)\n", "exchange"
    ) == [expected]


def test_part_of_a_mesh_is_as_large_as_its_axis() -> None:
    text = "mesh = world.Create_cart((4, 2))\nrow = mesh.Sub((False, True))\n"
    ((size, rank),) = communicators(f"{EXCHANGE}\n{text}exchange(np.zeros(4), row)\n", "exchange")
    assert size == "2" and rank != "rank"


def test_a_parameter_that_is_several_communicators_is_none_of_them() -> None:
    calls = (
        "half = world.Split(world.rank % 2)\nfor c in range(3):\n    exchange(np.zeros(4), {})\n"
    )
    several = calls.format("world") + "    exchange(np.zeros(4), half)\n"
    ((size, rank),) = communicators(EXCHANGE + several, "exchange")
    assert size not in ("P", "P.half") and rank not in ("rank", "rank.half")
    # a duplicate has the same ranks
    several = calls.format("world") + "    exchange(np.zeros(4), world.Dup())\n"
    assert communicators(EXCHANGE + several, "exchange") == [OF_ALL]


def test_each_function_has_its_own_of_all_ranks() -> None:
    text = "def one(a: MPI.Comm):\n    a.Barrier()\n\n\ndef other(b: MPI.Comm):\n    b.Barrier()\n"
    assert communicators(text, "one") == communicators(text, "other") == [OF_ALL]


CART = """
cart = MPI.Intracomm.Create_cart(comm, (size,), (True,), False)
left, right = MPI.Cartcomm.Shift(cart, 0, 1)
x = np.zeros(100)
cart.Send(x, dest=right)
"""


def test_what_makes_communicators_and_neighbours_is_followed() -> None:
    by_class = the_operation(CART)
    bound = the_operation(
        CART.replace("MPI.Intracomm.Create_cart(comm, ", "comm.Create_cart(").replace(
            "MPI.Cartcomm.Shift(cart, ", "cart.Shift("
        )
    )
    assert by_class.dest.kind is bound.dest.kind is PartnerKind.NEIGHBOUR
    assert by_class.dest.displacement == 1
    assert by_class.communicator.dims == bound.communicator.dims


def test_what_is_sent_so_is_told() -> None:
    read = program("x = np.zeros(9)\nMPI.Comm.Send(comm, x, 1)\ncomm.Recv(x)\n")
    assert [(one.reason, one.span.start_line) for one in steps(read, Unknown)] == [
        ("`Send` is called by the class of its communicator", HEAD.count("\n") + 2)
    ]


@pytest.mark.parametrize("dims", [(6,), (3, 4), (2, 3, 4)])
def test_coordinates_are_those_of_row_major_order(dims: tuple[int, ...]) -> None:
    text = f"cart = comm.Create_cart({dims})\nat = cart.Get_coords(rank)\n"
    for axis in range(len(dims)):
        found = the_operation(f"{text}comm.send(1, dest=at[{axis}])\n").dest
        assert found is not None and found.rank is not None
        for rank in range(math.prod(dims)):
            assert evaluate(found.rank, {"rank": rank}) == np.unravel_index(rank, dims)[axis]


# Ranks that wait for one another, against a simulation of blocking sends and receives.


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
            case Compute(target=target) if target is not None:
                yield "work", int(evaluate(target.count, here))
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
def test_a_chain_takes_about_as_long_as_its_ranks_one_after_the_other(
    text: str, trips: int, a: int, b: int, c: int
) -> None:
    between = WORK[b] if text is not NESTED else WORK[b].replace("\n    ", "\n        ")
    source = text.format(loop=f"for k in range({trips}):", a=WORK[a], b=between, c=WORK[c])
    (function,) = [f for f in program(source).functions if f.name == "<module>"]
    lowered = lower_steps(function.body).process
    for ranks in (2, 3, 4, 7, 50):
        ratio = seconds(lowered, {RANKS: ranks}) / simulated(function.body, ranks)
        assert 0.5 <= ratio <= 1.5, (ranks, ratio)
