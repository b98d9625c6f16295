"""ADV606 over the ways in which programs stage faces, whose cases are a document."""

import pytest

from advisor import engine
from advisor.engine import Options
from advisor.ir.spmd.program import ProgramProposal
from advisor.ir.spmd.steps import Communicate, Copy
from tests.transforms.messages.test_message_cases import CASES
from tests.transforms.spmd_running import HEADER, read
from transforms.messages.partition_axis import TRANSFORM

CLASS = f"""{HEADER}
class Heat:
    def __init__(self, n, comm):
        self.comm, self.rank = comm, comm.Get_rank()
        self.u = np.zeros((n, n // comm.Get_size() + 2))
        self.sent, self.got = np.empty(n), np.empty(n)

    def exchange(self):
        right = (self.rank + 1) % self.comm.size
        self.sent[:] = self.u[:, -2]
        self.comm.Sendrecv(self.sent, dest=right, recvbuf=self.got)
        self.u[:, 0] = self.got


heat = Heat(960, MPI.COMM_WORLD)
for step in range(50):
    heat.exchange()
"""
MODULE_OF_EXCHANGE = f"""{HEADER}
def pack(u, j):
    return np.ascontiguousarray(u[:, j])


def swap(comm, sent, to, got, giver):
    comm.Sendrecv(sent, dest=to, recvbuf=got, source=giver)


def exchange(u, comm):
    rank, size = comm.Get_rank(), comm.Get_size()
    got = np.empty(u.shape[0])
    swap(comm, pack(u, -2), (rank + 1) % size, got, (rank - 1) % size)
    u[:, 0] = got


world = MPI.COMM_WORLD
u = np.zeros((960, 960 // world.Get_size() + 2))
for step in range(50):
    exchange(u, world)
"""
TWO = ("display", "display")
STAGED = {
    name: case.source
    for name, case in CASES.items()
    if name.startswith("ADV606") and case.verdict == TWO
}
STAGED |= {"attributes": CLASS, "functions_that_pack_and_send": MODULE_OF_EXCHANGE}


def proposals(source: str) -> list[ProgramProposal]:
    return list(TRANSFORM.propose_program(read(source)))


@pytest.mark.parametrize("name", STAGED)
def test_staged_columns_are_seen_however_they_are_staged(name: str) -> None:
    turned, ordered = proposals(STAGED[name])
    assert turned.title.startswith("split `") and ordered.title.startswith("store `")
    for one in (turned, ordered):
        assert not [step for step in one.after if isinstance(step, Copy)]
        sent = [step for step in one.before if isinstance(step, Communicate)]
        # each is copied before it goes, and as one like it comes
        assert len([step for step in one.before if isinstance(step, Copy)]) == 2 * len(sent)


def test_a_copy_that_protects_a_message_stays() -> None:
    source = STAGED["ADV606_not_at_once"]
    for one in proposals(source.replace("MPI.Request", "u[:, 1:-1] *= 0.5\n        MPI.Request")):
        assert len([step for step in one.after if isinstance(step, Copy)]) == 2


@pytest.mark.parametrize("name", ["ADV606_filled", "attributes", "functions_that_pack_and_send"])
def test_a_gain_is_predicted(name: str) -> None:
    options = Options("t3e", {"P": 8}, (), (), 1.0, everything=True)
    source = STAGED[name] + "\n\nmain(MPI.COMM_WORLD)\n" * name.startswith("ADV606")
    findings = engine.check_source("program.py", source, options).findings
    assert [one.speedup > 1.5 for one in findings if one.code == "ADV606"] == [True]


MESH = f"""{HEADER}
comm = MPI.COMM_WORLD
dims = MPI.Compute_dims(comm.Get_size(), 2)
cart = comm.Create_cart(dims, periods=(True, True))
u = np.zeros((960 // dims[0] + 2, 960 // dims[1] + 2))
up, down = cart.Shift(0, 1)
west, east = cart.Shift(1, 1)
ghost = np.empty(960 // dims[0] + 2)
for step in range(50):
    cart.Sendrecv(u[1, :], dest=up, recvbuf=u[-1, :], source=down)
    cart.Sendrecv(u[:, 1].copy(), dest=west, recvbuf=ghost, source=east)
    u[:, -1] = ghost
"""


@pytest.mark.parametrize(("ranks", "mesh"), [({}, None), ({"P": 8}, "4 x 2"), ({"P": 12}, "4 x 3")])
def test_ranks_that_the_user_binds_reach_the_rules(ranks: dict[str, int], mesh: str | None) -> None:
    """What ``Compute_dims`` chooses is compared with other shapes once its ranks are known."""
    findings = engine.check_source(
        "p.py", MESH, Options("t3e", ranks, (), (), 1.0, everything=True)
    ).findings
    told = [one.message for one in findings if one.code == "ADV605"]
    assert [title.rpartition("not ")[2] for title in told] == ([] if mesh is None else [mesh])
