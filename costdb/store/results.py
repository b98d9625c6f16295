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

    Raises
    ------
    StoreError
        A document was altered since.
    """
    there = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'results'"
    if not connection.execute(there).fetchone()[0]:
        return ()
    profile = connection.execute("SELECT stored_at FROM profiles WHERE name = ?", (machine,))
    row = profile.fetchone()
    since = datetime.fromisoformat(row[0]) if row else None
    rows = connection.execute(
        "SELECT command, subject, document, stored_at FROM results WHERE id IN "
        "(SELECT max(id) FROM results WHERE machine = ? GROUP BY command, subject) ORDER BY id",
        (machine,),
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
