"""A calibration from beginning to end: launches of sections, into the store, resumable."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import timedelta
from typing import Any, Protocol

from costdb.calibration.section import (
    SECTIONS,
    SYSTEM_CITATION,
    SYSTEM_SOURCE,
    Bystanders,
    CalibrationError,
    Effort,
    Feature,
    Fitted,
    Host,
    Need,
    Point,
    Section,
    Skipped,
    Timing,
    find_section,
    hardware_facts,
    sections,
)
from costdb.calibration.worker import NO_LIBRARY, PACES, Job, code_version, launch, launched_ranks
from costdb.machines import (
    LEFT_OUT,
    PROFILE_SCHEMA_VERSION,
    SOURCE,
    Json,
    built_in_names,
    is_machine_name,
)
from costdb.profile_check import check_profile, store_profile
from costdb.records import dataclass, field, replace
from costdb.store.database import writing
from costdb.store.place import store_path
from costdb.store.records import (
    Circumstances,
    Launch,
    Run,
    Sample,
    add_samples,
    alone,
    begin_launch,
    begin_run,
    finish_launch,
    finish_run,
    launches_of,
    newest_run_of,
    recorded,
    samples_of,
    unfinished_run,
)

# The profile of a machine, from the newest measurement of each section in the store.


# Samples of a launch on their way into the store, and back out as timings.

_HELD_OUT = "held_out"
_SECTION = "section"
_UNSTATED = "-"

_Key = tuple[str, tuple[tuple[str, Feature], ...], bool]
_Launches = dict[int, list[Sample]]


def record(
    connection: sqlite3.Connection,
    run: Run,
    launch: Launch,
    visits: Iterable[tuple[Point, Sequence[float]]],
) -> None:
    """Append visits to the records of their circumstances."""
    batches: dict[Circumstances, list[Sample]] = {}
    for point, taken in visits:
        stated = {**point.features, _HELD_OUT: int(point.held_out), _SECTION: launch.section}
        sample = Sample(launch.number, stated, tuple(taken))
        batches.setdefault(circumstances(run, launch.setting, point), []).append(sample)
    for place, samples in batches.items():
        add_samples(connection, place, samples)


def circumstances(run: Run, setting: Mapping[str, Any], point: Point) -> Circumstances:
    """Return the record that samples of a point belong to."""
    return Circumstances(
        machine=run.machine,
        library=setting["library"],
        library_version=setting["library_version"],
        dtype=str(point.features.get("dtype", _UNSTATED)),
        ranks=setting["ranks"],
        nodes=setting["nodes"],
        operation=point.operation,
        pinning=setting["pinning"],
        stride=str(point.features.get("stride", _UNSTATED)),
        date=run.id,
        code_version=run.code_version,
    )


def timings_of(connection: sqlite3.Connection, run: Run, section: str) -> tuple[Timing, ...]:
    """Return what a run has of a section, in a fixed order, unfinished launches included."""
    found: dict[_Key, _Launches] = {}
    for place in recorded(connection, machine=run.machine, date=run.id):
        for sample in samples_of(connection, place):
            stated = dict(sample.point)
            if stated.pop(_SECTION) != section:
                continue
            held_out = bool(stated.pop(_HELD_OUT))
            key = (place.operation, tuple(sorted(stated.items())), held_out)
            launches = found.setdefault(key, {})
            launches.setdefault(sample.launch, []).append(sample)
    return tuple(
        Timing(Point(operation, dict(features), held_out), _by_visit(launches))
        for (operation, features, held_out), launches in found.items()
    )


def _by_visit(launches: _Launches) -> tuple[tuple[tuple[float, ...], ...], ...]:
    """Return all samples of a point."""
    ordered = [visits for _, visits in sorted(launches.items())]
    return tuple(tuple(visit.microseconds for visit in visits) for visits in ordered)


OTHERS_BUSY = "others_busy_cores"
"""In the setting of a launch: how many cores other processes kept busy meanwhile."""

_NOTICEABLE_CORES = 0.15

_STEADY = (
    "Times are those of a process that has run a while: first touches of memory and first "
    "messages were dropped as warm-ups. A fresh process is slower."
)


@dataclass(frozen=True, slots=True)
class FittedSection:
    """A section, whether it needs MPI, when it was measured, and what came of it."""

    name: str
    with_mpi: bool
    run: Run
    launches: tuple[Launch, ...]
    timings: tuple[Timing, ...]
    fitted: Fitted


@dataclass(frozen=True, slots=True)
class Made:
    """A profile as it was stored.

    Attributes
    ----------
    document : mapping
    sections : tuple of FittedSection
    skipped : tuple of Skipped
        What could not be measured or fitted, and why.
    """

    document: Mapping[str, Json]
    sections: tuple[FittedSection, ...]
    skipped: tuple[Skipped, ...]


def make_profile(
    connection: sqlite3.Connection, newest: Run, skipped: Iterable[Skipped], host: Host
) -> Made:
    """Fit all sections that the store has of the machine of `newest`, and keep the profile.

    Raises
    ------
    CalibrationError
        Nothing was measured, or the profile contradicts its schema, physics, or itself.
    """
    names = tuple(dict.fromkeys((*SECTIONS, *newest.sections)))
    sections, failed = fit_sections(connection, newest, names, host)
    left_out = (*skipped, *failed)
    if not sections:
        reasons = "; ".join(f"{one.name}: {one.reason}" for one in left_out)
        raise CalibrationError(
            f"no section was measured to its end{': ' if reasons else ''}{reasons}"
        )
    document = document_of(newest, sections, left_out, host)
    problems = check_profile(document, f"calibration of {newest.machine}")
    if problems:
        raise CalibrationError(problems[0])
    store_profile(document, f"calibration {newest.id}", replace=True)
    return Made(document, sections, left_out)


def fit_sections(
    connection: sqlite3.Connection, newest: Run, names: Iterable[str], host: Host
) -> tuple[tuple[FittedSection, ...], tuple[Skipped, ...]]:
    """Fit what was measured; a section whose measurements admit no fit is reported instead."""
    fitted, failed = [], []
    for name in names:
        run = newest_run_of(connection, newest.machine, name)
        if run is None:
            continue
        timings = timings_of(connection, run, name)
        launches = launches_of(connection, run.id, name)
        section = find_section(name)
        if not timings:
            failed.append(Skipped(name, "nothing was measured in its time"))
            continue
        try:
            found = section.fit(timings, host)
        except Exception as error:
            # Whatever is wrong with one section, the others' measurements are worth keeping.
            reason = str(error) if isinstance(error, ValueError) else repr(error)
            failed.append(Skipped(name, f"measured, but not fitted: {reason}"))
        else:
            with_mpi = Need.MPI in section.needs
            fitted.append(FittedSection(name, with_mpi, run, launches, timings, found))
    return tuple(fitted), tuple(failed)


def document_of(
    newest: Run,
    sections: Sequence[FittedSection],
    skipped: Sequence[Skipped],
    host: Host,
) -> dict[str, Json]:
    """Return the profile, not yet checked."""
    sources: dict[str, Json] = {SYSTEM_SOURCE: SYSTEM_CITATION}
    parts: dict[str, Json] = {"hardware": hardware_facts(host)}
    notes: list[Json] = [_STEADY]
    for one in sections:
        source = SOURCE if one.run.id == newest.id else f"{SOURCE}.{one.name.replace(':', '.')}"
        sources[source] = _citation(one.run)
        for key, part in one.fitted.parts.items():
            parts[key] = _merged(parts.get(key), _cited(part, source), f"/{key}", one.name)
        notes += [f"{one.name}: {note}" for note in (*one.fitted.notes, *disturbances(one))]
    notes += [f"{one.name}{LEFT_OUT}{one.reason}" for one in skipped]
    return {
        "schema_version": PROFILE_SCHEMA_VERSION,
        "name": newest.machine,
        "title": host.title,
        "library": _library(sections),
        "date": newest.id[:10],
        "notes": notes,
        "sources": sources,
        **parts,
    }


def disturbances(section: FittedSection) -> tuple[str, ...]:
    """Return what is to be said of other processes that ran while a section was measured."""
    busy = [float(one.setting.get(OTHERS_BUSY, 0.0)) for one in section.launches]
    if max(busy, default=0.0) < _NOTICEABLE_CORES:
        return ()
    cores = ", ".join(f"{share:.1f}" for share in busy)
    return (
        f"Other processes kept {cores} cores busy in its launches: times may be too long, "
        "calibrate again on a machine at rest.",
    )


def _citation(run: Run) -> str:
    effort = " --quick" if run.effort == "quick" else ""
    return f"advise calibrate --name {run.machine}{effort}, {run.id}, code {run.code_version}"


def _library(sections: Sequence[FittedSection]) -> str:
    for one in sections:
        if one.with_mpi and one.launches:
            setting = one.launches[-1].setting
            return f"{setting['library']} {setting['library_version']}"
    return NO_LIBRARY


def _cited(part: Json, source: str) -> Json:
    if isinstance(part, list):
        return [_cited(inner, source) for inner in part]
    if not isinstance(part, dict):
        return part
    if part.get("source") == SOURCE and "value" in part:
        return {**part, "source": source}
    return {key: _cited(inner, source) for key, inner in part.items()}


def _merged(known: Json, added: Json, place: str, section: str) -> Json:
    if known is None:
        return added
    if _same(known, added):
        # two sections that share pieces state their ends both, so that either can be left out
        return known
    if not isinstance(known, dict) or not isinstance(added, dict) or "value" in known:
        raise CalibrationError(f"section {section} states {place} again")
    merged = dict(known)
    for key, inner in added.items():
        merged[key] = _merged(known.get(key), inner, f"{place}/{key}", section)
    return merged


def _same(known: Json, added: Json) -> bool:
    if not isinstance(known, dict) or not isinstance(added, dict):
        return False
    return "value" in known and all(known.get(key) == added.get(key) for key in ("value", "unit"))


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
