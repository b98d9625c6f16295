"""Read-only look-ups of profiles; where there is no store they create none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from costdb.store.place import store_path

if TYPE_CHECKING:
    import sqlite3

    from costdb.machines.documents import Json

_Found = TypeVar("_Found")


def stored_profile(name: str) -> tuple[dict[str, Json], str] | None:
    """Return an imported profile's document and where it is kept, or None.

    Raises
    ------
    StoreError
        The store cannot be read, or was written by a newer version.
    """
    if not store_path().is_file():
        return None
    from costdb.store.profiles import find_profile

    where = str(store_path())
    document = _look_up(lambda connection: find_profile(connection, name, where), None)
    return None if document is None else (document, f"{where}: {name}")


def stored_profile_names() -> tuple[str, ...]:
    """Return the names of all imported profiles, sorted.

    Raises
    ------
    StoreError
        The store cannot be read, or was written by a newer version.
    """
    if not store_path().is_file():
        return ()
    from costdb.store.profiles import profile_names

    return _look_up(profile_names, ())


def _look_up(query: Callable[[sqlite3.Connection], _Found], nothing: _Found) -> _Found:
    from costdb.store.database import DamagedStoreError, reading, set_aside

    path = store_path()
    try:
        with reading(path) as connection:
            return query(connection)
    except DamagedStoreError:
        set_aside(path)
        return nothing
