"""Calibration records: what was measured under which circumstances, and what was fitted to it.

A record is identified by all of its circumstances, so measurements that differ in any of them
are never merged. Raw samples are only ever added.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from costdb.records import dataclass, fields
from costdb.store.database import insert, now, transaction
from costdb.store.place import StoreError, from_text, store_path, to_text


@dataclass(frozen=True, slots=True)
class Circumstances:
    """All that a measurement depends on besides the sizes measured.

    Attributes
    ----------
    machine, library, library_version : str
        Where, and over which MPI or thread library.
    dtype : str
        Element type, in NumPy's short form (``"f8"``).
    ranks, nodes : int
        How many took part.
    operation : str
        What was measured, for example ``"message.column"``.
    pinning, stride : str
        How ranks were bound, and how the data lay.
    date : str
        ISO date of the measurement.
    code_version : str
        Version of the measuring code.
    """

    machine: str
    library: str
    library_version: str
    dtype: str
    ranks: int
    nodes: int
    operation: str
    pinning: str
    stride: str
    date: str
    code_version: str


@dataclass(frozen=True, slots=True)
class Sample:
    """Raw repetitions at one point: sizes by name, times in microseconds in measured order."""

    launch: int
    point: Mapping[str, float | str]
    microseconds: tuple[float, ...]


_KEYS = tuple(field.name for field in fields(Circumstances))
_MATCH = " AND ".join(f"{key} = :{key}" for key in _KEYS)


def add_samples(
    connection: sqlite3.Connection, circumstances: Circumstances, samples: Iterable[Sample]
) -> int:
    """Add raw samples to the record of exactly these circumstances; return how many.

    They are on disk, all of them, when this returns.

    Raises
    ------
    StoreError
        A number is not finite.
    """
    rows = [
        {
            "launch": sample.launch,
            "point": to_text(dict(sample.point)),
            "microseconds": to_text(list(sample.microseconds)),
        }
        for sample in samples
    ]
    with transaction(connection):
        record = _record(connection, circumstances)
        insert(connection, "samples", *({"record": record, **row} for row in rows))
    return len(rows)


def samples_of(connection: sqlite3.Connection, circumstances: Circumstances) -> tuple[Sample, ...]:
    """Return the raw samples of exactly these circumstances, in the order they were added."""
    rows = connection.execute(
        "SELECT launch, point, microseconds FROM samples "
        f"WHERE record = (SELECT id FROM records WHERE {_MATCH}) ORDER BY id",
        asdict(circumstances),
    )
    return tuple(
        Sample(launch, from_text(point), tuple(from_text(microseconds)))
        for launch, point, microseconds in rows
    )


def recorded(connection: sqlite3.Connection, **asked: str | int) -> tuple[Circumstances, ...]:
    """Return the circumstances of all records that agree with `asked`, in a fixed order.

    Raises
    ------
    StoreError
        `asked` names what no record has.
    """
    for key in asked:
        if key not in _KEYS:
            raise StoreError(f"records have no {key!r}, only {', '.join(_KEYS)}")
    condition = " AND ".join(f"{key} = :{key}" for key in asked) or "1"
    columns = ", ".join(_KEYS)
    rows = connection.execute(
        f"SELECT {columns} FROM records WHERE {condition} ORDER BY {columns}", asked
    )
    return tuple(Circumstances(*row) for row in rows)


def _record(connection: sqlite3.Connection, circumstances: Circumstances) -> int:
    values = asdict(circumstances)
    connection.execute(
        f"INSERT OR IGNORE INTO records ({', '.join(_KEYS)}) "
        f"VALUES ({', '.join(':' + key for key in _KEYS)})",
        values,
    )
    row = connection.execute(f"SELECT id FROM records WHERE {_MATCH}", values).fetchone()
    return int(row[0])


# Runs of the calibration: what was begun, which launches are done, and one at a time.
#
# A run's identifier is the date of its records, so that samples of two runs are never merged.

_COLUMNS = "id, machine, effort, ranks, code_version, sections, finished"


@dataclass(frozen=True, slots=True)
class Run:
    """One calibration.

    Attributes
    ----------
    id : str
        When it began, in UTC, and the process that began it.
    machine, effort, code_version : str
    ranks : int
    sections : tuple of str
        What was asked for.
    finished : bool
    """

    id: str
    machine: str
    effort: str
    ranks: int
    code_version: str
    sections: tuple[str, ...]
    finished: bool = False


@dataclass(frozen=True, slots=True)
class Launch:
    """One fresh launch of a section; `setting` is what it measured with."""

    run: str
    section: str
    number: int
    setting: Mapping[str, Any]
    finished: bool


@contextmanager
def alone() -> Iterator[None]:
    """Let nobody else calibrate into this store: two at once would measure each other.

    Raises
    ------
    StoreError
        Somebody does already.
    """
    path = store_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    # A database of its own serves as a lock that a kill releases, on every system alike.
    lock = path.with_name(path.name + ".calibration")
    with closing(sqlite3.connect(lock, timeout=0, isolation_level=None)) as holder:
        try:
            holder.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            raise StoreError(f"{path}: another calibration is running on it") from error
        yield


def begin_run(
    connection: sqlite3.Connection,
    machine: str,
    effort: str,
    ranks: int,
    code_version: str,
    sections: Sequence[str],
) -> Run:
    """Begin a run."""
    began = f"{now('milliseconds')} {os.getpid()}"
    run = Run(began, machine, effort, ranks, code_version, tuple(sections))
    with transaction(connection):
        insert(connection, "runs", {**asdict(run), "sections": to_text(list(sections))})
    return run


def unfinished_run(connection: sqlite3.Connection, like: Run, within: timedelta) -> Run | None:
    """Return the newest unfinished run that asked for the same as `like`, or None.

    Parameters
    ----------
    within : timedelta
        Older ones do not count: a machine drifts.
    """
    oldest = (datetime.now(UTC) - within).isoformat(timespec="milliseconds")
    asked = {**asdict(like), "sections": to_text(list(like.sections)), "oldest": oldest}
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM runs WHERE machine = :machine AND effort = :effort "
        "AND ranks = :ranks AND code_version = :code_version AND sections = :sections "
        "AND finished = 0 AND id >= :oldest ORDER BY id DESC LIMIT 1",
        asked,
    ).fetchone()
    return None if row is None else _run(row)


def finish_run(connection: sqlite3.Connection, run: Run) -> None:
    """Mark a run as finished."""
    with transaction(connection):
        connection.execute("UPDATE runs SET finished = 1 WHERE id = ?", (run.id,))


def begin_launch(
    connection: sqlite3.Connection, run: Run, section: str, setting: Mapping[str, Any]
) -> int:
    """Begin a launch and return its number within its run and section."""
    with transaction(connection):
        row = connection.execute(
            "SELECT coalesce(max(launch), 0) FROM launches WHERE run = ? AND section = ?",
            (run.id, section),
        ).fetchone()
        number = int(row[0]) + 1
        connection.execute(
            "INSERT INTO launches VALUES (?, ?, ?, ?, 0)",
            (run.id, section, number, to_text(dict(setting))),
        )
    return number


def finish_launch(connection: sqlite3.Connection, launch: Launch) -> None:
    """Mark a launch as finished, and keep what its setting says by now."""
    with transaction(connection):
        connection.execute(
            "UPDATE launches SET finished = 1, setting = ? "
            "WHERE run = ? AND section = ? AND launch = ?",
            (to_text(dict(launch.setting)), launch.run, launch.section, launch.number),
        )


def launches_of(connection: sqlite3.Connection, run: str, section: str) -> tuple[Launch, ...]:
    """Return the launches of a section in a run, in order."""
    rows = connection.execute(
        "SELECT run, section, launch, setting, finished FROM launches "
        "WHERE run = ? AND section = ? ORDER BY launch",
        (run, section),
    )
    return tuple(
        Launch(run, section, number, from_text(setting), bool(finished))
        for run, section, number, setting, finished in rows
    )


def newest_run_of(connection: sqlite3.Connection, machine: str, section: str) -> Run | None:
    """Return the newest run on a machine that finished a launch of a section, or None."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM runs WHERE machine = ? AND id IN "
        "(SELECT run FROM launches WHERE section = ? AND finished = 1) ORDER BY id DESC LIMIT 1",
        (machine, section),
    ).fetchone()
    return None if row is None else _run(row)


def _run(row: tuple[Any, ...]) -> Run:
    identifier, machine, effort, ranks, code_version, sections, finished = row
    return Run(
        identifier, machine, effort, ranks, code_version, tuple(from_text(sections)), bool(finished)
    )
