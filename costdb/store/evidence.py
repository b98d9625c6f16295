"""Evidence: predictions that were held against measurements, with all they depended on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from costdb.estimate import Ratio
from costdb.store.texts import from_text, to_text

if TYPE_CHECKING:
    import sqlite3


@dataclass(frozen=True, slots=True)
class Evidence:
    """One verified finding.

    Attributes
    ----------
    machine, kernel, code : str
        Where, which kernel, and the code of the finding.
    bindings : mapping of str to float
        Sizes.
    predicted, measured : Ratio
        Speed-up, before over after.
    circumstances : mapping of str to str
        Library, ``ranks``, ``date``, versions, name of the ``file``, ``title`` of the suggestion:
        whatever the measurement depended on.
    """

    machine: str
    kernel: str
    code: str
    bindings: Mapping[str, float]
    predicted: Ratio
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
    from datetime import UTC, datetime

    from costdb.store.database import transaction

    row = (
        evidence.machine,
        evidence.kernel,
        evidence.code,
        to_text(dict(evidence.bindings)),
        _ratio_text(evidence.predicted),
        _ratio_text(evidence.measured),
        to_text(dict(evidence.circumstances)),
        datetime.now(UTC).isoformat(timespec="seconds"),
    )
    with transaction(connection):
        connection.execute(
            "INSERT INTO evidence (machine, kernel, code, bindings, predicted, measured, "
            "circumstances, stored_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            row,
        )


def evidence_on(connection: sqlite3.Connection, machine: str) -> tuple[Evidence, ...]:
    """Return all evidence gathered on a machine, oldest first."""
    rows = connection.execute(
        "SELECT machine, kernel, code, bindings, predicted, measured, circumstances "
        "FROM evidence WHERE machine = ? ORDER BY id",
        (machine,),
    )
    return tuple(map(evidence_in, rows))


def evidence_in(row: Sequence[str]) -> Evidence:
    """Return the evidence of a row: the columns of the table but its number and time.

    Raises
    ------
    StoreError
        A value was altered since.
    """
    machine, kernel, code, bindings, predicted, measured, circumstances = row
    return Evidence(
        machine,
        kernel,
        code,
        from_text(bindings),
        Ratio(*from_text(predicted)),
        Ratio(*from_text(measured)),
        from_text(circumstances),
    )


def _ratio_text(ratio: Ratio) -> str:
    return to_text([ratio.low, ratio.mid, ratio.high])
