"""ADV301: blocks of neighbours give what elements dealt out in turn gave, for less."""

from __future__ import annotations

import pytest

from advisor.analysis.spmd.lower import lower_steps
from advisor.engine import Options, check_source
from advisor.finding import Applicability
from advisor.frontend.spmd.reader import read_program
from advisor.ir.spmd.program import ProgramProposal
from advisor.ir.spmd.steps import Step
from advisor.ranking.programs import bind_program
from costdb.expr import evaluate
from costdb.work import Leaf, Process, Sequential, Superstep
from transforms.loops.interleaved_writes import TRANSFORM

PROGRAM = """\
import math

import numpy as np
from numba import njit, prange


@njit(parallel=True)
def work({parameters}):
{before}    for t in prange(parts):
        for i in range(t, {end}, parts):
{body}
{behind}

work(np.zeros({size}), np.zeros({size}), {n}, {parts})
"""
GIVEN = "x: np.ndarray, y: np.ndarray, n: int, parts: int"


def source_of(
    body: list[str], *, n: int = 20, parts: int = 3, end: str = "n", before: str = "",
    parameters: str = GIVEN, behind: str = "    return y", size: int | None = None,
) -> str:  # fmt: skip
    text = PROGRAM.format(
        parameters=parameters, before=before, end=end, behind=behind + "\n", n=n, parts=parts,
        body="\n".join(" " * 12 + line for line in body), size=n + 8 if size is None else size,
    )  # fmt: skip
    compile(text, "f.py", "exec")
    return text


def proposals(source: str) -> list[ProgramProposal]:
    read = read_program("f.py", source)
    assert read is not None
    return list(TRANSFORM.propose_program(read))


def supersteps(process: Process) -> list[Superstep]:
    match process:
        case Leaf(work=Superstep() as step):
            return [step]
        case Sequential(parts=parts):
            return [one for part in parts for one in supersteps(part)]
    return []


def superstep_of(steps: tuple[Step, ...]) -> Superstep:
    (found,) = supersteps(lower_steps(steps).process)
    return found


BODY = ["y[i] = 2.0 * x[i]"]

QUIET = {
    "blocks already": source_of(BODY).replace(
        "range(t, n, parts)", "range(t * n // parts, (t + 1) * n // parts)"
    ),
    "another number of threads": source_of(BODY).replace("prange(parts)", "prange(parts + 1)"),
    "from one element further": source_of(BODY).replace("range(t,", "range(t + 1,"),
    "only read in turn": source_of(["y[t] += x[i]"]),
    "not threads": source_of(BODY).replace("in prange", "in range"),
    "rows of their own": source_of(
        ["for j in range(n):", "    y[i, j] = x[i]"], before="    y = np.zeros((n, n))\n"
    ),
}


@pytest.mark.parametrize("source", QUIET.values(), ids=QUIET.keys())
def test_quiet_where_threads_have_no_neighbours_of_others(source: str) -> None:
    read = read_program("f.py", source)
    assert read is None or not list(TRANSFORM.propose_program(read))


@pytest.mark.parametrize("parts", [3, 7])
def test_what_is_shown_is_what_a_person_writes(parts: int) -> None:
    source = source_of(BODY, parts=parts)
    (only,) = proposals(source)
    assert only.legality.applicability is Applicability.DISPLAY and not only.edits()
    chunk = "((n + parts - 1) // parts)"
    blocks = f"range(t * {chunk}, min((t + 1) * {chunk}, n))"
    written = source.replace("range(t, n, parts)", blocks)
    assert not proposals(written)
    read = read_program("f.py", written)
    assert read is not None
    function = read.function("work")
    assert function is not None
    again, told = superstep_of(function.body), superstep_of(only.after)
    values = bind_program(read, {"threads": 2}).values
    for one, other in ((again.writes, told.writes), (again.total, told.total)):
        assert evaluate(one, values) == evaluate(other, values)


def test_profiles_without_supersteps_say_so() -> None:
    source = source_of(BODY, n=100_000)
    told = check_source(
        "f.py", source, Options("t3e", {"threads": 4}, (), (), 1.0, everything=True)
    )
    assert not told.findings
    assert any("interleaved-writes" in remark.message for remark in told.remarks)
    found = check_source(
        "f.py", source, Options("powerchallenge", {"threads": 4}, (), (), 1.0, everything=True)
    )
    assert [finding.code for finding in found.findings] == ["ADV301"]
