"""A measured number, as a profile states it."""

from __future__ import annotations

from costdb.machines.documents import Json

SOURCE = "calibration"
"""The name under which a profile cites the calibration that made it."""


def measured(
    value: float,
    unit: str,
    low: float | None = None,
    high: float | None = None,
    note: str | None = None,
) -> dict[str, Json]:
    """Return a measured quantity as a profile states it."""
    stated: dict[str, Json] = {"value": _rounded(value), "unit": unit}
    if low is not None and high is not None:
        stated |= {
            "low": min(_rounded(low), _rounded(value)),
            "high": max(_rounded(high), _rounded(value)),
        }
    stated |= {"provenance": "measured", "source": SOURCE}
    return stated if note is None else {**stated, "note": note}


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
