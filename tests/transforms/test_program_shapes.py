"""ADV605 and ADV609: what is shown of meshes and shares, and what is not."""

import pytest

from advisor.analysis.spmd.statements import of_step
from advisor.ir.spmd.program import ProgramProposal, ProgramTransform
from advisor.ir.spmd.steps import Compute, Loop
from costdb.expr import evaluate
from costdb.work import ArrayOperation
from tests.transforms.spmd_running import HEADER, read
from transforms.distributions.mesh_of_ranks import TRANSFORM as MESHES
from transforms.loops.dealt_loops import TRANSFORM as SHARES

START = """\
comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
left, right = (rank - 1) % size, (rank + 1) % size
n = 960
nb = n // size
"""
MESH = """\
cart = comm.Create_cart({dims}, periods={periods})
u = np.zeros((n // 4 + 2, n + 2), order={order!r})
up, down = cart.Shift(0, 1)
west, east = cart.Shift(1, 1)
face = np.empty(n // 4 + 2)
for step in range(50):
    cart.Sendrecv(u[1, :].copy(), dest=up, recvbuf=u[-1, :].copy(), source=down)
    cart.Sendrecv(u[:, 1].copy(), dest=west, recvbuf=face, source=east)
"""


def found(rule: ProgramTransform, text: str, first: str = "") -> list[ProgramProposal]:
    source = f"{first}{HEADER}{START}{text}"
    compile(source, "program.py", "exec")
    return list(rule.propose_program(read(source)))


def shapes(text: str, first: str = "") -> list[str]:
    return [one.title.removeprefix("arrange the ") for one in found(MESHES, text, first)]


def mesh(dims: str = "(4, 1)", periods: str = "(True, True)", order: str = "C") -> str:
    return MESH.format(dims=dims, periods=periods, order=order)


def test_idle_ranks_are_told() -> None:
    text = f"side = int(np.sqrt(size))\n{mesh('(side, side)')}"
    told = shapes(text, "# mpirun -n 6 python program.py\n")
    assert told[1] == "6 ranks as 2 x 3, not 2 x 2, which leaves 2 of them idle"
    assert not any("idle" in one for one in shapes(text, "# mpirun -n 9 python program.py\n"))


def test_an_axis_of_one_rank_sends_nothing_unless_it_is_a_ring() -> None:
    (open_ends, _) = found(MESHES, mesh(periods="(False, False)"))
    (ring, _) = found(MESHES, mesh())
    assert len(open_ends.before) == 1
    assert len(ring.before) == 2


def test_of_several_exchanges_over_a_mesh_the_deepest_in_loops_counts() -> None:
    again = mesh().partition("face = ")[2].replace("for step", "for turn")
    nested = again.replace("\n    ", "\n        ").replace(
        "for turn", "for more in range(3):\n    for turn"
    )
    text = mesh() + "face = " + nested
    offered = found(MESHES, text)
    assert len(offered) == 2
    assert {len(one.loops) for one in offered} == {2}


QUIET_MESHES = {
    "sizes_nobody_knows": "import sys\nk = int(sys.argv[1])\n" + mesh("(k, size // k)"),
    "one_axis": """\
cart = comm.Create_cart((size,))
up, down = cart.Shift(0, 1)
u = np.zeros((n, n))
for step in range(9):
    cart.Sendrecv(u[1, :], dest=up, recvbuf=u[0, :], source=down)
""",
    "once": mesh().replace("for step in range(50):", "if n:"),
    "only_one_axis_is_seen": mesh().rpartition("    cart")[0],
}


@pytest.mark.parametrize("name", QUIET_MESHES)
def test_meshes_that_are_left_alone(name: str) -> None:
    assert shapes(QUIET_MESHES[name]) == []


TRIANGLE = """\
a, x, y = np.ones((n, n)), np.ones(n), np.zeros(n)
comm.Barrier()
for i in range(rank * nb, (rank + 1) * nb):
    for j in range(i, n):
        y[i] += a[i, j] * x[j]
"""


@pytest.mark.parametrize(
    "text",
    [
        TRIANGLE,
        TRIANGLE.replace("for j in range(i, n):", "for j in range(i):"),
        TRIANGLE.split("    for j")[0] + "    y[i] = np.dot(a[i, i:], x[i:])\n",
    ],
)
def test_a_triangle_is_dealt_out_in_turn(text: str) -> None:
    (one,) = found(SHARES, text)
    assert one.title == "deal the iterations over `i` out in turn, not in blocks"
    assert one.reason.endswith("; provided that no iteration needs what another one makes")


QUIET_SHARES = {
    "even_work": TRIANGLE.replace("range(i, n)", "range(n)"),
    "already_in_turn": TRIANGLE.replace(
        "range(rank * nb, (rank + 1) * nb)", "range(rank, n, size)"
    ),
    "tasks": "for i in range(rank, n, size):\n    comm.send(i, dest=0)\n",
    "list_of_tasks": "for t in [1, 2, 3, 4][rank::size]:\n    comm.send(t ** 2, dest=0)\n",
    "ends_early": TRIANGLE.replace("    for j", "    if y[i] > 9:\n        break\n    for j"),
    "talks": TRIANGLE.replace("    for j", "    comm.Barrier()\n    for j"),
}


@pytest.mark.parametrize("name", QUIET_SHARES)
def test_shares_that_are_left_alone(name: str) -> None:
    assert [one.title for one in found(SHARES, QUIET_SHARES[name])] == []


def test_the_product_of_two_vectors_is_one_number() -> None:
    text = TRIANGLE.split("    for j")[0] + "    y[i] = np.dot(a[i, i:], x[i:])\n"
    (one,) = found(SHARES, text)
    (loop,) = one.before
    assert isinstance(loop, Loop)
    product = loop.body[0]
    assert isinstance(product, Compute)
    made = [leaf.work for leaf in of_step(product)]
    *views, call = [call for work in made for call in work.calls]
    assert [made.operation for made in views] == [ArrayOperation.VIEW] * 2
    assert call.elements == call.length and call.result is None
    assert call.length is not None and evaluate(call.length, {"i": 900, "n": 960}) == 60
