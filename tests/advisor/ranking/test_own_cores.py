"""More ranks than cores is nothing that a calibration has seen, and is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.cli.app import main
from tests.advisor.ranking.priced_kernels import PROFILE

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
