"""Methods of communicators that are called by their class, with the communicator given first."""

from __future__ import annotations

from reading import HEAD, program, the_operation

from advisor.ir.spmd.ranks import PartnerKind
from advisor.ir.spmd.steps import Unknown, walk

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
    assert by_class.dest is not None and bound.dest is not None
    assert by_class.dest.kind is bound.dest.kind is PartnerKind.NEIGHBOUR
    assert by_class.dest.displacement == 1
    assert by_class.communicator.dims == bound.communicator.dims


def test_what_is_sent_so_is_told() -> None:
    read = program("x = np.zeros(9)\nMPI.Comm.Send(comm, x, 1)\ncomm.Recv(x)\n")
    (module,) = read.functions
    told = [v.step for v in walk(module.body) if isinstance(v.step, Unknown)]
    assert [(one.reason, one.span.start_line) for one in told] == [
        ("`Send` is called by the class of its communicator", HEAD.count("\n") + 2)
    ]
