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


# What commands found: how far predictions hold, measured pieces, and what runs of programs showed.
#
# Of validations nothing is replaced: a machine drifts, and what was found last month is still what
# was found then.


PIECE = "piece"
"""The command of results that are measured pieces; their subject is the key of the piece."""


@dataclass(frozen=True, slots=True)
class Result:
    """What one run of a command found.

    Attributes
    ----------
    machine : str
    command, subject : str
        ``"validate"`` and one of its sections, or ``"verify"`` and the files that were run.
    document : mapping
        JSON values, as the command writes them.
    stored_at : str
        ISO date and time; empty for one that is not stored yet.
    outdated : bool
        Whether the machine's profile was replaced since.
    """

    machine: str
    command: str
    subject: str
    document: Mapping[str, Any]
    stored_at: str = ""
    outdated: bool = False


def add_result(connection: sqlite3.Connection, result: Result) -> None:
    """Store what was found; it is on disk when this returns.

    Raises
    ------
    StoreError
        A number is not finite.
    """
    row = {
        "machine": result.machine,
        "command": result.command,
        "subject": result.subject,
        "document": to_text(dict(result.document)),
        "stored_at": now("milliseconds"),
    }
    with transaction(connection):
        insert(connection, "results", row)


def newest_results(connection: sqlite3.Connection, machine: str) -> tuple[Result, ...]:
    """Return the newest result of each command and subject on a machine, oldest first.

    Measured pieces are not among them.

    Raises
    ------
    StoreError
        A document was altered since.
    """
    profile = connection.execute("SELECT stored_at FROM profiles WHERE name = ?", (machine,))
    row = profile.fetchone()
    since = datetime.fromisoformat(row[0]) if row else None
    rows = connection.execute(
        "SELECT command, subject, document, stored_at FROM results WHERE id IN "
        "(SELECT max(id) FROM results WHERE machine = ? AND command != ? "
        "GROUP BY command, subject) ORDER BY id",
        (machine, PIECE),
    )
    return tuple(
        Result(
            machine,
            command,
            subject,
            from_text(document),
            stored_at,
            since is not None and datetime.fromisoformat(stored_at) < since,
        )
        for command, subject, document, stored_at in rows
    )


def stored_piece(connection: sqlite3.Connection, machine: str, key: str) -> Any | None:
    """Return the document of the newest piece with a key, None where there is none.

    Raises
    ------
    StoreError
        It was altered since.
    """
    row = connection.execute(
        "SELECT document FROM results WHERE machine = ? AND command = ? AND subject = ? "
        "ORDER BY id DESC LIMIT 1",
        (machine, PIECE, key),
    ).fetchone()
    return None if row is None else from_text(row[0])


# What runs of programs showed, by the file that it is about: documents that only users read.
#
# A run replaces what an earlier one showed of the same name; what it did not come across stays.


@dataclass(frozen=True, slots=True)
class Observation:
    """One thing that a run showed.

    Attributes
    ----------
    path : str
        Of the file that it is about.
    kind : str
        ``"function"`` or ``"message"``.
    name : str
        Which function, or which call.
    document : mapping
        JSON values.
    program : str
        What was run.
    stored_at : str
        ISO date and time; empty for one that is not stored yet.
    """

    path: str
    kind: str
    name: str
    document: Mapping[str, Any]
    program: str
    stored_at: str = ""


def add_observations(
    connection: sqlite3.Connection, observed: Iterable[Observation], *, whole: bool = False
) -> None:
    """Store what one run showed, in place of what earlier runs did; all of it or nothing.

    Parameters
    ----------
    connection : sqlite3.Connection
    observed : iterable of Observation
    whole : bool
        Drop everything of the same kinds that was known of these files, whatever its name: for
        names that hold line numbers, which move.

    Raises
    ------
    StoreError
        A number is not finite.
    """
    found = now()
    rows = [
        {
            "path": one.path,
            "kind": one.kind,
            "name": one.name,
            "document": to_text(dict(one.document)),
            "program": one.program,
            "stored_at": found,
        }
        for one in observed
    ]
    with transaction(connection):
        known = "DELETE FROM observations WHERE path = :path AND kind = :kind"
        connection.executemany(known if whole else f"{known} AND name = :name", rows)
        insert(connection, "observations", *rows)


def observations(connection: sqlite3.Connection, kind: str) -> tuple[Observation, ...]:
    """Return everything of a kind, in the order in which it was stored."""
    rows = connection.execute(
        "SELECT path, kind, name, document, program, stored_at FROM observations "
        "WHERE kind = ? ORDER BY id",
        (kind,),
    )
    return tuple(
        Observation(path, found, name, from_text(document), program, stored_at)
        for path, found, name, document, program, stored_at in rows
    )


def forget_observations(connection: sqlite3.Connection, path: str | None = None) -> int:
    """Drop what is known of a file, or of all files; return how many things that were."""
    where, values = ("", ()) if path is None else (" WHERE path = ?", (path,))
    with transaction(connection):
        return connection.execute(f"DELETE FROM observations{where}", values).rowcount
