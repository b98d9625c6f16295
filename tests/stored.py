"""What a store holds, read back in full."""

from __future__ import annotations

import sqlite3

from costdb.store.evidence import Evidence, evidence_in


def evidence_on(connection: sqlite3.Connection, machine: str) -> tuple[Evidence, ...]:
    rows = connection.execute(
        "SELECT machine, kernel, code, bindings, predicted, measured, circumstances "
        "FROM evidence WHERE machine = ? ORDER BY id",
        (machine,),
    )
    return tuple(map(evidence_in, rows))
