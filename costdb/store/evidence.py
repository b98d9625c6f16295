"""Evidence: predictions that were held against measurements, with all they depended on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from costdb.records import dataclass
from costdb.store.place import State, from_text, state_of, store_path, to_text

if TYPE_CHECKING:
    import sqlite3

    from costdb.evaluate import Ratio


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
    # without a store nothing is read, and nobody needs the database
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


def evidence_in(row: Row) -> Evidence:
    """Return the evidence of a row: the columns of the table but its number and time.

    Raises
    ------
    StoreError
        A value was altered since.
    """
    # who only looks which there is has no use for the algebra of prices
    from costdb.evaluate import Ratio

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


# Read-only look-ups; where there is no store they create none, and open no database.


Row: TypeAlias = tuple[str, ...]
"""Evidence as it is stored, for :func:`evidence_in`: whoever only looks for that of a kernel and a
rule, the second and third column, need not read its numbers."""


@dataclass(frozen=True, slots=True)
class _Held:
    """What is looked up in the store, at one state of it.

    Attributes
    ----------
    profiles : mapping of str to str
        Documents as they are stored, by name.
    evidence : list
        Rows of the table, without their numbers, oldest first.
    observations : list of (kind, path, document)
        What runs showed of functions and messages, in the order in which it was stored.
    """

    profiles: Mapping[str, str]
    evidence: list[Row]
    observations: list[tuple[str, str, Any]]


_NOTHING = _Held({}, [], [])
# The last one used, by path and state: a run asks more than once, a server at every edit.
_last: list[tuple[Path, State, _Held]] = []


def stored_profile(name: str) -> tuple[str, str] | None:
    """Return an imported profile's document as text, and where it is kept; or None.

    Raises
    ------
    StoreError
        The store cannot be read, or was written by a newer version.
    """
    text = _held().profiles.get(name)
    return None if text is None else (text, f"{store_path()}: {name}")


def stored_profile_names() -> tuple[str, ...]:
    """Return the names of all imported profiles, sorted; raises as :func:`stored_profile`."""
    return tuple(sorted(_held().profiles))


def stored_evidence(machine: str) -> tuple[Row, ...]:
    """Return the newest evidence on a machine of each kernel, rule, sizes and number of ranks.

    Raises as :func:`stored_profile`; oldest first.
    """
    return tuple(row for row in _held().evidence if row[0] == machine)


def stored_observations() -> list[tuple[str, str, Any]]:
    """Return what runs showed, as kinds, paths and documents, in the order it was stored.

    Raises as :func:`stored_profile`.
    """
    return _held().observations


def _held() -> _Held:
    path = store_path()
    state = state_of(path)
    if state is None:
        return _NOTHING
    if _last and _last[0][:2] == (path, state):
        return _last[0][2]
    from costdb.store.database import reading

    with reading(path) as connection:
        found = _looked_up(connection)
    _last[:] = [(path, state, found)]
    return found


def _looked_up(connection: sqlite3.Connection) -> _Held:
    profiles = connection.execute("SELECT name, document FROM profiles ORDER BY name")
    evidence = connection.execute(
        "SELECT machine, kernel, code, bindings, predicted, measured, circumstances "
        "FROM evidence ORDER BY id"
    )
    seen = connection.execute("SELECT kind, path, document FROM observations ORDER BY id")
    observations = [(kind, path, from_text(document)) for kind, path, document in seen]
    return _Held(dict(profiles.fetchall()), _newest(evidence), observations)


def _newest(rows: Iterable[Row]) -> list[Row]:
    """Return the last row of each machine, kernel, rule, sizes, and of what tells runs apart."""
    found: dict[object, Row] = {}
    for row in rows:
        circumstances = from_text(row[-1])
        key = (*row[:4], *(circumstances.get(name) for name in ("ranks", "file", "title")))
        found.pop(key, None)
        found[key] = row
    return list(found.values())
