"""Where the store is, and what is raised when it cannot be used."""

from __future__ import annotations

import os
import sys
from pathlib import Path

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
