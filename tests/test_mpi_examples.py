"""The MPI programs of the examples give what their kernels give, on several ranks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MPIEXEC = Path(sys.executable).with_name("mpiexec")

pytestmark = pytest.mark.skipif(not MPIEXEC.exists(), reason="MPI is not installed")


def run(ranks: int, *command: str) -> str:
    done = subprocess.run(
        [MPIEXEC, "-n", str(ranks), sys.executable, *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_programs_give_what_their_kernels_give(ranks: int) -> None:
    assert f"the same on {ranks}" in run(ranks, "tests/mpi_twins.py")


@pytest.mark.parametrize("name", sorted(p.name for p in (ROOT / "examples" / "mpi").glob("*.py")))
def test_programs_run_as_their_texts_say(name: str) -> None:
    assert f"mpiexec -n 2 python examples/mpi/{name}" in (ROOT / "examples/mpi" / name).read_text()
    assert run(2, f"examples/mpi/{name}")
