"""Opening the store: its tables, versions, and transactions that a kill cannot tear.

Write-ahead logging lets many processes read while one writes; each write is one short immediate
transaction, so that what was acknowledged is on disk and what was not leaves no trace.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from costdb.records import dataclass
from costdb.store.place import StoreError, from_text, store_path, to_text

# The tables.

SCHEMA_VERSION, OLDEST_VERSION = 5, 4
APPLICATION_ID = 0x41445653  # "ADVS"


def _table(name: str, columns: str) -> str:
    return f"CREATE TABLE {name} ({columns}) STRICT"


_TABLES = (
    _table(
        "profiles",
        "name TEXT PRIMARY KEY, document TEXT NOT NULL, origin TEXT NOT NULL, "
        "stored_at TEXT NOT NULL",
    ),
    _table(
        "evidence",
        "id INTEGER PRIMARY KEY, machine TEXT NOT NULL, kernel TEXT NOT NULL, code TEXT NOT NULL, "
        "bindings TEXT NOT NULL, predicted TEXT NOT NULL, measured TEXT NOT NULL, "
        "circumstances TEXT NOT NULL, stored_at TEXT NOT NULL",
    ),
    "CREATE INDEX evidence_of_machine ON evidence (machine, kernel)",
    # What runs of programs showed; a name is that of a function, or the place of a call.
    _table(
        "observations",
        "id INTEGER PRIMARY KEY, path TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, "
        "document TEXT NOT NULL, program TEXT NOT NULL, stored_at TEXT NOT NULL",
    ),
    "CREATE INDEX observations_of_path ON observations (path, kind, name)",
    # What commands found, as documents: samples of calibrations, pieces, how far prices hold.
    _table(
        "results",
        "id INTEGER PRIMARY KEY, machine TEXT NOT NULL, command TEXT NOT NULL, "
        "subject TEXT NOT NULL, document TEXT NOT NULL, stored_at TEXT NOT NULL",
    ),
    "CREATE INDEX results_of_machine ON results (machine, command, subject)",
)

_BUSY_TIMEOUT_S = 30.0
_DAMAGE = frozenset((sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT))


@contextmanager
def reading(path: Path | None = None) -> Iterator[sqlite3.Connection]:
    """Open the store, or that at a path, without changing it; the block sees one snapshot.

    Where there is no store none is created, and the block sees an empty one.

    Raises
    ------
    StoreError
        It cannot be read, is damaged, is not a store, or a newer version wrote it.
    """
    path = path or store_path()
    with _opening(path):
        connection = _open_for_reading(path)
    with _in_one_line(path), closing(connection):
        yield connection


@contextmanager
def writing(path: Path | None = None) -> Iterator[sqlite3.Connection]:
    """Open the store, or that at a path, for writing; where there is none it is created.

    Writes belong in :func:`transaction`.

    Raises
    ------
    StoreError
        It cannot be written, is damaged, is not a store, or a newer version wrote it.
    """
    path = path or store_path()
    with _opening(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = _open_for_writing(path)
    with _in_one_line(path), closing(connection):
        yield connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run a block as one transaction that holds the write lock from its start.

    Taking the lock at once waits for other writers; upgrading a read later would fail instead.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def insert(connection: sqlite3.Connection, table: str, *rows: Mapping[str, object]) -> None:
    """Insert rows of the same columns, within a transaction."""
    columns = [*rows[0]] if rows else []
    values = ", ".join(f":{column}" for column in columns)
    statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})"
    if rows:
        connection.executemany(statement, rows)


def now(timespec: str = "seconds") -> str:
    """Return the time as the store states it."""
    return datetime.now(UTC).isoformat(timespec=timespec)


def _open_for_reading(path: Path) -> sqlite3.Connection:
    if path.exists():
        connection = _connect(path, _reading_query(path))
        try:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("BEGIN")
            _refuse_foreign(connection, path)
            begun = _version(connection) > 0
        except BaseException:
            connection.close()
            raise
        if begun:
            return connection
        # Its creator was killed before the first transaction.
        connection.close()
    connection = sqlite3.connect(":memory:", isolation_level=None)
    _create(connection)
    return connection


def _open_for_writing(path: Path) -> sqlite3.Connection:
    connection = _connect(path, "mode=rwc")
    try:
        with _opening(path):
            connection.execute("BEGIN")  # of one moment: another process may just create it
            _refuse_foreign(connection, path)
            connection.execute("ROLLBACK")
            _use_write_ahead_log(connection)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            if not _version(connection):
                with transaction(connection):
                    _create(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _create(connection: sqlite3.Connection) -> None:
    if _version(connection):
        return  # another process was first
    for statement in _TABLES:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _connect(path: Path, query: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{query}",
        uri=True,
        timeout=_BUSY_TIMEOUT_S,
        isolation_level=None,
    )
    # Damage may have left bytes that are no text.
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return connection


def _reading_query(path: Path) -> str:
    # Readers of a write-ahead log share an index file, which only a connection that could
    # write clears away; where the directory admits no file, nobody can be writing either.
    return "mode=rw" if os.access(path.parent, os.W_OK) else "mode=ro&immutable=1"


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    # The switch takes an exclusive lock without honouring the busy timeout.
    deadline = time.monotonic() + _BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _refuse_foreign(connection: sqlite3.Connection, path: Path) -> None:
    version = _version(connection)
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{path}: store version {version} was written by a newer advise "
            f"(this one knows version {SCHEMA_VERSION})"
        )
    if version != 0 and version < OLDEST_VERSION:
        raise StoreError(f"{path}: store version {version} is no more read: move it away")
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    if not (empty and version == 0) and application != APPLICATION_ID:
        raise StoreError(f"{path}: a database, but not a store of advise")


def damaged(path: Path, reason: str) -> StoreError:
    """Return the error for a file that is no intact database."""
    return StoreError(f"{path}: damaged ({reason}): move it away to begin afresh")


@contextmanager
def _opening(path: Path) -> Iterator[None]:
    try:
        with _in_one_line(path):
            yield
    except UnicodeDecodeError as error:
        # The sqlite3 module fails so on a message that quotes a damaged schema.
        raise damaged(path, "its schema is no text") from error
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}") from error


@contextmanager
def _in_one_line(path: Path) -> Iterator[None]:
    # The block may be a caller's: only the database's own errors are its business.
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        reason = " ".join(str(error).split())
        if code in _DAMAGE:
            raise damaged(path, reason) from error
        raise StoreError(f"{path}: {reason}") from error


# --- records --------------------------------------------------------------------------------------
# What commands found, as documents: measurements, how far predictions hold, what runs showed.


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
    row = {name: getattr(result, name) for name in ("machine", "command", "subject")}
    row |= {"document": to_text(dict(result.document)), "stored_at": now("milliseconds")}
    with transaction(connection):
        insert(connection, "results", row)


def keep_result(machine: str, command: str, subject: str, document: Mapping[str, Any]) -> None:
    """Store what a command found of a machine, which ``advise machine show`` tells of."""
    with writing() as connection:
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


Observed = Iterable[tuple[str, str, Mapping[str, Any]]]
"""Files that a run showed something of, which function or which call it is, and JSON values."""


def add_observations(
    connection: sqlite3.Connection,
    program: str,
    kind: str,
    observed: Observed,
    *,
    whole: bool = False,
) -> None:
    """Store what a run of a program showed, in place of what earlier runs did; all or nothing.

    Parameters
    ----------
    connection : sqlite3.Connection
    program : str
    kind : str
        ``"function"`` or ``"message"``.
    observed : iterable of (str, str, mapping)
    whole : bool
        Drop everything of this kind that was known of these files, whatever its name: for names
        that hold line numbers, which move.

    Raises
    ------
    StoreError
        A number is not finite.
    """
    alike = {"kind": kind, "program": program, "stored_at": now()}
    rows = [
        {"path": path, "name": name, "document": to_text(dict(document)), **alike}
        for path, name, document in observed
    ]
    with transaction(connection):
        known = "DELETE FROM observations WHERE path = :path AND kind = :kind"
        connection.executemany(known if whole else f"{known} AND name = :name", rows)
        insert(connection, "observations", *rows)


def forget_observations(connection: sqlite3.Connection) -> int:
    """Drop what is known of files; return how many things that were."""
    with transaction(connection):
        return connection.execute("DELETE FROM observations").rowcount
