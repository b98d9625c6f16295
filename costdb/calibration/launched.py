"""Calibration under a site's launcher: all ranks are there already, and rank 0 leads.

There is no fresh process for each launch then; the samples of a launch are kept when it ends.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from costdb.calibration.launch import launch
from costdb.calibration.registry import CalibrationError
from costdb.calibration.worker import Job, work
from costdb.store.records import Beside

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
            self._work(job, _Kept())

    def start(self, job: Job, ranks: int) -> Iterator[dict[str, Any]]:
        """Measure a launch with all ranks, or by a process of its own where `ranks` is 0."""
        if not ranks:
            yield from launch(job, 0)
            return
        self._tell(job)
        kept = _Kept()
        self._work(job, kept)
        yield from kept.messages

    def dismiss(self) -> None:
        """Let the other ranks end."""
        self._tell(None)

    def _tell(self, job: Job | None) -> None:
        for rank in range(1, self._world.Get_size()):
            self._world.send(job, dest=rank, tag=_JOB_TAG)

    def _work(self, job: Job, kept: _Kept) -> None:
        try:
            work(job, kept)
        except Exception:
            # The other ranks wait for this one inside the library: only ending all helps.
            traceback.print_exc()
            self._world.Abort(1)


class _Kept:
    """The messages of a launch, in memory."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def visit(self, index: int, taken: tuple[float, ...], beside: Beside) -> None:
        self.messages.append({"visits": [(index, taken, asdict(beside))]})

    def write(self, **message: object) -> None:
        self.messages.append(message)

    def end(self) -> None:
        """Nothing is held back."""
