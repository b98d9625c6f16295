"""Samples of a launch on their way into the store, and back out as timings."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from costdb.calibration.host.neighbours import Sharing, State, sharing_of
from costdb.calibration.section import Feature, Point, Timing
from costdb.store.records import (
    Beside,
    Circumstances,
    Sample,
    add_samples,
    beside_samples,
    recorded,
    samples_of,
)
from costdb.store.runs import Launch, Run, newest_run_of

_HELD_OUT = "held_out"
_SECTION = "section"
_UNSTATED = "-"

_Key = tuple[str, tuple[tuple[str, Feature], ...], bool]
_Launches = dict[int, list[Sample]]

_MOSTLY = 0.5
"""Of the samples: a state that is rarer does not tell of enough points."""


def record(
    connection: sqlite3.Connection,
    run: Run,
    launch: Launch,
    visits: Iterable[tuple[Point, Sequence[float], Beside | None]],
) -> None:
    """Append visits to the records of their circumstances."""
    batches: dict[Circumstances, list[Sample]] = {}
    for point, taken, beside in visits:
        stated = {**point.features, _HELD_OUT: int(point.held_out), _SECTION: launch.section}
        sample = Sample(launch.number, stated, tuple(taken), beside)
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
    every: list[Beside] = []
    for place in recorded(connection, machine=run.machine, date=run.id):
        for sample in samples_of(connection, place):
            stated = dict(sample.point)
            if stated.pop(_SECTION) != section:
                continue
            held_out = bool(stated.pop(_HELD_OUT))
            key = (place.operation, tuple(sorted(stated.items())), held_out)
            launches = found.setdefault(key, {})
            launches.setdefault(sample.launch, []).append(sample)
            if sample.beside is not None:
                every.append(sample.beside)
    sharing = sharing_of(every)
    return tuple(
        Timing(Point(operation, dict(features), held_out), *_by_visit(launches, sharing))
        for (operation, features, held_out), launches in found.items()
    )


_ByVisit = tuple[tuple[tuple[float, ...], ...], ...]


def _by_visit(launches: _Launches, sharing: Sharing) -> tuple[_ByVisit, _ByVisit]:
    """Return all samples of a point, and those on idle cores if they are most."""
    ordered = [visits for _, visits in sorted(launches.items())]
    every = tuple(tuple(visit.microseconds for visit in visits) for visits in ordered)
    if sharing.share(State.ALONE) < _MOSTLY:
        return every, ()
    idle = tuple(
        tuple(kept for visit in visits if (kept := _idle(visit, sharing))) for visits in ordered
    )
    return every, idle


def _idle(visit: Sample, sharing: Sharing) -> tuple[float, ...]:
    groups = None if visit.beside is None else sharing.groups.get(visit.beside.threads)
    if groups is None or visit.beside is None:
        return ()
    beside = zip(visit.microseconds, visit.beside.us, strict=True)
    return tuple(us for us, ends in beside if groups.state(*ends) is State.ALONE)


def sharing_in(connection: sqlite3.Connection, machine: str, sections: Iterable[str]) -> Sharing:
    """Return how cores were shared in the newest runs of a machine's sections, all together."""
    runs = (newest_run_of(connection, machine, section) for section in sections)
    dates = sorted({run.id for run in runs if run is not None})
    return sharing_of(one for date in dates for one in beside_samples(connection, machine, date))
