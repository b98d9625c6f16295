"""Where the store is, and what is raised when it cannot be used."""

from __future__ import annotations

import os
from pathlib import Path

STORE_FILE_NAME = "advise.sqlite3"


class StoreError(ValueError):
    """The store cannot be used; the message is one line that names its file."""


def data_directory() -> Path:
    """Return the user's data directory: ``ADVISE_DATA_DIR``, else the platform's."""
    stated = os.environ.get("ADVISE_DATA_DIR")
    if stated:
        return Path(stated)
    from platformdirs import user_data_dir

    return Path(user_data_dir("kernel-advisor", appauthor=False))


def store_path() -> Path:
    """Return the path of the store's file, whether or not it exists."""
    return data_directory() / STORE_FILE_NAME
