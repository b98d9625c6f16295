"""Rules about loops over elements, in functions of MPI programs that nobody marked or ran."""

from pathlib import Path

import pytest

from advisor.engine import Options, check_source
from advisor.finding import Applicability, Fix
from advisor.source import apply_edits
from tests.transforms.spmd_running import HEADER, run_side_by_side

STEP = """\
def step(u, r):
    un = u.copy()
    for i in range(1, u.shape[0] - 1):
        un[i] = u[i] + r * (u[i - 1] - 2 * u[i] + u[i + 1])
    return un


"""
DOT = """\
def dot(comm, a, b):
    s = 0.0
    for k in range(len(a)):
        s += a[k] * b[k]
    return comm.allreduce(s, op=MPI.SUM)


"""
MAIN = """\
def main(comm):
    rank, size = comm.Get_rank(), comm.Get_size()
    u = np.sin(np.arange(4000 // size + (rank < 4000 % size) + 2) * 0.1 * (rank + 1))
    for it in range(3):
        u[0] = comm.sendrecv(u[-2], dest=(rank + 1) % size, source=(rank - 1) % size)
        u = step(u, 0.4)
    return u, dot(comm, u, u)
"""
SOURCE = f"{HEADER}{STEP}{DOT}{MAIN}\n\nif __name__ == '__main__':\n    main(MPI.COMM_WORLD)\n"


def told(source: str) -> dict[str, Fix | None]:
    options = Options("node2026", {"P": 2}, ("ADV401",), (), None)
    result = check_source("program.py", source, options)
    return {finding.kernel: finding.fix for finding in result.findings}


def test_loops_over_elements_are_edited_with_the_shapes_that_calls_show(tmp_path: Path) -> None:
    options = Options("node2026", {"P": 2}, ("ADV401",), (), None)
    findings = check_source("program.py", SOURCE, options).findings
    assert {finding.kernel for finding in findings} == {"step", "dot"}
    after, found = SOURCE, findings
    while found:
        assert found[0].fix is not None and str(found[0].fix.applicability) == "unsafe"
        assert "in the file's calls" in found[0].fix.legality
        after = apply_edits(after, dict.fromkeys(found[0].fix.edits))
        found = check_source("program.py", after, options).findings
    assert after.count("for ") == SOURCE.count("for ") - 2
    programs = {"loops": (SOURCE, after, 1e-12)}
    for ranks in (1, 2, 3):
        assert run_side_by_side(tmp_path, programs, ranks) == {"loops": "same"}


@pytest.mark.parametrize(
    "change",
    [
        # what the interpreter runs is not the text
        ("def step", "@njit(parallel=False)\ndef step"),
        # a store that a later iteration reads
        ("un = u.copy()", "un = u"),
    ],
)
def test_what_is_left_alone(change: tuple[str, str]) -> None:
    source = SOURCE.replace(*change)
    assert source != SOURCE
    fix = told(source).get("step")
    assert fix is None or fix.applicability is Applicability.DISPLAY


def test_what_nobody_calls_is_edited_by_what_its_text_needs() -> None:
    uncalled = SOURCE.replace("u = step(u, 0.4)", "u = u + 1")
    fix = told(uncalled)["step"]
    assert fix is not None and fix.applicability is Applicability.UNSAFE
    assert "u, un are each a plain array (1-d)" in fix.legality
    # lists have a length, and subscripts, too
    fix = told(uncalled.replace("u.shape[0]", "len(u)"))["step"]
    assert fix is not None and fix.applicability is Applicability.DISPLAY


def test_functions_that_nobody_asked_about_add_no_gaps() -> None:
    options = Options("node2026", {"P": 2}, (), (), None)
    coverage = check_source("program.py", SOURCE, options).coverage
    assert not any("allreduce" in one.reason for one in coverage.not_understood)
