"""What runs of programs showed of the files that are checked, from the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from os import path as paths
from typing import TYPE_CHECKING

from costdb.store.place import StoreError, store_path

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.observed import Seen

FUNCTION, MESSAGE = "function", "message"
"""Kinds of observations."""

_SIDECAR = "-wal"


def report_nowhere(line: str) -> None:
    """Take a line about the store that is not worth telling."""


@dataclass(slots=True)
class Observations:
    """Looks up what runs showed of files; the store is read again once it changed.

    Attributes
    ----------
    report : callable
        Told in one line why the store cannot be used; advice then goes without it.
    """

    report: Callable[[str], None] = report_nowhere
    _state: object = None
    _known: Mapping[str, tuple[Seen, ...]] = field(default_factory=dict)

    def of_file(self, path: str) -> tuple[Seen, ...]:
        """Return what is known of the functions of a file, in the order it was stored."""
        state = _state_of_store()
        if state != self._state:
            self._state = state
            self._known = {} if state is None else self._read()
        return self._known.get(paths.realpath(path), ()) if self._known else ()

    def _read(self) -> Mapping[str, tuple[Seen, ...]]:
        from advisor.observed import from_document
        from costdb.store.database import reading
        from costdb.store.observations import observations

        found: dict[str, list[Seen]] = {}
        try:
            with reading(store_path()) as connection:
                for one in observations(connection, FUNCTION):
                    found.setdefault(one.path, []).append(from_document(one.document))
        except (StoreError, KeyError, TypeError, ValueError) as error:
            self.report(f"advise: observed sizes are left out: {error}")
            return {}
        return {path: tuple(seen) for path, seen in found.items()}


def _state_of_store() -> object:
    """Return something that changes with the store; None where there is none."""
    file = store_path()
    found = tuple(map(_state_of, (file, file.with_name(file.name + _SIDECAR))))
    return found if found[0] else None


def _state_of(file: Path) -> tuple[int, ...]:
    try:
        status = file.stat()
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_size, status.st_ino
