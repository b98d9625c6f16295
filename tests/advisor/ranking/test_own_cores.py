"""More ranks than cores is nothing that a calibration has seen, and is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.cli.app import main
from advisor.ranking.rank import rank
from advisor.ranking.sizes import ranks_of
from advisor.transform_registry import transforms
from costdb.expr import evaluate
from costdb.machines.machine import machine_of
from tests.advisor.ranking.priced_kernels import BOX, PROFILE, kernel_of, sizes_of

MESHES = """\
# advise: kernel N=1000 P=6
# advise: u: f8[N, N] over (block(x), block(y)) on mesh(x=P, y=3)
# advise: v: f8[N] over (block(x)) on mesh(x=P)
# advise: w: f8[N]
def shift(u, v, w, N: int):
    v[1:] = v[:-1]
"""


def profile_with(cores: int | None) -> str:
    document = json.loads(PROFILE.read_text())
    if cores is not None:
        sources = document.setdefault("sources", {})
        sources["system"] = "made up"
        document.setdefault("hardware", {})["cores"] = {
            "value": cores, "unit": "core", "provenance": "published", "source": "system",
        }  # fmt: skip
    return json.dumps(document)


def test_ranks_are_those_of_the_largest_mesh() -> None:
    ranks = ranks_of(kernel_of(MESHES))
    assert evaluate(ranks, {"P": 6}) == 18
    assert evaluate(ranks, {"P": 1}) == 3


@pytest.mark.parametrize(("cores", "told"), [(None, False), (3, True), (4, False), (5, False)])
def test_a_finding_tells_of_more_ranks_than_cores(cores: int | None, told: bool) -> None:
    kernel = kernel_of(BOX)
    machine = machine_of(json.loads(profile_with(cores)), "test")
    found = rank("program.py", kernel, machine, sizes_of(kernel), transforms())
    assert found.findings
    for finding in found.findings:
        cautions = [line for line in finding.evidence.remarks if "a core of its own" in line]
        assert len(cautions) == told
        assert all("each of 4 ranks" in line and "on 3," in line for line in cautions)


@pytest.mark.parametrize(("ranks", "told"), [(2, False), (3, True)])
@pytest.mark.parametrize("program", [True, False])
def test_a_prediction_tells_of_more_ranks_than_cores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], program: bool, ranks: int, told: bool
) -> None:
    (tmp_path / "machine.json").write_text(profile_with(2))
    (tmp_path / "kernel.py").write_text(MESHES.replace("y=3", "y=1"))
    (tmp_path / "program.py").write_text(
        "from mpi4py import MPI\n"
        "import numpy as np\n"
        "def total():\n"
        "    comm = MPI.COMM_WORLD\n"
        "    x = np.zeros(1000)\n"
        "    comm.Bcast(x)\n"
    )
    file = tmp_path / ("program.py" if program else "kernel.py")
    assert main(["predict", str(file), "-m", str(tmp_path / "machine.json"), f"-DP={ranks}"]) == 0
    said = capsys.readouterr().out
    assert (f"as if each of {ranks} ranks had a core of its own" in said) == told
