"""Starting the processes that measure, and reading what they say."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from threading import Timer
from typing import IO, Any

from costdb.calibration.section import CalibrationError
from costdb.calibration.worker import OWNER, Job, work
from costdb.launch.processes import environment, mpiexec
from costdb.launch.space import command

_GRACE_S = 20.0


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
    # A session of its own: an interrupt reaches this process alone, which then ends them all.
    process = subprocess.Popen(
        started,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=complaints,
        text=True,
        encoding="utf-8",
        env=environment(**{OWNER: str(os.getpid())}),
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


# Calibration under a site's launcher: all ranks are there already, and rank 0 leads.
#
# There is no fresh process for each launch then; the samples of a launch are kept when it ends.

# Who waits must not keep a core busy: the rank that measures alone may need it.
_POLL_S = 0.01
_JOB_TAG = 1


class Team:
    """All ranks that the launcher started.

    Raises
    ------
    CalibrationError
        mpi4py is missing, without which ranks know nothing of each other.
    """

    def __init__(self) -> None:
        try:
            from mpi4py import MPI
        except ImportError as error:
            raise CalibrationError("started by a launcher, but mpi4py is missing") from error
        self._world = MPI.COMM_WORLD

    @property
    def leads(self) -> bool:
        """Whether this rank asks the others, and alone writes."""
        return self._world.Get_rank() == 0

    def assist(self) -> None:
        """Take part in what rank 0 asks for, until it asks for no more."""
        while True:
            while not self._world.iprobe(source=0, tag=_JOB_TAG):
                time.sleep(_POLL_S)
            job: Job | None = self._world.recv(source=0, tag=_JOB_TAG)
            if job is None:
                return
            self._work(job)

    def start(self, job: Job, ranks: int) -> Iterator[dict[str, Any]]:
        """Measure a launch with all ranks, or by a process of its own where `ranks` is 0."""
        if not ranks:
            yield from launch(job, 0)
            return
        self._tell(job)
        yield from self._work(job)

    def dismiss(self) -> None:
        """Let the other ranks end."""
        self._tell(None)

    def _tell(self, job: Job | None) -> None:
        for rank in range(1, self._world.Get_size()):
            self._world.send(job, dest=rank, tag=_JOB_TAG)

    def _work(self, job: Job) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = []
        try:
            work(job, messages.append)
        except Exception:
            # The other ranks wait for this one inside the library: only ending all helps.
            traceback.print_exc()
            self._world.Abort(1)
        return messages
