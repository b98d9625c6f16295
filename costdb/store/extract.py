"""What a lint run needs of the store, in a JSON file beside it, so that no database is opened.

Whoever wrote to the store writes the extract anew; a reader that finds none, or one of another
state of the store, takes what it needs from the store and renews it. The state is size and time of
change of the database and of its log: writes go to the log first, and come to the database later.
Clocks of files are coarse, so an extract as old as the last change is not trusted either.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from costdb.records import dataclass

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path


# Where the store is, and what is raised when it cannot be used.


# Structured values as text in the store's columns, finite numbers only.


def to_text(value: object) -> str:
    """Return a value as JSON.

    Raises
    ------
    StoreError
        A number is not finite.
    """
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError as error:
        raise StoreError("a number to be stored is not finite") from error


def from_text(text: str) -> Any:
    """Return the value that :func:`to_text` wrote.

    Raises
    ------
    StoreError
        The text was altered since.
    """
    try:
        return json.loads(text)
    except ValueError as error:
        raise StoreError("a stored value is damaged: it cannot be read back") from error


STORE_FILE_NAME = "advise.sqlite3"


class StoreError(ValueError):
    """The store cannot be used; the message is one line that names its file."""


def data_directory() -> Path:
    """Return the user's data directory: ``ADVISE_DATA_DIR``, else the platform's."""
    stated = os.environ.get("ADVISE_DATA_DIR")
    if stated:
        return Path(stated)
    if sys.platform.startswith("linux"):
        # as platformdirs says, which a linter has no time to import
        home = os.environ.get("XDG_DATA_HOME", "")
        return Path(home if home.strip() else "~/.local/share").expanduser() / "kernel-advisor"
    from platformdirs import user_data_dir

    return Path(user_data_dir("kernel-advisor", appauthor=False))


def store_path() -> Path:
    """Return the path of the store's file, whether or not it exists."""
    return data_directory() / STORE_FILE_NAME


# The tables of the store.

SCHEMA_VERSION = 5
APPLICATION_ID = 0x41445653  # "ADVS"


def _table(name: str, columns: str) -> str:
    return f"CREATE TABLE {name} ({columns}) STRICT"


_KEYS = (
    "machine TEXT NOT NULL, library TEXT NOT NULL, library_version TEXT NOT NULL, "
    "dtype TEXT NOT NULL, ranks INTEGER NOT NULL, nodes INTEGER NOT NULL, "
    "operation TEXT NOT NULL, pinning TEXT NOT NULL, stride TEXT NOT NULL, date TEXT NOT NULL, "
    "code_version TEXT NOT NULL"
)
FIRST_TABLES = (
    _table(
        "profiles",
        "name TEXT PRIMARY KEY, document TEXT NOT NULL, origin TEXT NOT NULL, "
        "stored_at TEXT NOT NULL",
    ),
    # Every circumstance is part of the key: what was measured otherwise is another record.
    _table(
        "records",
        f"id INTEGER PRIMARY KEY, {_KEYS}, UNIQUE (machine, library, library_version, dtype, "
        "ranks, nodes, operation, pinning, stride, date, code_version)",
    ),
    _table(
        "samples",
        "id INTEGER PRIMARY KEY, record INTEGER NOT NULL REFERENCES records (id), "
        "launch INTEGER NOT NULL, point TEXT NOT NULL, microseconds TEXT NOT NULL",
    ),
    "CREATE INDEX samples_of_record ON samples (record)",
    # of versions that kept fits beside their samples; nothing writes it
    _table(
        "fits",
        "id INTEGER PRIMARY KEY, record INTEGER NOT NULL REFERENCES records (id), "
        "model TEXT NOT NULL, coefficients TEXT NOT NULL, ranges TEXT NOT NULL, "
        "statistics TEXT NOT NULL, residuals TEXT NOT NULL, stored_at TEXT NOT NULL",
    ),
    "CREATE INDEX fits_of_record ON fits (record, model)",
    _table(
        "evidence",
        "id INTEGER PRIMARY KEY, machine TEXT NOT NULL, kernel TEXT NOT NULL, code TEXT NOT NULL, "
        "bindings TEXT NOT NULL, predicted TEXT NOT NULL, measured TEXT NOT NULL, "
        "circumstances TEXT NOT NULL, stored_at TEXT NOT NULL",
    ),
    "CREATE INDEX evidence_of_machine ON evidence (machine, kernel)",
)

_OBSERVATIONS = (
    # What runs of programs showed; a name is that of a function, or the place of a call.
    _table(
        "observations",
        "id INTEGER PRIMARY KEY, path TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, "
        "document TEXT NOT NULL, program TEXT NOT NULL, stored_at TEXT NOT NULL",
    ),
    "CREATE INDEX observations_of_path ON observations (path, kind, name)",
)

_RUNS = (
    # Calibrations, so that one that was interrupted can be resumed.
    _table(
        "runs",
        "id TEXT PRIMARY KEY, machine TEXT NOT NULL, effort TEXT NOT NULL, "
        "ranks INTEGER NOT NULL, code_version TEXT NOT NULL, sections TEXT NOT NULL, "
        "finished INTEGER NOT NULL",
    ),
    "CREATE INDEX runs_of_machine ON runs (machine)",
    _table(
        "launches",
        "run TEXT NOT NULL REFERENCES runs (id), section TEXT NOT NULL, launch INTEGER NOT NULL, "
        "setting TEXT NOT NULL, finished INTEGER NOT NULL, PRIMARY KEY (run, section, launch)",
    ),
)

_RESULTS = (
    # What validations and verifications said of a machine's predictions, as documents.
    _table(
        "results",
        "id INTEGER PRIMARY KEY, machine TEXT NOT NULL, command TEXT NOT NULL, "
        "subject TEXT NOT NULL, document TEXT NOT NULL, stored_at TEXT NOT NULL",
    ),
    "CREATE INDEX results_of_machine ON results (machine, command, subject)",
)

# What a sentinel took beside each sample of the row; samples of older versions have none.
_BESIDE = ("ALTER TABLE samples ADD COLUMN beside TEXT",)

MIGRATIONS = {1: _OBSERVATIONS, 2: _RUNS, 3: _RESULTS, 4: _BESIDE}
"""By version: what makes the tables of the next one of them."""

TABLES = (*FIRST_TABLES, *_OBSERVATIONS, *_RUNS, *_RESULTS, *_BESIDE)


def has_table(connection: sqlite3.Connection, name: str) -> bool:
    """Tell whether a store has a table; one of an older version lacks some."""
    there = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?"
    return bool(connection.execute(there, (name,)).fetchone()[0])


SUFFIX = ".extract.json"
_VERSION = [2, SCHEMA_VERSION]
_LOG = "-wal"
_COARSE_NS = 50_000_000

State = list[list[int]]


@dataclass(frozen=True, slots=True)
class Extract:
    """Part of the store at one state of it.

    Attributes
    ----------
    profiles : mapping of str to str
        Documents as they are stored, by name.
    evidence : list
        Rows of the table, without their numbers, oldest first.
    functions : list of (path, document)
        What runs showed of functions, in the order in which it was stored.
    messages : list of (path, document)
        Likewise of messages.
    """

    profiles: Mapping[str, str]
    evidence: list[list[str]]
    functions: list[tuple[str, Any]]
    messages: list[tuple[str, Any]]


NOTHING = Extract({}, [], [], [])


def state_of(path: Path) -> State | None:
    """Return something that changes with the store; None where there is none."""
    database = _status(path)
    if not database:
        return None
    log = _status(path.with_name(path.name + _LOG))
    # An open database has a log, which is empty where nothing was written since it was opened.
    return [database, log if log and log[1] else []]


def _status(file: Path) -> list[int]:
    try:
        status = file.stat()
    except OSError:
        return []
    return [status.st_mtime_ns, status.st_size, status.st_ino]


def read(path: Path, state: State) -> Extract | None:
    """Return the extract of a store in that state, if there is one."""
    file = path.with_name(path.name + SUFFIX)
    changed_ns = max(one[0] for one in state if one)
    try:
        if file.stat().st_mtime_ns < changed_ns + _COARSE_NS:
            return None
        stated = json.loads(file.read_bytes())
        if stated["version"] != _VERSION or stated["state"] != state:
            return None
        functions, messages = (
            [(str(file), document) for file, document in stated[kind]]
            for kind in ("functions", "messages")
        )
        return Extract(dict(stated["profiles"]), list(stated["evidence"]), functions, messages)
    except (OSError, KeyError, TypeError, ValueError):
        return None


def taken(connection: sqlite3.Connection) -> Extract:
    """Return the extract of an open store."""
    profiles = connection.execute("SELECT name, document FROM profiles ORDER BY name")
    evidence = connection.execute(
        "SELECT machine, kernel, code, bindings, predicted, measured, circumstances "
        "FROM evidence ORDER BY id"
    )
    observed = [_observed(connection, kind) for kind in ("function", "message")]
    return Extract(dict(profiles.fetchall()), _newest(evidence), *observed)


def _observed(connection: sqlite3.Connection, kind: str) -> list[tuple[str, Any]]:
    if not has_table(connection, "observations"):
        return []
    rows = connection.execute(
        "SELECT path, document FROM observations WHERE kind = ? ORDER BY id", (kind,)
    )
    return [(path, from_text(document)) for path, document in rows]


def _newest(rows: Iterable[tuple[str, ...]]) -> list[list[str]]:
    """Return the last row of each machine, kernel, rule, sizes, and of what tells runs apart."""
    found: dict[object, list[str]] = {}
    for row in rows:
        circumstances = from_text(row[-1])
        key = (*row[:4], *(circumstances.get(name) for name in ("ranks", "file", "title")))
        found.pop(key, None)
        found[key] = list(row)
    return list(found.values())


def write(path: Path, state: State, found: Extract) -> None:
    """Keep the extract of a store in that state, where the folder can be written to."""
    document = {"version": _VERSION, "state": state, **asdict(found)}
    import tempfile

    with suppress(OSError):
        text = json.dumps(document).encode("utf-8", "backslashreplace")
        with tempfile.NamedTemporaryFile(
            prefix=path.name, suffix=".new", dir=path.parent, delete=False
        ) as file:
            made = Path(file.name)
            try:
                file.write(text)
                file.close()
                made.replace(path.with_name(path.name + SUFFIX))
            except OSError:
                made.unlink()
                raise
