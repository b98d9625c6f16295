"""``advise verify`` on SPMD programs: real ranks run them, as written and rewritten."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.cli.app import main
from advisor.transform_registry import program_transforms
from advisor.verify.cases import ProgramCase, program_case
from advisor.verify.running import Effort, Measured, Turns, measure_program
from advisor.verify.verdict import ProgramVerdict
from advisor.verify.worker import alike
from costdb.machines import load_machine
from costdb.store.database import reading
from costdb.store.place import store_path
from tests.stored import evidence_on

pytestmark = pytest.mark.skipif(
    not Path(sys.executable).with_name("mpiexec").exists(), reason="MPI is not installed"
)

HEAD = "import numpy as np\nfrom mpi4py import MPI\n\n\n"
LOOP = """\
def main(comm):
    rank = comm.Get_rank()
    a = np.arange(8000.0).reshape(2000, 4) if rank == 0 else np.zeros((2000, 4))
    if rank == 0:
        for i in range(2000):
            comm.Send(a[i, :], dest=1)
    elif rank == 1:
        for i in range(2000):
            comm.Recv(a[i, :], source=0)
    return a
"""
SCRIPT = """\
import time

begun = time.perf_counter()
comm = MPI.COMM_WORLD
total = comm.allreduce(float(comm.Get_rank() + 1), op=MPI.SUM)
took = time.perf_counter() - begun
if __name__ == "__main__":
    print("total", total, "in", took)
"""
QUICK = Effort(launches=1, repetitions=2, seconds=0.2)


def case(source: str, folder: Path) -> ProgramCase:
    path = str(folder / "program.py")
    found = program_case(path, HEAD + source, {}, 2, load_machine("t3e"), program_transforms())
    assert found is not None
    return found


def test_a_program_and_its_rewrite_run_in_turn_and_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ADVISE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "loop.py").write_text(HEAD + LOOP)
    # under a name of its own: what runs here is no evidence on a machine of the studies
    own = {**load_machine("t3e").document, "name": "own"}
    (tmp_path / "own.json").write_text(json.dumps(own))
    code = main(
        ["verify", ".", "--all", "--machine", "own.json", "--repeat", "3"]
        + ["--output-format", "json"]
    )
    out, err = capsys.readouterr()
    assert code == 0, out + err
    document = json.loads(out)
    (program,) = document["programs"]
    assert program["path"] == "inner/loop.py" and program["ranks"] == 2
    (rewrite,) = program["rewrites"]
    assert rewrite["rule"] == "ADV603" and rewrite["equal"] is True
    gain = rewrite["measured_before_s"] / rewrite["measured_after_s"]
    with reading(store_path()) as connection:
        assert connection is not None
        (kept,) = evidence_on(connection, "own")
    assert (kept.kernel, kept.code, kept.circumstances["ranks"]) == ("main", "ADV603", "2")
    assert kept.measured.mid == pytest.approx(gain)


def test_a_script_is_compared_by_what_it_gives_twicealike(tmp_path: Path) -> None:
    script = case(SCRIPT, tmp_path)
    assert script.rewrites == ()
    (alone,) = measure_program(script, QUICK)
    # the times that it prints and keeps differ from run to run, its total does not
    assert alone.compared and alone.after.equal and alone.after.seconds > 0


def test_a_rewrite_that_gives_something_else_is_told_and_so_is_one_that_fails(
    tmp_path: Path,
) -> None:
    loop = case(LOOP, tmp_path)
    (rewrite,) = loop.rewrites
    sources = (
        loop.source.replace("return a", "return a * (1 + 1e-5)"),
        loop.source.replace("return a", "raise RuntimeError('broken')"),
    )
    wrong = replace(loop, rewrites=tuple(replace(rewrite, source=text) for text in sources))
    differs, fails = measure_program(wrong, QUICK)
    assert differs.compared and not differs.after.equal
    assert "broken" in fails.after.failure
    assert ProgramVerdict(wrong, wrong.rewrites[0], differs).result == "DIFFERS"
    assert ProgramVerdict(wrong, wrong.rewrites[1], fails).result == "did not run"


@pytest.mark.parametrize(("before_s", "after_s", "right"), [(2.0, 1.0, True), (1.0, 2.0, False)])
def test_only_changes_that_matter_are_decisions(
    before_s: float, after_s: float, right: bool, tmp_path: Path
) -> None:
    loop = case(LOOP, tmp_path)
    (rewrite,) = loop.rewrites
    assert rewrite.change is not None
    assert rewrite.change.before.mid > rewrite.change.after.mid
    scale = rewrite.change.before.mid
    turns = Turns(Measured(before_s * scale), Measured(after_s * scale), True)
    assert ProgramVerdict(loop, rewrite, turns).right is right
    slow = Turns(Measured(before_s * scale * 100), Measured(after_s * scale * 100), True)
    assert ProgramVerdict(loop, rewrite, slow).right is None
    alike = Turns(Measured(1.05 * scale), Measured(scale), True)
    assert ProgramVerdict(loop, rewrite, alike).right is None


def test_results_are_the_same_to_the_last_bit_or_nearly() -> None:
    assert alike((1, [2.0]), (1, [2.0]), exact=True)
    assert not alike([1.0], [1.0 + 1e-9], exact=True)
    assert alike([1.0], [1.0 + 1e-9], exact=False)
    assert not alike([1], [2], exact=False)
    assert alike("[1.0,", "[1.0000001,", exact=False)
    assert not alike("one", "two", exact=False)
    assert not alike([1.0], [1.0, 2.0], exact=False)
