"""Starting the processes that measure, and reading what they say."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from threading import Timer
from typing import IO, Any

from costdb.calibration.registry import CalibrationError
from costdb.calibration.worker import OWNER, Job
from costdb.launch.space import command

_GRACE_S = 20.0
_LAUNCHERS_VARIABLES = ("PMI_", "PMIX_", "OMPI_", "HYDI_", "MPIR_")


def launch(job: Job, ranks: int) -> Iterator[dict[str, Any]]:
    """Start a fresh launch and yield its messages as they come.

    Parameters
    ----------
    ranks : int
        0 for a process without MPI.

    Raises
    ------
    CalibrationError
        It could not be started, or ended before it was done; what came until then was yielded.
    """
    done = False
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as complaints:
        with _running(_command(job, ranks), job.seconds + _GRACE_S, complaints) as lines:
            for line in lines:
                message = json.loads(line)
                done = done or "done" in message
                yield message
        if not done:
            complaints.seek(0)
            said = [line.strip() for line in complaints if line.strip()]
            # A launcher adds a banner to the last line of the traceback.
            reason = next((one for one in reversed(said) if "Error" in one), " ".join(said[-1:]))
            raise CalibrationError(f"{job.section}: the measuring process ended early: {reason}")


def mpiexec() -> str | None:
    """Return the launcher that was installed beside this Python, else the one on the path."""
    beside = Path(sys.executable).parent / "mpiexec"
    return str(beside) if beside.is_file() else shutil.which("mpiexec")


def _command(job: Job, ranks: int) -> list[str]:
    worker = command("costdb.calibration.worker", json.dumps(asdict(job)))
    if not ranks:
        return worker
    launcher = mpiexec()
    if launcher is None:
        raise CalibrationError(f"{job.section}: there is no mpiexec to start {ranks} ranks with")
    return [launcher, "-n", str(ranks), *worker]


@contextmanager
def _running(started: list[str], limit_s: float, complaints: IO[str]) -> Iterator[IO[str]]:
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_LAUNCHERS_VARIABLES)
    }
    environment[OWNER] = str(os.getpid())
    # A session of its own: an interrupt reaches this process alone, which then ends them all.
    process = subprocess.Popen(
        started,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=complaints,
        text=True,
        encoding="utf-8",
        env=environment,
        start_new_session=True,
    )
    timer = Timer(limit_s, _end, (process,))
    timer.daemon = True
    timer.start()
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield process.stdout
        process.wait()
    finally:
        timer.cancel()
        _end(process)
        process.wait()
        process.stdout.close()
        with suppress(OSError):
            process.stdin.close()


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
