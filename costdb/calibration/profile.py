"""The profile of a machine, from the newest measurement of each section in the store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from costdb.calibration.host.hardware import (
    SYSTEM_CITATION,
    SYSTEM_SOURCE,
    Host,
    hardware_facts,
)
from costdb.calibration.host.neighbours import UNTOLD, Sharing
from costdb.calibration.host.sharing_document import sharing_facts, sharing_told
from costdb.calibration.library import NO_LIBRARY
from costdb.calibration.recording import circumstances, sharing_in, timings_of
from costdb.calibration.registry import SECTIONS, CalibrationError, Skipped, find_section
from costdb.calibration.section import Fitted, Need, Quality, Timing
from costdb.machines.checks import PROFILE_SCHEMA_VERSION
from costdb.machines.documents import Json
from costdb.machines.machine import LEFT_OUT
from costdb.machines.stated import SOURCE
from costdb.machines.stored import store_profile
from costdb.profile_check import check_profile
from costdb.store.records import Fit, add_fit
from costdb.store.runs import Launch, Run, launches_of, newest_run_of

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
    sharing : tuple of str
        What is to be said of other guests on the same cores.
    """

    document: Mapping[str, Json]
    sections: tuple[FittedSection, ...]
    skipped: tuple[Skipped, ...]
    sharing: tuple[str, ...] = ()


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
    sharing = sharing_in(connection, newest.machine, names)
    sections, failed = fit_sections(connection, newest, names, host)
    left_out = (*skipped, *failed)
    if not sections:
        reasons = "; ".join(f"{one.name}: {one.reason}" for one in left_out)
        raise CalibrationError(
            f"no section was measured to its end{': ' if reasons else ''}{reasons}"
        )
    document = document_of(newest, sections, left_out, host, sharing)
    problems = check_profile(document, f"calibration of {newest.machine}")
    if problems:
        raise CalibrationError(problems[0])
    for one in sections:
        if one.run.id == newest.id:
            for quality in one.fitted.qualities:
                _keep(connection, one, quality)
    store_profile(document, f"calibration {newest.id}", replace=True)
    return Made(document, sections, left_out, sharing_told(sharing))


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
    sharing: Sharing = UNTOLD,
) -> dict[str, Json]:
    """Return the profile, not yet checked."""
    sources: dict[str, Json] = {SYSTEM_SOURCE: SYSTEM_CITATION}
    parts: dict[str, Json] = {"hardware": {**hardware_facts(host), **sharing_facts(sharing)}}
    if sharing != UNTOLD:
        sources[SOURCE] = _citation(newest)
    notes: list[Json] = [_STEADY, *sharing_told(sharing)]
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


def _keep(connection: sqlite3.Connection, one: FittedSection, quality: Quality) -> None:
    timing = next((t for t in one.timings if t.point.operation == quality.operation), None)
    if timing is None or not one.launches:
        return
    place = circumstances(one.run, one.launches[-1].setting, timing.point)
    statistics = {
        "r2": quality.r2,
        "median_error": quality.median_error,
        "points": float(quality.points),
        "chosen": float(quality.chosen),
    }
    add_fit(connection, place, Fit(quality.model, {}, {}, statistics, ()))
