"""Programs of ranks, sampled under a real launcher: all ranks run the same iterations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.cli.app import main
from advisor.measure import pieces
from advisor.measure.language import Refused, sampled_file
from advisor.measure.pieces import Effort, NoPiece, Piece, sample

HEAD = """\
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
"""
HALO = f"""{HEAD}
u = np.zeros((40, 30))
up = rank - 1 if rank > 0 else MPI.PROC_NULL
down = rank + 1 if rank < size - 1 else MPI.PROC_NULL
for step in range(STEPS):
    comm.Sendrecv(u[1], dest=up, recvbuf=u[-1], source=down)
    comm.Sendrecv(u[-2], dest=down, recvbuf=u[0], source=up)
    u[1:-1] = 0.5 * (u[:-2] + u[2:])
total = comm.allreduce(float(u.sum()))
"""
FARM = f"""{HEAD}
if rank == 0:
    out = [comm.recv(source=1, tag=k) for k in range(20)]
    for k in range(300):
        out.append(comm.recv(source=1, tag=20 + k))
else:
    for k in range(rank, 321, size - 1):
        comm.send(np.linalg.norm(np.ones(9)), dest=0, tag=k - 1)
"""


def sampled(text: str, ranks: int = 2, **effort: float) -> Piece | NoPiece:
    (found,) = all_sampled([text], ranks, **effort)
    return found


def all_sampled(texts: list[str], ranks: int = 2, **effort: float) -> list[Piece | NoPiece]:
    """Sample programs in one launch."""
    programs = [(sampled_file("p.py", text, {}), {}) for text in texts]
    return list(sample(programs, Effort(launches=1, ranks=ranks, **effort)))


def in_all(found: Piece | NoPiece) -> Piece:
    assert isinstance(found, Piece), found
    return found


@pytest.mark.parametrize("ranks", [1, 3])
def test_of_a_long_loop_every_rank_runs_the_same_iterations(ranks: int) -> None:
    texts = [HALO.replace("STEPS", str(steps)) for steps in (60, 900_000)]
    short, long = map(in_all, all_sampled(texts, ranks))
    assert not short.skipped
    # nine at the beginning, and five windows of two that warm and three times two that count
    assert long.skipped == {9: 900_000 - 9 - 5 * 8}
    assert long.mid_s > long.spent_s


SERVED = f"""{HEAD}
def ask(peer, text):
    comm.send(text, dest=peer)
    return comm.recv(source=peer)

def serve(times):
    for k in range(times):
        comm.send(comm.recv(source=0), dest=0)

TOLD
"""
APART = (
    "if rank == 0:\n    for k in range(400):\n        ask(1, k)\nelif rank == 1:\n    serve(400)",
    "def work():\n    if rank > 0:\n        serve(400)\n        return\n"
    "    for k in range(400):\n        ask(1, k)\nwork()",
    "def work():\n    if rank == 0:\n        for k in range(400):\n            ask(1, k)\n"
    "        return 0\n    return serve(400)\nwork()",
)


def test_ranks_that_do_different_things_run_every_iteration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where it is a function that only one of them calls, or behind its return."""
    monkeypatch.setattr(pieces, "_LONG_S", 0.0)
    texts = [FARM, *(SERVED.replace("TOLD", told) for told in APART)]
    for text, found in zip(texts, all_sampled(texts, budget_s=20), strict=True):
        assert not in_all(found).skipped, text


def test_what_objects_have_may_be_called_as_what_communicators_have() -> None:
    text = f"""{HEAD}
class Part:
    def __init__(self, comm):
        self.comm, self.rank = comm, comm.rank

    def shared(self):
        total, root = self.comm.allreduce(self.rank), 0
        return total, root

print(Part(comm).shared())
"""
    in_all(sampled(text))


def test_what_the_slowest_rank_takes_counts() -> None:
    text = (
        HEAD
        + "if rank == 1:\n    for i in range(3_000_000):\n        x = i * 0.5\ncomm.Barrier()\n"
    )
    busy, idle = map(in_all, all_sampled([text, text.replace("rank == 1", "rank == 7")]))
    assert busy.mid_s > 5 * idle.mid_s


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("if rank == 1:\n    x = np.ones(3)[7]\ncomm.Barrier()\n", "line 5: IndexError"),
        ("comm.recv(source=1 - rank)\n", "took more than"),
        ("n = 0\nwhile n >= 0:\n    n = comm.allreduce(1)\n", "nothing says how often"),
    ],
)
def test_what_does_not_end_well_is_one_line(
    text: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "recv" in text:
        # what MPI holds is ended from outside
        monkeypatch.setattr(pieces, "_PATIENCE_S", 2.0)
    found = sampled(HEAD + text, budget_s=2.0)
    assert isinstance(found, NoPiece) and why in f"line {found.line}: {found.why}"


def test_shapes_that_change_between_iterations_are_all_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pieces, "_LONG_S", 0.0)
    text = HEAD + (
        "x = np.ones(2)\nfor k in range(200):\n    x = np.append(x, comm.allreduce(1.0))\n"
        "y = x[200]\n"
    )
    assert not in_all(sampled(text)).skipped


def test_files_of_all_ranks_are_left_out_and_told() -> None:
    text = HEAD + "f = MPI.File.Open(comm, 'data', MPI.MODE_RDONLY)\nx = np.ones(3)\nf.Close()\n"
    assert [line for line, _ in sampled_file("p.py", text, {}).left_out] == [5, 7]


@pytest.mark.parametrize("text", ["comm.Spawn('sh')", "x = comm.Get_parent()", "MPI.Open_port()"])
def test_what_starts_others_does_not_run(text: str) -> None:
    try:
        found = sampled_file("p.py", f"{HEAD}{text}\n", {})
    except Refused:
        return
    assert not any(word in found.text for word in ("Spawn", "Get_parent", "Open_port"))


def test_a_program_is_told_by_statement_and_with_its_rewrites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ADVISE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    Path("sum.py").write_text(
        f"{HEAD}\ndef work():\n    x = np.ones(1000)\n    t = 0.0\n"
        "    for i in range(100):\n        t += comm.allreduce(x[i])\n    return t\n\nwork()\n"
    )
    assert main(["measure", "sum.py", "-P", "2", "--output-format", "json"]) == 0
    written, *rewrites = json.loads(capsys.readouterr().out)["measured"]
    assert set(written["statements_s"]) > {"9", "11"}
    # it takes less than a second
    assert written["iterations_not_run"] == {}
    assert written["measured_s"]["mid"] > 0
    assert main(["measure", "sum.py"]) == 0
    shown = capsys.readouterr().out
    assert "for i in range(100):" in shown
    assert all(one["code"] in shown for one in rewrites)
