"""A calibration that is killed leaves nobody behind who goes on measuring."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

MPIEXEC = Path(sys.executable).with_name("mpiexec")

pytestmark = pytest.mark.skipif(
    not MPIEXEC.exists() or not Path("/proc/self/environ").exists(),
    reason="needs MPI, and a system that shows what processes there are",
)


def processes_of(folder: Path) -> set[int]:
    """Return the processes that were started with a data directory."""
    mark = f"ADVISE_DATA_DIR={folder}".encode()
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.add(int(entry.name))
            except OSError:
                continue
    return found


def wait_for(wanted: bool, folder: Path, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if bool(len(processes_of(folder)) > 1 if wanted else processes_of(folder)) == wanted:
            return True
        time.sleep(0.2)
    return False


@pytest.mark.parametrize("moment_s", [0.0, 0.7], ids="{} s after its start".format)
def test_ranks_end_when_the_command_is_killed(tmp_path: Path, moment_s: float) -> None:
    command = [sys.executable, "-m", "advisor", "calibrate", "--quick", "--only", "pickled"]
    with subprocess.Popen(
        command,
        env={**os.environ, "ADVISE_DATA_DIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert wait_for(True, tmp_path, 60), "nothing was started"
        # ranks that are still starting wait for one another inside a library
        time.sleep(moment_s)
        process.kill()
    assert wait_for(False, tmp_path, 60), processes_of(tmp_path)
