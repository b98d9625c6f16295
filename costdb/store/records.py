"""Calibration records: what was measured under which circumstances, and what was fitted to it.

A record is identified by all of its circumstances, so measurements that differ in any of them
are never merged. Raw samples are only ever added.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any

from costdb.quantity import Provenance, Quantity
from costdb.store.database import transaction
from costdb.store.place import StoreError
from costdb.store.texts import from_text, to_text


@dataclass(frozen=True, slots=True)
class Circumstances:
    """All that a measurement depends on besides the sizes measured.

    Attributes
    ----------
    machine, library, library_version : str
        Where, and over which MPI or thread library.
    dtype : str
        Element type, in NumPy's short form (``"f8"``).
    ranks, nodes : int
        How many took part.
    operation : str
        What was measured, for example ``"message.column"``.
    pinning, stride : str
        How ranks were bound, and how the data lay.
    date : str
        ISO date of the measurement.
    code_version : str
        Version of the measuring code.
    """

    machine: str
    library: str
    library_version: str
    dtype: str
    ranks: int
    nodes: int
    operation: str
    pinning: str
    stride: str
    date: str
    code_version: str


@dataclass(frozen=True, slots=True)
class Beside:
    """What a sentinel took beside each sample of a visit.

    Attributes
    ----------
    threads : int
        On how many cores of a process it ran, the slowest counting.
    us : tuple of (float, float)
        For each sample the least and the greatest of what it took right before and right after,
        on any rank.
    """

    threads: int
    us: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """Raw repetitions at one point: sizes by name, times in microseconds in measured order.

    `beside` says what a sentinel took meanwhile; stores of older versions have none.
    """

    launch: int
    point: Mapping[str, float | str]
    microseconds: tuple[float, ...]
    beside: Beside | None = None


@dataclass(frozen=True, slots=True)
class Fit:
    """Coefficients fitted to a record.

    Attributes
    ----------
    model : str
        For example ``"lines.M1"``.
    coefficients : mapping of str to Quantity
        By name within the model.
    ranges : mapping of str to (float, float)
        Least and greatest value of each size that was measured.
    statistics : mapping of str to float
        Errors on held-out points, by name.
    residuals : tuple of float
        Relative residuals of the points fitted.
    """

    model: str
    coefficients: Mapping[str, Quantity]
    ranges: Mapping[str, tuple[float, float]]
    statistics: Mapping[str, float]
    residuals: tuple[float, ...]


_KEYS = tuple(field.name for field in fields(Circumstances))
_MATCH = " AND ".join(f"{key} = :{key}" for key in _KEYS)


def add_samples(
    connection: sqlite3.Connection, circumstances: Circumstances, samples: Iterable[Sample]
) -> int:
    """Add raw samples to the record of exactly these circumstances; return how many.

    They are on disk, all of them, when this returns.

    Raises
    ------
    StoreError
        A number is not finite.
    """
    rows = [
        (
            sample.launch,
            to_text(dict(sample.point)),
            to_text(list(sample.microseconds)),
            None if sample.beside is None else to_text(asdict(sample.beside)),
        )
        for sample in samples
    ]
    with transaction(connection):
        record = _record(connection, circumstances)
        connection.executemany(
            "INSERT INTO samples (record, launch, point, microseconds, beside) "
            "VALUES (?, ?, ?, ?, ?)",
            [(record, *row) for row in rows],
        )
    return len(rows)


def add_fit(connection: sqlite3.Connection, circumstances: Circumstances, fit: Fit) -> None:
    """Add a fit to the record of exactly these circumstances; earlier fits stay.

    Raises
    ------
    StoreError
        A number is not finite.
    """
    row = (
        fit.model,
        to_text({name: asdict(quantity) for name, quantity in fit.coefficients.items()}),
        to_text({name: list(ends) for name, ends in fit.ranges.items()}),
        to_text(dict(fit.statistics)),
        to_text(list(fit.residuals)),
        datetime.now(UTC).isoformat(timespec="seconds"),
    )
    with transaction(connection):
        record = _record(connection, circumstances)
        connection.execute(
            "INSERT INTO fits (record, model, coefficients, ranges, statistics, residuals, "
            "stored_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (record, *row),
        )


def samples_of(connection: sqlite3.Connection, circumstances: Circumstances) -> tuple[Sample, ...]:
    """Return the raw samples of exactly these circumstances, in the order they were added."""
    rows = connection.execute(
        f"SELECT launch, point, microseconds, {_beside(connection)} FROM samples "
        f"WHERE record = (SELECT id FROM records WHERE {_MATCH}) ORDER BY id",
        asdict(circumstances),
    )
    return tuple(
        Sample(
            launch,
            from_text(point),
            tuple(from_text(microseconds)),
            None if beside is None else beside_in(from_text(beside)),
        )
        for launch, point, microseconds, beside in rows
    )


def beside_samples(connection: sqlite3.Connection, machine: str, date: str) -> tuple[Beside, ...]:
    """Return what sentinels took beside all samples of a machine and date, in a fixed order."""
    rows = connection.execute(
        f"SELECT {_beside(connection)} AS found FROM samples WHERE found IS NOT NULL AND record IN "
        "(SELECT id FROM records WHERE machine = ? AND date = ?) ORDER BY id",
        (machine, date),
    )
    return tuple(beside_in(from_text(found)) for (found,) in rows)


def beside_in(stated: Mapping[str, Any]) -> Beside:
    """Return what `asdict` made of it, also after it was JSON."""
    return Beside(stated["threads"], tuple((low, high) for low, high in stated["us"]))


def fits_of(connection: sqlite3.Connection, circumstances: Circumstances) -> tuple[Fit, ...]:
    """Return the fits of exactly these circumstances, newest last."""
    rows = connection.execute(
        "SELECT model, coefficients, ranges, statistics, residuals FROM fits "
        f"WHERE record = (SELECT id FROM records WHERE {_MATCH}) ORDER BY id",
        asdict(circumstances),
    )
    return tuple(
        Fit(
            model,
            {name: _quantity(stated) for name, stated in from_text(coefficients).items()},
            {name: (low, high) for name, (low, high) in from_text(ranges).items()},
            from_text(statistics),
            tuple(from_text(residuals)),
        )
        for model, coefficients, ranges, statistics, residuals in rows
    )


def recorded(connection: sqlite3.Connection, **asked: str | int) -> tuple[Circumstances, ...]:
    """Return the circumstances of all records that agree with `asked`, in a fixed order.

    Raises
    ------
    StoreError
        `asked` names what no record has.
    """
    for key in asked:
        if key not in _KEYS:
            raise StoreError(f"records have no {key!r}, only {', '.join(_KEYS)}")
    condition = " AND ".join(f"{key} = :{key}" for key in asked) or "1"
    columns = ", ".join(_KEYS)
    rows = connection.execute(
        f"SELECT {columns} FROM records WHERE {condition} ORDER BY {columns}", asked
    )
    return tuple(Circumstances(*row) for row in rows)


def _record(connection: sqlite3.Connection, circumstances: Circumstances) -> int:
    values = asdict(circumstances)
    connection.execute(
        f"INSERT OR IGNORE INTO records ({', '.join(_KEYS)}) "
        f"VALUES ({', '.join(':' + key for key in _KEYS)})",
        values,
    )
    row = connection.execute(f"SELECT id FROM records WHERE {_MATCH}", values).fetchone()
    return int(row[0])


def _beside(connection: sqlite3.Connection) -> str:
    """Return the column, which a store of an older version that is only read does not have."""
    columns = connection.execute("SELECT name FROM pragma_table_info('samples')")
    return "beside" if ("beside",) in columns.fetchall() else "NULL"


def _quantity(stated: dict[str, Any]) -> Quantity:
    return Quantity(**{**stated, "provenance": Provenance(stated["provenance"])})
