"""``advise predict``, ``choose`` and ``check`` on unmodified mpi4py programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.frontend import prefilter
from tests.advisor.cli.commands import EXAMPLES, ROOT, Program

PLAIN = str(ROOT / "tests" / "data" / "plain_machine.json")
JACOBI = str(EXAMPLES / "mpi" / "jacobi.py")
BOX = str(EXAMPLES / "mpi" / "box_sum.py")

ONE_FACE = """\
import numpy as np
from mpi4py import MPI

N = 100
comm = MPI.COMM_WORLD


def exchange(u, steps: int):
    right = (comm.rank + 1) % comm.size
    for _ in range(steps):
        r = np.empty(N)
        comm.Sendrecv(u[0], dest=right, recvbuf=r)
        if unforeseen():
            comm.Barrier()


def whole(u: np.ndarray):
    comm.Bcast(u)


exchange(np.zeros((N, N)), 10)
"""


def test_what_is_not_known_is_told_with_its_line(program: Program, tmp_path: Path) -> None:
    file = tmp_path / "f.py"
    file.write_text(ONE_FACE)
    arguments = ("predict", str(file), "--kernel", "exchange", "--machine", PLAIN, "-P", "4")
    found = program.json(*arguments)
    assert not found["complete"] and found["seconds"]["high"] is None
    assert any(one["line"] == 13 and "unforeseen" in one["text"] for one in found["missing"])
    shown = program(*arguments).out
    assert "at least" in shown and "not priced: line 13, " in shown
    # the size of a parameter that nothing gives
    unbound = program("predict", str(file), "--kernel", "whole", "--machine", PLAIN, "-P", "4")
    assert unbound.code == 2
    assert unbound.err.count("\n") == 1
    assert "u.size is not bound" in unbound.err


def test_several_functions_must_be_told_apart(program: Program, tmp_path: Path) -> None:
    file = tmp_path / "f.py"
    file.write_text(ONE_FACE)
    for extra, message in (((), "choose one with --kernel"), (("--kernel", "hole"), "whole")):
        ended = program("predict", str(file), *extra, "--machine", PLAIN, "-P", "2")
        assert ended.code == 2
        assert message in ended.err


def test_several_files_are_ranked_against_each_other(program: Program, tmp_path: Path) -> None:
    ended = program("choose", JACOBI, BOX, "--kernel", "main", "--machine", PLAIN, "-P", "2")
    assert ended.code == 0
    assert "jacobi.py:main" in ended.out
    assert "box_sum.py:main" in ended.out
    over = program("choose", JACOBI, "--kernel", "jacobi", "--over", "P=2,4", "--machine", PLAIN)
    assert over.code == 0


@pytest.mark.parametrize(
    "text",
    [
        "comm.allreduce(x, y)\n",
        "x.reduce(y)\nitems.gather()\nbroadcast(x)\n",
        "arrange(prangel, mpi4pyx)\n",
        "sendrecv = Sendrecv\n",
    ],
)
def test_files_without_communication_are_told_by_their_text(text: str) -> None:
    assert not prefilter.needs_reading(text)
    assert not prefilter.needs_decoding(text.encode())
