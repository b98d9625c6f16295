"""Communicators of all ranks and of some, however functions get them and whoever calls them."""

from __future__ import annotations

import pytest
from reading import HEAD, program, steps, the_operation

from advisor.frontend.spmd.reader import read_program
from advisor.ir.spmd.ranks import PartnerKind
from advisor.ir.spmd.steps import Communicate, Unknown, walk
from costdb.expr import to_text

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
