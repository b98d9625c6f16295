"""The process that measures: one launch of one section, its samples as lines of JSON.

``python -m costdb.calibration.worker JOB``, with a job as JSON, under ``mpiexec -n K`` where the
section needs MPI. Rank 0 writes: first the setting, then samples, last that it is done. It does not
outlive the process that reads it by more than a second or so.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from costdb.calibration.host.hardware import Host, host_of
from costdb.calibration.library import setting_of
from costdb.calibration.measure import PACES, measure
from costdb.calibration.registry import find_section
from costdb.calibration.section import Effort, Need, Section, World
from costdb.store.records import Beside

# Ends a process when another one is gone.

_LOOK_S = 1.0
_MOST_FILES = 4096


def follow(owner: int) -> None:
    """Have this process killed within a second or so after another one has ended.

    A launcher that loses its reader waits for its ranks, and they for one another, for ever. A
    thread could not end them: a library that waits for other ranks while it starts up keeps the
    interpreter to itself. So a process does that has nothing else to do; it ends with this one.
    Systems that cannot fork do without.

    Parameters
    ----------
    owner : int
        Identifies a process of this machine.
    """
    if not hasattr(os, "fork"):
        return
    followed = os.getpid()
    if os.fork() != 0:
        return
    try:
        # whoever reads what this process writes waits until all that could write are gone
        os.closerange(0, _MOST_FILES)
        while os.getppid() == followed:
            if not _is_there(owner):
                os.kill(followed, signal.SIGKILL)
                break
            time.sleep(_LOOK_S)
    finally:
        os._exit(0)


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


_BATCH_S = 1.0
_RANK_VARIABLES = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK")

Visit = tuple[int, tuple[float, ...], dict[str, Any]]
"""A visit in a message: the index of the point, the samples, and what was beside them."""

OWNER = "ADVISE_CALIBRATION_OWNER"
"""The variable that names the process, on this machine, without which ranks end."""


@dataclass(frozen=True, slots=True)
class Job:
    """One launch: which section, how thoroughly, how long, in which order, where."""

    section: str
    effort: Effort
    seconds: float
    seed: int
    host: Host


class Output(Protocol):
    """Where rank 0 says what it measures."""

    def write(self, **message: object) -> None:
        """Say something at once."""
        ...

    def visit(self, index: int, taken: tuple[float, ...], beside: Beside) -> None:
        """Say the samples of a visit, and what was beside them, now or later."""
        ...

    def end(self) -> None:
        """Say what is left, and that it is done."""
        ...


class _Lines:
    """Lines to the reader, a second's worth at a time: writing would disturb the measurement."""

    def __init__(self, descriptor: int) -> None:
        self._stream = os.fdopen(descriptor, "w", encoding="utf-8")
        self._visits: list[Visit] = []
        self._due = time.monotonic() + _BATCH_S

    def visit(self, index: int, taken: tuple[float, ...], beside: Beside) -> None:
        self._visits.append((index, taken, asdict(beside)))
        if time.monotonic() >= self._due:
            self.write(visits=self._visits)
            self._visits = []
            self._due = time.monotonic() + _BATCH_S

    def write(self, **message: object) -> None:
        self._stream.write(json.dumps(message) + "\n")
        self._stream.flush()

    def end(self) -> None:
        self.write(visits=self._visits)
        self.write(done=True)


def work(job: Job, output: Output) -> None:
    """Measure one launch."""
    begun = time.monotonic()
    section = find_section(job.section)
    world = world_of(section, job.host)
    points = section.points(job.effort, processors(section, world), job.host)
    setting = setting_of(section, world)
    if world.rank == 0:
        output.write(setting=asdict(setting))
    measure(
        section,
        points,
        world,
        PACES[job.effort],
        seconds=job.seconds - (time.monotonic() - begun),
        seed=job.seed,
        emit=output.visit,
    )
    if world.rank == 0:
        output.end()


def world_of(section: Section, host: Host) -> World:
    """Return all ranks for a section that needs MPI, else this process alone."""
    if Need.MPI not in section.needs:
        return World(host)
    from mpi4py import MPI

    everyone = MPI.COMM_WORLD
    return World(host, everyone.Get_rank(), everyone.Get_size(), everyone)


def processors(section: Section, world: World) -> int:
    """Return what the section's points are made for: ranks, or cores."""
    return world.size if Need.MPI in section.needs else world.host.cores


def main(arguments: list[str]) -> int:
    """Run the job that the only argument describes."""
    stated = json.loads(arguments[0])
    job = Job(**{**stated, "effort": Effort(stated["effort"]), "host": host_of(stated["host"])})
    # What a section or a library prints must not get between the lines of the protocol.
    descriptor = os.dup(1)
    os.dup2(2, 1)
    owner = os.environ.get(OWNER)
    if owner is not None:
        follow(int(owner))
    threading.Thread(target=_end_with_reader, daemon=True).start()
    try:
        work(job, _Lines(descriptor))
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)  # the launcher then ends the other ranks, which wait for this one
    return 0


def _end_with_reader() -> None:
    # A rank that leaves before the others do makes the launcher wait: they all follow the owner.
    if not any(name in os.environ for name in _RANK_VARIABLES):
        while os.read(0, 4096):
            pass
        os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
