"""How far a machine's predictions were found to hold: documents of validations, newest last.

Nothing is replaced: a machine drifts, and what was found last month is still what was found then.
A store of an older version has none.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from costdb.store.database import transaction
from costdb.store.place import from_text, to_text

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
    row = (
        result.machine,
        result.command,
        result.subject,
        to_text(dict(result.document)),
        datetime.now(UTC).isoformat(timespec="milliseconds"),
    )
    with transaction(connection):
        connection.execute(
            "INSERT INTO results (machine, command, subject, document, stored_at) "
            "VALUES (?, ?, ?, ?, ?)",
            row,
        )


def newest_results(connection: sqlite3.Connection, machine: str) -> tuple[Result, ...]:
    """Return the newest result of each command and subject on a machine, oldest first.

    Measured pieces are not among them.

    Raises
    ------
    StoreError
        A document was altered since.
    """
    if not _has_results(connection):
        return ()
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
    if not _has_results(connection):
        return None
    row = connection.execute(
        "SELECT document FROM results WHERE machine = ? AND command = ? AND subject = ? "
        "ORDER BY id DESC LIMIT 1",
        (machine, PIECE, key),
    ).fetchone()
    return None if row is None else from_text(row[0])


def _has_results(connection: sqlite3.Connection) -> bool:
    there = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'results'"
    return bool(connection.execute(there).fetchone()[0])
