"""Evidence: predictions that were held against measurements, with all they depended on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from costdb.records import dataclass
from costdb.store.extract import (
    NOTHING,
    Extract,
    State,
    from_text,
    read,
    state_of,
    store_path,
    to_text,
)

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from costdb.estimate import Ratio


@dataclass(frozen=True, slots=True)
class Evidence:
    """One verified finding.

    Attributes
    ----------
    machine, kernel, code : str
        Where, which kernel, and the code of the finding.
    bindings : mapping of str to float
        Sizes.
    predicted : Ratio or None
        Speed-up, before over after; None where a part had no price.
    measured : Ratio
    circumstances : mapping of str to str
        Library, ``ranks``, ``date``, versions, name of the ``file``, ``title`` of the suggestion:
        whatever the measurement depended on.
    """

    machine: str
    kernel: str
    code: str
    bindings: Mapping[str, float]
    predicted: Ratio | None
    measured: Ratio
    circumstances: Mapping[str, str]


def add_evidence(connection: sqlite3.Connection, evidence: Evidence) -> None:
    """Add one piece of evidence; it is on disk when this returns.

    Raises
    ------
    StoreError
        A number is not finite.
    """
    # a lint run reads evidence, from an extract, and has no use for a database
    from costdb.store.database import insert, now, transaction

    def ends(ratio: Ratio | None) -> str:
        return to_text(None if ratio is None else [ratio.low, ratio.mid, ratio.high])

    row = {
        "machine": evidence.machine,
        "kernel": evidence.kernel,
        "code": evidence.code,
        "bindings": to_text(dict(evidence.bindings)),
        "predicted": ends(evidence.predicted),
        "measured": ends(evidence.measured),
        "circumstances": to_text(dict(evidence.circumstances)),
        "stored_at": now(),
    }
    with transaction(connection):
        insert(connection, "evidence", row)


def evidence_in(row: Sequence[str]) -> Evidence:
    """Return the evidence of a row: the columns of the table but its number and time.

    Raises
    ------
    StoreError
        A value was altered since.
    """
    # who only looks which there is has no use for the algebra of prices
    from costdb.estimate import Ratio

    machine, kernel, code, bindings, predicted, measured, circumstances = row
    return Evidence(
        machine,
        kernel,
        code,
        from_text(bindings),
        None if (ends := from_text(predicted)) is None else Ratio(*ends),
        Ratio(*from_text(measured)),
        from_text(circumstances),
    )


# Read-only look-ups by name; where there is no store they create none.
#
# They read the extract beside the store, so that a lint run opens no database.


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
