"""What commands found, as documents: measurements, how far predictions hold, what runs showed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Any

from costdb.records import dataclass
from costdb.store.database import insert, now, transaction, writing
from costdb.store.place import StoreError, from_text, store_path, to_text


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


# What commands found.
#
# Nothing is replaced: a machine drifts, and what was found last month is still what was found then.


PIECE, MEASURED = "piece", "calibrate"
"""The commands of results that are measured pieces, by the keys of these, and samples of the
sections of calibrations."""


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


def keep_result(machine: str, command: str, subject: str, document: Mapping[str, Any]) -> None:
    """Store what a command found of a machine, which ``advise machine show`` tells of."""
    with writing(store_path()) as connection:
        add_result(connection, Result(machine, command, subject, document))


def newest_results(connection: sqlite3.Connection, machine: str) -> tuple[Result, ...]:
    """Return the newest result of each command and subject on a machine, oldest first.

    Measured pieces and samples are not among them.

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
        "(SELECT max(id) FROM results WHERE machine = ? AND command NOT IN (?, ?) "
        "GROUP BY command, subject) ORDER BY id",
        (machine, PIECE, MEASURED),
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


def newest_document(
    connection: sqlite3.Connection, machine: str, command: str, subject: str
) -> Any | None:
    """Return what a command found last of a subject, None where it found nothing.

    Raises
    ------
    StoreError
        It was altered since.
    """
    row = connection.execute(
        "SELECT document FROM results WHERE machine = ? AND command = ? AND subject = ? "
        "ORDER BY id DESC LIMIT 1",
        (machine, command, subject),
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
    """

    path: str
    kind: str
    name: str
    document: Mapping[str, Any]
    program: str


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


def forget_observations(connection: sqlite3.Connection, path: str | None = None) -> int:
    """Drop what is known of a file, or of all files; return how many things that were."""
    where, values = ("", ()) if path is None else (" WHERE path = ?", (path,))
    with transaction(connection):
        return connection.execute(f"DELETE FROM observations{where}", values).rowcount
