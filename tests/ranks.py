"""Programs on real ranks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MPIEXEC = Path(sys.executable).with_name("mpiexec")
needs_mpi = pytest.mark.skipif(not MPIEXEC.exists(), reason="MPI is not installed")


def on_ranks(
    ranks: int, *command: str, folder: Path = ROOT, environment: Mapping[str, str] | None = None
) -> str:
    """Run Python on some ranks, and return what they print."""
    done = subprocess.run(
        [str(MPIEXEC), "-n", str(ranks), sys.executable, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
