"""A calibration from beginning to end: launches of sections, into the store, resumable."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import timedelta
from typing import Any, Protocol

from costdb.calibration.hardware import Bystanders, Host
from costdb.calibration.profile import OTHERS_BUSY, Made, make_profile, record
from costdb.calibration.section import (
    SECTIONS,
    CalibrationError,
    Effort,
    Need,
    Section,
    Skipped,
    sections,
)
from costdb.calibration.worker import PACES, Job, code_version, launch, launched_ranks
from costdb.machines import built_in_names, is_machine_name
from costdb.records import dataclass, field, replace
from costdb.store.database import writing
from costdb.store.place import store_path
from costdb.store.records import (
    Launch,
    Run,
    alone,
    begin_launch,
    begin_run,
    finish_launch,
    finish_run,
    launches_of,
    unfinished_run,
)

# What all sections together may take, starting processes included; fitting comes on top.
TOTAL_SECONDS = {Effort.QUICK: 23.0, Effort.FULL: 140.0}
LAUNCHES = {Effort.QUICK: 1, Effort.FULL: 3}
# Array operations have more points than the others.
SHARES = {Effort.QUICK: {"arrays": 3, "loops": 2}, Effort.FULL: {"arrays": 4}}
RESUMED_WITHIN = timedelta(hours=12)

_MOST_RANKS = 8


class Watcher(Protocol):
    """Who is told how far a calibration is."""

    def resumed(self, run: str) -> None:
        """An unfinished run is taken up again."""
        ...

    def measuring(self, title: str, launch: int, launches: int) -> None:
        """A launch of a section begins."""
        ...

    def progress(self, share: float) -> None:
        """So much of the launch is done, from 0 to 1."""
        ...

    def failed(self, reason: str) -> None:
        """A launch ended early; what it had measured is kept."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """What to calibrate.

    Attributes
    ----------
    machine : str
        Name of the profile.
    effort : Effort
    only : tuple of str
        Names of sections; all where empty.
    ranks : int
        How many to start; 0 means one for each core, at least 2. Under a
        launcher its ranks take part.
    fresh : bool
        Begin anew even where an unfinished run could be resumed.
    seconds : float or None
        For all that are asked for together; None for what the effort allows.
    """

    machine: str = "here"
    effort: Effort = Effort.FULL
    only: tuple[str, ...] = ()
    ranks: int = 0
    fresh: bool = False
    seconds: float | None = None


@dataclass(slots=True)
class _Budget:
    """Time by section and its share: what one leaves over goes to those that follow."""

    seconds: float
    shares: int
    begun: float = field(default_factory=time.monotonic)

    def next_section(self, share: int) -> float:
        left = self.seconds - (time.monotonic() - self.begun)
        seconds = left * share / max(self.shares, share)
        self.shares -= share
        return seconds


Start = Callable[[Job, int], Iterator[dict[str, Any]]]


def _check_machine(name: str) -> None:
    """Refuse a name that no profile can be stored under, before ten minutes are spent on it."""
    if not is_machine_name(name):
        raise CalibrationError(
            f'"{name}" is not a name for a machine (lower case letters, digits, ".", "_", "-")'
        )
    if name in built_in_names():
        raise CalibrationError(f'"{name}" is a built-in machine: choose another name')


def calibrate(request: Request, watcher: Watcher, host: Host, start: Start = launch) -> Made:
    """Measure, keep every sample, and make the profile of all that the store has.

    Parameters
    ----------
    request : Request
    watcher : Watcher
    host : Host
        Where this runs.
    start : callable
        Begins a launch of a job with so many ranks, 0 for none, and yields its messages.

    Raises
    ------
    CalibrationError
        The machine cannot be called so, nothing can be measured, or what was measured makes no
        profile.
    StoreError
        The store cannot be used, or another calibration uses it.
    """
    _check_machine(request.machine)
    found = list(sections(request.only))
    wanted = [one for one in found if not isinstance(one, Skipped)]
    skipped = [one for one in found if isinstance(one, Skipped)]
    if not wanted:
        reasons = "; ".join(f"{one.name}: {one.reason}" for one in skipped)
        raise CalibrationError(f"nothing can be measured here: {reasons}")
    with ExitStack() as held:
        held.enter_context(alone())
        connection = held.enter_context(writing(store_path()))
        run = _run(connection, request, wanted, watcher, host)
        measured = _measure(connection, run, request, wanted, watcher, host, start)
        if measured:
            finish_run(connection, run)
        return make_profile(connection, run, skipped, host)


def ranks_of(request: Request, host: Host) -> int:
    """Return how many ranks take part where a section needs MPI."""
    launched = launched_ranks()
    if launched > 1:
        return launched
    return request.ranks or max(min(host.cores, _MOST_RANKS), 2)


def _run(
    connection: sqlite3.Connection,
    request: Request,
    wanted: Sequence[Section],
    watcher: Watcher,
    host: Host,
) -> Run:
    names = tuple(section.name for section in wanted)
    asked = Run("", request.machine, request.effort, ranks_of(request, host), code_version(), names)
    if not request.fresh:
        begun = unfinished_run(connection, asked, RESUMED_WITHIN)
        if begun is not None:
            watcher.resumed(begun.id)
            return begun
    return begin_run(
        connection, asked.machine, asked.effort, asked.ranks, asked.code_version, names
    )


def _measure(
    connection: sqlite3.Connection,
    run: Run,
    request: Request,
    wanted: Sequence[Section],
    watcher: Watcher,
    host: Host,
    start: Start,
) -> bool:
    launches = LAUNCHES[request.effort]
    asked = sum(_share_of(section.name, request.effort) for section in wanted)
    every = sum(_share_of(name, request.effort) for name in SECTIONS)
    each = TOTAL_SECONDS[request.effort] / max(every, asked)
    budget = _Budget(request.seconds or each * asked, asked)
    complete = True
    for section in wanted:
        share = budget.next_section(_share_of(section.name, request.effort))
        done = sum(one.finished for one in launches_of(connection, run.id, section.name))
        ends = time.monotonic() + share * (launches - done) / launches
        for number in range(done, launches):
            watcher.measuring(section.title, number + 1, launches)
            seconds = (ends - time.monotonic()) / (launches - number)
            job = Job(section.name, request.effort, seconds, random.randrange(2**32), host)
            try:
                _launch(connection, run, section, job, watcher, start)
            except CalibrationError as error:
                watcher.failed(str(error))
                complete = False
                break
    return complete


def _share_of(section: str, effort: Effort) -> int:
    return SHARES[effort].get(section, 1)


def _launch(
    connection: sqlite3.Connection,
    run: Run,
    section: Section,
    job: Job,
    watcher: Watcher,
    start: Start,
) -> None:
    with_mpi = Need.MPI in section.needs
    points = section.points(job.effort, run.ranks if with_mpi else job.host.cores, job.host)
    expected = PACES[job.effort].rounds * len(points)
    began = time.monotonic()
    bystanders = Bystanders()
    place: Launch | None = None
    done = 0
    for message in start(job, run.ranks if with_mpi else 0):
        if "setting" in message:
            number = begin_launch(connection, run, section.name, message["setting"])
            place = Launch(run.id, section.name, number, message["setting"], finished=False)
        elif "visits" in message and place is not None:
            visits = [(points[index], taken) for index, taken in message["visits"]]
            record(connection, run, place, visits)
            done += len(visits)
            elapsed = (time.monotonic() - began) / max(job.seconds, 1e-9)
            watcher.progress(min(max(done / max(expected, 1), elapsed), 1.0))
    if place is None or (expected and not done):
        raise CalibrationError(f"{section.name}: its time was over before anything was measured")
    busy = bystanders.busy_cores()
    known = {} if busy is None else {OTHERS_BUSY: round(busy, 2)}
    finish_launch(connection, replace(place, setting={**place.setting, **known}))
