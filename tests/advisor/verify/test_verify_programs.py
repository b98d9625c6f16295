"""``advise verify`` on SPMD programs: real ranks run them, as written and rewritten."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.cli.app import main
from advisor.transform_registry import program_transforms
from advisor.verify.cases import Case, program_case
from advisor.verify.running import Effort, Measured, measure
from advisor.verify.verdict import Verdict
from advisor.verify.worker import alike
from costdb.machines import load_machine
from costdb.store.database import reading
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


def case(source: str, folder: Path) -> Case:
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
    with reading() as connection:
        assert connection is not None
        (kept,) = evidence_on(connection, "own")
    assert (kept.kernel, kept.code, kept.circumstances["ranks"]) == ("main", "ADV603", "2")
    assert kept.measured.mid == pytest.approx(gain)


def test_a_script_is_compared_by_what_it_gives_twicealike(tmp_path: Path) -> None:
    script = case(SCRIPT, tmp_path)
    assert script.rewrites == ()
    (alone,) = measure(script, QUICK)
    # the times that it prints and keeps differ from run to run, its total does not
    assert alone.equal and alone.seconds > 0


def test_a_rewrite_that_gives_something_else_is_told_and_so_is_one_that_fails(
    tmp_path: Path,
) -> None:
    loop = case(LOOP, tmp_path)
    (rewrite,) = loop.rewrites
    written = loop.variants[0].source
    sources = (
        written.replace("return a", "return a * (1 + 1e-5)"),
        written.replace("return a", "raise RuntimeError('broken')"),
    )
    others = (replace(rewrite, source=text) for text in sources)
    wrong = replace(loop, variants=(loop.variants[0], *others))
    measured = measure(wrong, QUICK)
    assert "broken" in measured[2].failure
    verdicts = [Verdict(wrong, *pair) for pair in zip(wrong.variants, measured, strict=True)]
    assert [one.result for one in verdicts[1:]] == ["DIFFERS", "did not run"]


@pytest.mark.parametrize(("before_s", "after_s", "right"), [(2.0, 1.0, True), (1.0, 2.0, False)])
def test_only_changes_that_matter_are_decisions(
    before_s: float, after_s: float, right: bool, tmp_path: Path
) -> None:
    loop = case(LOOP, tmp_path)
    (rewrite,) = loop.rewrites
    assert rewrite.change is not None
    assert rewrite.change.before.mid > rewrite.change.after.mid
    scale = rewrite.change.before.mid
    for before, after, told in (
        (before_s, after_s, right),
        (before_s * 100, after_s * 100, None),
        (1.05, 1.0, None),
    ):
        measured = Measured(after * scale, beside=Measured(before * scale))
        assert Verdict(loop, rewrite, measured).right is told


def test_results_are_the_same_to_the_last_bit_or_nearly() -> None:
    assert alike((1, [2.0]), (1, [2.0]), exact=True)
    assert not alike([1.0], [1.0 + 1e-9], exact=True)
    assert alike([1.0], [1.0 + 1e-9], exact=False)
    assert not alike([1], [2], exact=False)
    assert alike("[1.0,", "[1.0000001,", exact=False)
    assert not alike("one", "two", exact=False)
    assert not alike([1.0], [1.0, 2.0], exact=False)
