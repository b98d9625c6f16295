"""``advise predict``, ``choose`` and ``check`` on unmodified mpi4py programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from advisor import engine, transform_registry
from advisor.finding import Applicability, Finding
from advisor.frontend import prefilter
from advisor.ir.kernel import Legality
from advisor.ir.spmd.program import Program as Read
from advisor.ir.spmd.program import ProgramProposal
from advisor.ir.spmd.steps import Loop, LoopKind, Op
from costdb.expr import num
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


class OfBroadcasts:
    """A rule for the tests: every broadcast could be something else."""

    code, name, documentation = "ADV699", "of-broadcasts", "# ADV699 of-broadcasts\n"

    def __init__(self, instead: Callable[[Any], Any]) -> None:
        self.instead = instead

    def propose_program(self, program: Read) -> Iterator[ProgramProposal]:
        for function in program.functions:
            for visit, step in function.operations():
                if step.op is Op.BCAST and step.send is not None and step.send.count is not None:
                    legality, about = Legality(Applicability.DISPLAY, "it is a test"), ("do", "so")
                    sides = (step,), (self.instead(step),)
                    yield ProgramProposal(
                        *about, step.span, function, *sides, legality, visit.loops
                    )


def only_rule(monkeypatch: pytest.MonkeyPatch, instead: Callable[[Any], Any]) -> None:
    monkeypatch.setattr(transform_registry, "program_transforms", lambda: (OfBroadcasts(instead),))


def half_as_much(step: Any) -> Any:
    return replace(step, send=replace(step.send, count=step.send.count / 2))


def in_pieces(step: Any) -> Any:
    """Return as many messages as there are ranks."""
    message, count = replace(step, op=Op.SEND, method="Send"), num(4)
    return Loop(LoopKind.COUNTED, "k", num(0), count, 1, count, (message,), step.span)


def test_rules_about_programs_make_ordinary_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    only_rule(monkeypatch, half_as_much)
    source = (
        "import numpy as np\nfrom mpi4py import MPI\n\nn = 50_000\n"
        "for step in range(10):\n    MPI.COMM_WORLD.Bcast(np.zeros(n))\n"
    )
    options = engine.Options(PLAIN, {"P": 4}, (), (), None)
    (found,) = engine.check_source("f.py", source, options).findings
    assert (found.code, found.kernel, found.span.start_line) == ("ADV699", "<module>", 6)
    # start-up stays, bytes and lines are halved
    assert 1.5 < found.prediction.speedup < 2
    named = {a.name: (a.value, a.origin) for a in found.assumptions}
    assert named["n"] == (50_000, "line 4")
    assert named["P"] == (4, "-D")
    assert found.fix is None
    quiet = source.replace("np.zeros(n))", "np.zeros(n))  # advise: ignore[ADV699]")
    assert engine.check_source("f.py", quiet, options).findings == ()


def test_sizes_that_nothing_binds_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """A finding says from how many ranks on it pays, and begins there when they are given."""
    only_rule(monkeypatch, in_pieces)
    source = (
        "import numpy as np\nfrom mpi4py import MPI\n\n\ndef f(steps: int):\n"
        "    for step in range(steps):\n        MPI.COMM_WORLD.Bcast(np.zeros(4))\n"
    )

    def findings(**sizes: int) -> tuple[Finding, ...]:
        options = engine.Options(PLAIN, sizes, (), (), None)
        return engine.check_source("f.py", source, options).findings

    (found,) = findings(steps=10)
    assert found.prediction is None
    assert found.condition is not None
    assert found.condition.open_sizes == ("P",)
    least = found.condition.pays_from
    assert least is not None and least > 2
    assert found.message.startswith(f"pays on plain for P >= {least}, tried to 4096: ")
    assert findings(steps=10, P=least - 1) == ()
    (begun,) = findings(steps=10, P=least)
    assert begun.prediction is not None
    # and with two of them, each is searched with the other at a value that is told
    (both,) = findings()
    assert both.condition is not None
    assert both.condition.open_sizes == ("P", "steps")
    assert {(a.name, a.value) for a in both.assumptions} == {("P", 16), ("steps", 4)}


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
