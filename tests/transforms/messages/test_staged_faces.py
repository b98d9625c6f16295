"""ADV606 over the ways in which programs stage faces: what is shown of them, and what is not."""

import pytest

from advisor import engine
from advisor.engine import Options
from advisor.ir.spmd.program import ProgramProposal
from advisor.ir.spmd.steps import Communicate, Copy
from tests.transforms.spmd_running import HEADER, read
from transforms.messages.partition_axis import TRANSFORM

START = """\
comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
left = rank - 1 if rank > 0 else MPI.PROC_NULL
right = rank + 1 if rank < size - 1 else MPI.PROC_NULL
n = 960
nb = n // size
u = np.zeros((n, nb + 2))
"""
MADE_BEFORE = "sl, sr, rl, rr = np.empty(n), np.empty(n), np.empty(n), np.empty(n)\n"
FILLED = """\
sl[:] = u[:, 1]
sr[:] = u[:, -2]
"""
EXCHANGED = """\
comm.Sendrecv(sl, dest=left, recvbuf=rr, source=right)
comm.Sendrecv(sr, dest=right, recvbuf=rl, source=left)
"""
EMPTIED = """\
u[:, 0] = rl
u[:, -1] = rr
"""
STENCIL = "u[1:-1, 1:-1] = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]\n"


def looped(body: str, before: str = MADE_BEFORE, first: str = "") -> str:
    lines = "".join(f"    {line}\n" for line in (body + STENCIL).splitlines())
    return f"{HEADER}{first}{START}{before}for step in range(50):\n{lines}"


def copied(pattern: str) -> str:
    left, right = pattern.format("u[:, 1]"), pattern.format("u[:, -2]")
    return looped(f"sl = {left}\nsr = {right}\n{EXCHANGED}{EMPTIED}")


def filled(filling: str = FILLED, exchanged: str = EXCHANGED, emptied: str = EMPTIED) -> str:
    return looped(filling + exchanged + emptied)


def named(template: str, before: str) -> str:
    """Return the exchange with buffers that are called otherwise."""
    body = FILLED + EXCHANGED + EMPTIED
    for name in ("sl", "sr", "rl", "rr"):
        body = body.replace(name, template.format(name))
    return looped(body, before)


NOT_AT_ONCE = """\
requests = [comm.Irecv(rl, source=left), comm.Irecv(rr, source=right)]
requests += [comm.Isend(sl, dest=left), comm.Isend(sr, dest=right)]
MPI.Request.Waitall(requests)
"""
GUARDED = """\
if rank > 0:
    comm.Send(sl, dest=rank - 1)
if rank < size - 1:
    comm.Recv(rr, source=rank + 1)
    comm.Send(sr, dest=rank + 1)
if rank > 0:
    comm.Recv(rl, source=rank - 1)
"""
HELPER = """\
def swap(sent, to, got, giver):
    MPI.COMM_WORLD.Sendrecv(sent, dest=to, recvbuf=got, source=giver)


"""
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


def exchange(u, comm):
    rank, size = comm.Get_rank(), comm.Get_size()
    got = np.empty(u.shape[0])
    comm.Sendrecv(pack(u, -2), dest=(rank + 1) % size, recvbuf=got, source=(rank - 1) % size)
    u[:, 0] = got


world = MPI.COMM_WORLD
u = np.zeros((960, 960 // world.Get_size() + 2))
for step in range(50):
    exchange(u, world)
"""

STAGED = {
    "copy": copied("{}.copy()"),
    "ascontiguousarray": copied("np.ascontiguousarray({})"),
    "array": copied("np.array({})"),
    "flatten": copied("{}.flatten()"),
    "ravel": copied("{}.ravel()"),
    "copied_twice": copied("np.ascontiguousarray({}.copy())"),
    "filled": filled(),
    "copyto": filled("np.copyto(sl, u[:, 1])\nnp.copyto(sr, u[:, -2])\n"),
    "not_at_once": filled(exchanged=NOT_AT_ONCE),
    "guarded": filled(exchanged=GUARDED),
    "described": filled(exchanged=EXCHANGED.replace("(sl,", "([sl, MPI.DOUBLE],")),
    "dictionary": named("b['{}']", "b = {k: np.empty(n) for k in ('sl', 'sr', 'rl', 'rr')}\n"),
    "dictionary_by_lines": named(
        "b['{}']",
        "b = {}\n" + "".join(f"b['{k}'] = np.empty(n)\n" for k in ("sl", "sr", "rl", "rr")),
    ),
    "rows_of_one_buffer": looped(
        "b[0] = u[:, 1]\ncomm.Sendrecv(b[0], dest=left, recvbuf=c[1], source=right)\n"
        "u[:, -1] = c[1]\n",
        "b, c = np.empty((2, n)), np.empty((2, n))\n",
    ),
    "attributes": CLASS,
    "function_that_sends": looped(
        FILLED + "swap(sl, left, rr, right)\nswap(sr, right, rl, left)\n" + EMPTIED, first=HELPER
    ),
    "function_that_packs": MODULE_OF_EXCHANGE,
    "two_layers": looped(
        "sl = u[:, 2:4].copy()\ncomm.Sendrecv(sl, dest=left, recvbuf=rr, source=right)\n"
        "u[:, -2:] = rr\n",
        "rr = np.empty((n, 2))\n",
    ),
}


def proposals(source: str) -> list[ProgramProposal]:
    compile(source, "program.py", "exec")
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
        assert str(one.legality.applicability) == "display"


def test_a_copy_that_protects_a_message_stays() -> None:
    sent_on = NOT_AT_ONCE.replace("MPI.Request", "u[:, 1:-1] *= 0.5\nMPI.Request")
    for one in proposals(filled(exchanged=sent_on)):
        assert len([step for step in one.after if isinstance(step, Copy)]) == 2


def test_only_the_order_is_proposed_where_whole_columns_are_summed() -> None:
    (one,) = proposals(looped(FILLED + EXCHANGED + EMPTIED + "means = u.sum(axis=0)\n"))
    assert one.title.startswith("store `u` in Fortran order")


@pytest.mark.parametrize("name", ["ascontiguousarray", "filled", "dictionary", "attributes"])
def test_a_gain_is_predicted(name: str) -> None:
    options = Options("t3e", {"P": 8}, (), (), 1.0, everything=True)
    findings = engine.check_source("program.py", STAGED[name], options).findings
    assert [one.speedup > 1.5 for one in findings if one.code == "ADV606"] == [True]


QUIET = {
    "rows": filled().replace("[:, ", "[").replace("(n, nb + 2)", "(nb + 2, n)"),
    "fortran_order": filled().replace("nb + 2))", "nb + 2), order='F')"),
    "component_first": filled().replace("(n, nb + 2)", "(9, n, nb + 2)").replace("[:, ", "[0, :, "),
    "both_axes_split": filled().replace("(n, nb + 2)", "(nb + 2, nb + 2)"),
    "split_along_the_other_axis": filled().replace("(n, nb + 2)", "(nb, n + 2)"),
    "split_by_what_is_not_known": filled().replace("nb = n // size", "nb = int(input())"),
    "rows_in_another_function": filled(
        filling=FILLED + "comm.Sendrecv(u[1].copy(), dest=left, recvbuf=u[0], source=right)\n"
    ),
    "filled_with_something_else_since": filled(filling=FILLED + "sl[:], sr[:] = 1.0, 2.0\n"),
    "filled_with_what_is_computed": filled(FILLED.replace("= u", "= 2 * u")),
    "filled_in_part": filled(FILLED.replace("sl[:]", "sl[1:]").replace("sr[:]", "sr[:5]")),
    "a_slab": filled(FILLED.replace(", 1]", ", 1:nb]").replace(", -2]", ", 2:nb]")).replace(
        "= np.empty(n), np.empty(n)", "= np.empty((n, nb - 1)), np.empty((n, nb - 2))"
    ),
    "half_of_the_ranks": filled().replace(
        "rank, size", "half = comm.Split(rank_of(comm) % 2)\nrank, size"
    ).replace("comm.Sendrecv", "half.Sendrecv"),
    "far_away": filled(
        exchanged=EXCHANGED.replace("left,", "(rank + 3) % size,").replace("right,", "0,")
    ),
    "once": filled().replace("for step in range(50):", "if n:"),
}  # fmt: skip


@pytest.mark.parametrize("name", QUIET)
def test_faces_that_are_left_alone(name: str) -> None:
    assert [one.title for one in proposals(QUIET[name])] == []


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
