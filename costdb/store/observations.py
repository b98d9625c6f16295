"""What runs of programs showed, by the file that it is about: documents that only users read.

A run replaces what an earlier one showed of the same name; what it did not come across stays.
A store of an older version has none.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from costdb.store.database import transaction
from costdb.store.place import from_text, to_text


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
    now = datetime.now(UTC).isoformat(timespec="seconds")
    rows = [(o.path, o.kind, o.name, to_text(dict(o.document)), o.program, now) for o in observed]
    with transaction(connection):
        known = "DELETE FROM observations WHERE path = ? AND kind = ?"
        if whole:
            connection.executemany(known, {row[:2] for row in rows})
        else:
            connection.executemany(f"{known} AND name = ?", {row[:3] for row in rows})
        connection.executemany(
            "INSERT INTO observations (path, kind, name, document, program, stored_at) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            rows,
        )


def observations(connection: sqlite3.Connection, kind: str) -> tuple[Observation, ...]:
    """Return everything of a kind, in the order in which it was stored."""
    if not _is_there(connection):
        return ()
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


def _is_there(connection: sqlite3.Connection) -> bool:
    found = connection.execute(
        "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'observations'"
    )
    return bool(found.fetchone()[0])
