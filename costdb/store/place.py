"""Where the store is, what tells its states apart, and structured values as text in its columns."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

STORE_FILE_NAME = "advise.sqlite3"
_LOG = "-wal"

State = list[list[int]]


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
