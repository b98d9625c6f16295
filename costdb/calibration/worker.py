"""The process that measures: one launch of one section, its samples as lines of JSON.

Ranks where the section needs MPI. Rank 0 answers: first the setting, then samples.
"""

from __future__ import annotations

import gc
import hashlib
import os
import random
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from costdb.calibration.section import (
    Action,
    CalibrationError,
    Effort,
    Host,
    Need,
    Point,
    Section,
    World,
    cores_in_words,
    find_section,
    host_of,
)
from costdb.launch.processes import CannotRunError, JobFailedError, answers, begin, failed
from costdb.records import dataclass, replace

# What is measured with: libraries, versions, ranks, nodes, and where ranks may run.

NO_LIBRARY = "none"


def setting_of(section: Section, world: World) -> dict[str, str | int]:
    """Return what a launch of `section` measures with, as the store keeps it; collective.

    The library is MPI, or that of threads, or NumPy alone; pinning, which cores ranks may use.
    """
    nodes, places = 1, [cores_in_words()]
    if world.communicator is not None:
        library, release = mpi_library()
        nodes = len(set(world.communicator.allgather(os.uname().nodename)))
        places = sorted(set(world.communicator.allgather(cores_in_words())))
    else:
        library = "numba" if Need.NUMBA in section.needs else "numpy"
        release = version(library)
    return {
        "library": library,
        "library_version": release,
        "ranks": world.size,
        "nodes": nodes,
        "pinning": "; ".join(places),
    }


def mpi_library() -> tuple[str, str]:
    """Return name and version of the MPI library, such as ``("MPICH", "4.3.2")``."""
    from mpi4py import MPI

    name, release = MPI.get_vendor()
    return name, ".".join(map(str, release))


@cache
def code_version() -> str:
    """Return the version of the measuring code: the package's, and a digest of the sections."""
    try:
        release = version("kernel-advisor")
    except PackageNotFoundError:
        release = "0"
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return f"{release}+{digest.hexdigest()[:12]}"


def launched_ranks(environment: Mapping[str, str] = os.environ) -> int:
    """Return the size of the world that a launcher started this process in; 1 without one."""
    for name in ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE"):
        if environment.get(name, "").isdecimal():
            return int(environment[name])
    # In a batch script Slurm sets the number of tasks too; only a step has started them.
    if "SLURM_PROCID" in environment and environment.get("SLURM_STEP_ID", "").isdecimal():
        tasks = environment.get("SLURM_STEP_NUM_TASKS", "1")
        return int(tasks) if tasks.isdecimal() else 1
    return 1


# Timing the points of a section: shuffled, warmed up, the slowest rank counting.

Visit = tuple[int, tuple[float, ...]]
"""A visit: the index of the point, and the microseconds of each sample."""

_WARM_UPS = 2
_NANOSECONDS_PER_US = 1000

_Told = TypeVar("_Told")


@dataclass(frozen=True, slots=True)
class Pace:
    """How a launch divides its time.

    Attributes
    ----------
    rounds : int
        How often each point is visited where time allows, in another order each time: what
        drifts, what others do for seconds, and what one point leaves behind for the next, then
        falls on all alike.
    slow_rounds : int
        How often at least, and how often a point whose visit takes more than its even share.
    samples : int
        Of a point in a launch where time allows, divided among its visits.
    least : int
        Samples of a visit, however slow the point is.
    """

    rounds: int
    slow_rounds: int
    samples: int
    least: int

    def visited(self, number: int, *, slow: bool) -> bool:
        """Return whether a point is visited in a round, from 0; all are in the first."""
        return not slow or number * self.slow_rounds % self.rounds < self.slow_rounds

    def left(self, number: int, *, slow: bool) -> int:
        """Return how often a point is visited after a round."""
        return sum(self.visited(one, slow=slow) for one in range(number + 1, self.rounds))

    def samples_of(self, *, slow: bool) -> int:
        """Return how many samples a visit has where time allows."""
        return max(self.least, self.samples // (self.slow_rounds if slow else self.rounds))

    def within(self, left_s: float, fast_s: float, slow_s: float) -> Pace:
        """Return the pace after the first round, with as many rounds as the time allows.

        Parameters
        ----------
        left_s : float
            What time is left.
        fast_s, slow_s : float
            What the first round took of points that are visited in all rounds, and of others.
        """
        rounds = self.rounds
        slow_s *= self.slow_rounds - 1
        while rounds > self.slow_rounds and (rounds - 1) * fast_s + slow_s > left_s:
            rounds -= 1
        return replace(self, rounds=rounds)


PACES = {Effort.QUICK: Pace(4, 2, 20, 2), Effort.FULL: Pace(8, 3, 32, 2)}


def measure(
    section: Section,
    points: Sequence[Point],
    world: World,
    pace: Pace,
    *,
    seconds: float,
    seed: int,
) -> Iterator[Visit]:
    """Time `points` until every one was visited as often as `pace` says, or time is up.

    Parameters
    ----------
    points : sequence of Point
        The same on every rank.
    seconds : float
        From now; what time remains is divided evenly over the visits that remain.
    seed : int
        Of the order; the same on every rank.
    """
    deadline = time.monotonic() + seconds
    source = random.Random(seed)
    # ranks begin at different times, but must come to the same visits
    even_s = _agreed(world, seconds / max(1, len(points) * pace.rounds))
    taken_s: dict[int, float] = {}
    slow: set[int] = set()
    number = 0
    with _no_collections():
        while number < pace.rounds:
            every = source.sample(range(len(points)), len(points))
            order = [index for index in every if pace.visited(number, slow=index in slow)]
            left = len(order) + sum(pace.left(number, slow=index in slow) for index in every)
            for done, index in enumerate(order):
                begun = time.monotonic()
                share = _agreed(world, (deadline - begun) / (left - done))
                if share <= 0:
                    return
                samples = range(pace.least, pace.samples_of(slow=index in slow) + 1)
                action = section.action(points[index], world)
                try:
                    taken = _visit(action, world, samples, share)
                finally:
                    action.close()
                if number == 0:
                    taken_s[index] = _agreed(world, time.monotonic() - begun)
                yield index, taken
            if number == 0:
                slow = {index for index, passed_s in taken_s.items() if passed_s > even_s}
                slow_s = sum(taken_s[index] for index in slow)
                left_s = _agreed(world, deadline - time.monotonic())
                pace = pace.within(left_s, sum(taken_s.values()) - slow_s, slow_s)
            number += 1


def _visit(action: Action, world: World, samples: range, share_s: float) -> tuple[float, ...]:
    # The last warm-up tells how many samples the time allows; all ranks find the same number.
    passed_s = 0.0
    for _ in range(_WARM_UPS):
        begin = time.perf_counter()
        _once(action, world)
        passed_s = max(_everyones(world, time.perf_counter() - begin))
        if passed_s > share_s:
            break
    fitting = int(share_s / max(passed_s, 1e-9)) - _WARM_UPS
    count = min(max(fitting, samples[0]), samples[-1])
    taken = [_once(action, world) for _ in range(count)]
    return tuple(max(samples) for samples in zip(*_everyones(world, taken), strict=True))


def _once(action: Action, world: World) -> float:
    run = action.run
    clock = time.process_time_ns if action.alone else time.perf_counter_ns
    action.before()
    if world.communicator is not None:
        world.communicator.Barrier()
    begin = clock()
    run()
    spent = clock() - begin
    return spent / _NANOSECONDS_PER_US / action.repetitions


def _everyones(world: World, mine: _Told) -> list[_Told]:
    return [mine] if world.communicator is None else world.communicator.allgather(mine)


def _agreed(world: World, share: float) -> float:
    return share if world.communicator is None else world.communicator.bcast(share)


@contextmanager
def _no_collections() -> Iterator[None]:
    # The collector would stop one sample in some hundreds for as long as many samples take.
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


_BATCH_S = 1.0


@dataclass(frozen=True, slots=True)
class Job:
    """One launch: which section, how thoroughly, how long, in which order, where."""

    section: str
    effort: Effort
    seconds: float
    seed: int
    host: Host


Write = Callable[[object], object]
"""Takes a message of rank 0: the setting, or visits."""


def work(job: Job, write: Write) -> None:
    """Measure one launch, and say so a second's worth at a time: writing would disturb it."""
    begun = time.monotonic()
    section = find_section(job.section)
    world = world_of(section, job.host)
    points = section.points(job.effort, processors(section, world), job.host)
    setting = setting_of(section, world)
    if world.rank == 0:
        write({"setting": setting})
    visits: list[Visit] = []
    due = time.monotonic() + _BATCH_S
    left_s = job.seconds - (time.monotonic() - begun)
    for visit in measure(section, points, world, PACES[job.effort], seconds=left_s, seed=job.seed):
        visits.append(visit)
        if world.rank == 0 and time.monotonic() >= due:
            write({"visits": visits.copy()})
            visits.clear()
            due = time.monotonic() + _BATCH_S
    if world.rank == 0:
        write({"visits": visits})


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
    """Run the job in the file that the only argument names."""
    stated, write = begin(arguments)
    job = Job(**{**stated, "effort": Effort(stated["effort"]), "host": host_of(stated["host"])})
    try:
        work(job, write)
    except BaseException as error:
        failed(error)
        os._exit(1)  # the launcher then ends the other ranks, which wait for this one
    return 0


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
    try:
        yield from answers("costdb.calibration.worker", asdict(job), job.seconds + _GRACE_S, ranks)
    except CannotRunError as error:
        raise CalibrationError(f"{job.section}: {error}") from error
    except JobFailedError as error:
        said = f"{job.section}: the measuring process ended early: {error}"
        raise CalibrationError(said) from error


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
        messages: list[Any] = []
        try:
            work(job, messages.append)
        except Exception:
            # The other ranks wait for this one inside the library: only ending all helps.
            traceback.print_exc()
            self._world.Abort(1)
        return messages
