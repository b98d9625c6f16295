"""Read-only look-ups by name; where there is no store they create none.

They read the extract beside the store, so that a lint run opens no database.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from costdb.store.extract import NOTHING, Extract, State, read, state_of
from costdb.store.place import store_path

if TYPE_CHECKING:
    from pathlib import Path

    from costdb.store.evidence import Evidence


@dataclass(frozen=True, slots=True)
class StoredEvidence:
    """Evidence as it is stored: whoever only looks which there is need not read its numbers."""

    columns: tuple[str, ...]

    @property
    def subject(self) -> tuple[str, str]:
        """The kernel and the code of the rule."""
        return self.columns[1], self.columns[2]

    def read(self) -> Evidence:
        """Return it with its numbers.

        Raises
        ------
        StoreError
            A value was altered since.
        """
        from costdb.store.evidence import evidence_in

        return evidence_in(self.columns)


# The last one used, by path and state: a run asks for a machine more than once.
_last: list[tuple[Path, State, Extract]] = []


def stored_profile(name: str) -> tuple[str, str] | None:
    """Return an imported profile's document as text, and where it is kept; or None.

    Raises
    ------
    StoreError
        The store cannot be read, or was written by a newer version.
    """
    text = _extract().profiles.get(name)
    return None if text is None else (text, f"{store_path()}: {name}")


def stored_profile_names() -> tuple[str, ...]:
    """Return the names of all imported profiles, sorted; raises as :func:`stored_profile`."""
    return tuple(sorted(_extract().profiles))


def stored_evidence(machine: str) -> tuple[StoredEvidence, ...]:
    """Return the newest evidence on a machine of each kernel, rule, sizes and number of ranks.

    Raises as :func:`stored_profile`; oldest first.
    """
    return tuple(StoredEvidence(tuple(row)) for row in _extract().evidence if row[0] == machine)


def stored_functions() -> list[tuple[str, Any]]:
    """Return what runs showed of functions, as paths and documents, in the order it was stored.

    Raises as :func:`stored_profile`.
    """
    return _extract().functions


def stored_messages() -> list[tuple[str, Any]]:
    """Return what runs showed of messages, as paths and documents, in the order it was stored.

    Raises as :func:`stored_profile`.
    """
    return _extract().messages


def _extract() -> Extract:
    path = store_path()
    state = state_of(path)
    if state is None:
        return NOTHING
    if _last and _last[0][:2] == (path, state):
        return _last[0][2]
    found = read(path, state)
    if found is None:
        from costdb.store.database import DamagedStoreError, renewed_extract, set_aside

        try:
            found = renewed_extract(path)
        except DamagedStoreError:
            set_aside(path)
            return NOTHING
        state = state_of(path) or []
    _last[:] = [(path, state, found)]
    return found
