"""A calibration from beginning to end: launches of sections, into the store, and the profile."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
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
from costdb.documents import check_profile, store_profile
from costdb.machines import (
    LEFT_OUT,
    PROFILE_SCHEMA_VERSION,
    SOURCE,
    Json,
    built_in_names,
    is_machine_name,
)
from costdb.records import dataclass
from costdb.store.database import MEASURED, Result, add_result, alone, newest_document, now, writing

# The profile of a machine, from the newest measurement of each section in the store.


# A section as it was measured: a document of the store, with every sample.


@dataclass(frozen=True, slots=True)
class Measured:
    """A section as it was measured.

    Attributes
    ----------
    begun : str
        When its calibration began, in UTC, and the process that began it.
    effort, code_version : str
    points : sequence of (operation, features, held_out)
    launches : sequence of mapping
        Of each its ``setting``, and its ``visits``: the place of a point, and the microseconds.
    """

    begun: str
    effort: str
    code_version: str
    points: Sequence[tuple[str, Mapping[str, Feature], bool]]
    launches: Sequence[Mapping[str, Any]]

    @property
    def timings(self) -> tuple[Timing, ...]:
        """What it has of each point that was visited, unfinished launches included."""
        visits: dict[int, dict[int, list[tuple[float, ...]]]] = {}
        for number, one in enumerate(self.launches):
            for at, taken in one["visits"]:
                visits.setdefault(at, {}).setdefault(number, []).append(tuple(taken))
        return tuple(
            Timing(Point(*self.points[at]), tuple(map(tuple, by_launch.values())))
            for at, by_launch in sorted(visits.items())
        )


def measured_of(connection: sqlite3.Connection, machine: str, section: str) -> Measured | None:
    """Return the newest measurement of a section on a machine, or None."""
    document = newest_document(connection, machine, MEASURED, section)
    return None if document is None else Measured(**document)


OTHERS_BUSY = "others_busy_cores"
"""In the setting of a launch: how many cores other processes kept busy meanwhile."""

_NOTICEABLE_CORES = 0.15

_STEADY = (
    "Times are those of a process that has run a while: first touches of memory and first "
    "messages were dropped as warm-ups. A fresh process is slower."
)


@dataclass(frozen=True, slots=True)
class FittedSection:
    """A section, whether it needs MPI, how it was measured, and what came of it."""

    name: str
    with_mpi: bool
    measured: Measured
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
    connection: sqlite3.Connection,
    request: Request,
    begun: str,
    skipped: Iterable[Skipped],
    host: Host,
) -> Made:
    """Fit all sections that the store has of a machine, and keep the profile.

    Raises
    ------
    CalibrationError
        Nothing was measured, or the profile contradicts its schema, physics, or itself.
    """
    names = tuple(dict.fromkeys((*SECTIONS, *request.only)))
    sections, failed = fit_sections(connection, request.machine, names, host)
    left_out = (*skipped, *failed)
    if not sections:
        reasons = "; ".join(f"{one.name}: {one.reason}" for one in left_out)
        raise CalibrationError(
            f"no section was measured to its end{': ' if reasons else ''}{reasons}"
        )
    document = document_of(request.machine, begun, sections, left_out, host)
    problems = check_profile(document, f"calibration of {request.machine}")
    if problems:
        raise CalibrationError(problems[0])
    store_profile(document, f"calibration {begun}", replace=True)
    return Made(document, sections, left_out)


def fit_sections(
    connection: sqlite3.Connection, machine: str, names: Iterable[str], host: Host
) -> tuple[tuple[FittedSection, ...], tuple[Skipped, ...]]:
    """Fit what was measured; a section whose measurements admit no fit is reported instead."""
    fitted, failed = [], []
    for name in names:
        measured = measured_of(connection, machine, name)
        if measured is None:
            continue
        timings, section = measured.timings, find_section(name)
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
            fitted.append(FittedSection(name, with_mpi, measured, timings, found))
    return tuple(fitted), tuple(failed)


def document_of(
    machine: str,
    begun: str,
    sections: Sequence[FittedSection],
    skipped: Sequence[Skipped],
    host: Host,
) -> dict[str, Json]:
    """Return the profile, not yet checked."""
    sources: dict[str, Json] = {SYSTEM_SOURCE: SYSTEM_CITATION}
    parts: dict[str, Json] = {"hardware": hardware_facts(host)}
    notes: list[Json] = [_STEADY]
    for one in sections:
        source = SOURCE if one.measured.begun == begun else f"{SOURCE}.{one.name.replace(':', '.')}"
        sources[source] = _citation(machine, one.measured)
        for key, part in one.fitted.parts.items():
            parts[key] = _merged(parts.get(key), _cited(part, source), f"/{key}", one.name)
        notes += [f"{one.name}: {note}" for note in (*one.fitted.notes, *disturbances(one))]
    notes += [f"{one.name}{LEFT_OUT}{one.reason}" for one in skipped]
    return {
        "schema_version": PROFILE_SCHEMA_VERSION,
        "name": machine,
        "title": host.title,
        "library": _library(sections),
        "date": begun[:10],
        "notes": notes,
        "sources": sources,
        **parts,
    }


def disturbances(section: FittedSection) -> tuple[str, ...]:
    """Return what is to be said of other processes that ran while a section was measured."""
    busy = [float(one["setting"].get(OTHERS_BUSY, 0.0)) for one in section.measured.launches]
    if max(busy, default=0.0) < _NOTICEABLE_CORES:
        return ()
    cores = ", ".join(f"{share:.1f}" for share in busy)
    return (
        f"Other processes kept {cores} cores busy in its launches: times may be too long, "
        "calibrate again on a machine at rest.",
    )


def _citation(machine: str, one: Measured) -> str:
    effort = " --quick" if one.effort == "quick" else ""
    return f"advise calibrate --name {machine}{effort}, {one.begun}, code {one.code_version}"


def _library(sections: Sequence[FittedSection]) -> str:
    for one in sections:
        if one.with_mpi:
            setting = one.measured.launches[-1]["setting"]
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

_MOST_RANKS = 8


class Watcher(Protocol):
    """Who is told how far a calibration is."""

    def measuring(self, title: str, launch: int, launches: int) -> None:
        """A launch of a section begins."""

    def progress(self, share: float) -> None:
        """So much of the launch is done, from 0 to 1."""

    def failed(self, reason: str) -> None:
        """A launch ended early; what it had measured is kept."""


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
    seconds : float or None
        For all that are asked for together; None for what the effort allows.
    """

    machine: str = "here"
    effort: Effort = Effort.FULL
    only: tuple[str, ...] = ()
    ranks: int = 0
    seconds: float | None = None


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
    with alone(), writing() as connection:
        begun = f"{now('milliseconds')} {os.getpid()}"
        _measure(connection, begun, request, wanted, watcher, host, start)
        return make_profile(connection, request, begun, skipped, host)


def ranks_of(request: Request, host: Host) -> int:
    """Return how many ranks take part where a section needs MPI."""
    launched = launched_ranks()
    if launched > 1:
        return launched
    return request.ranks or max(min(host.cores, _MOST_RANKS), 2)


def _measure(
    connection: sqlite3.Connection,
    begun: str,
    request: Request,
    wanted: Sequence[Section],
    watcher: Watcher,
    host: Host,
    start: Start,
) -> None:
    """Measure sections one after the other, and keep each that came to the end of a launch."""
    launches = LAUNCHES[request.effort]
    asked = sum(_share_of(section.name, request.effort) for section in wanted)
    every = sum(_share_of(name, request.effort) for name in SECTIONS)
    each = TOTAL_SECONDS[request.effort] / max(every, asked)
    all_end = time.monotonic() + (request.seconds or each * asked)
    for section in wanted:
        # what one leaves over goes to those that follow
        share = _share_of(section.name, request.effort)
        begins = time.monotonic()
        ends = begins + (all_end - begins) * share / asked
        asked -= share
        ranks = ranks_of(request, host) if Need.MPI in section.needs else 0
        points = section.points(request.effort, ranks or host.cores, host)
        taken: list[dict[str, Any]] = []
        finished = 0
        for number in range(launches):
            watcher.measuring(section.title, number + 1, launches)
            seconds = (ends - time.monotonic()) / (launches - number)
            job = Job(section.name, request.effort, seconds, random.randrange(2**32), host)
            launched: dict[str, Any] = {"setting": None, "visits": []}
            taken.append(launched)
            try:
                _launch(job, ranks, len(points), launched, watcher, start)
            except CalibrationError as error:
                watcher.failed(str(error))
                break
            finished += 1
        if finished:
            stated = [(one.operation, dict(one.features), one.held_out) for one in points]
            kept = [one for one in taken if one["setting"] is not None]
            found = Measured(begun, request.effort, code_version(), stated, kept)
            add_result(connection, Result(request.machine, MEASURED, section.name, asdict(found)))


def _share_of(section: str, effort: Effort) -> int:
    return SHARES[effort].get(section, 1)


def _launch(
    job: Job,
    ranks: int,
    points: int,
    launched: dict[str, Any],
    watcher: Watcher,
    start: Start,
) -> None:
    """Take down the setting and the visits of a launch."""
    expected = PACES[job.effort].rounds * points
    began = time.monotonic()
    bystanders = Bystanders()
    visits: list[Any] = launched["visits"]
    for message in start(job, ranks):
        launched["setting"] = message.get("setting", launched["setting"])
        if "visits" in message:
            visits += message["visits"]
            elapsed = (time.monotonic() - began) / max(job.seconds, 1e-9)
            watcher.progress(min(max(len(visits) / max(expected, 1), elapsed), 1.0))
    if launched["setting"] is None or (expected and not visits):
        raise CalibrationError(f"{job.section}: its time was over before anything was measured")
    busy = bystanders.busy_cores()
    if busy is not None:
        launched["setting"] = {**launched["setting"], OTHERS_BUSY: round(busy, 2)}
