"""The heading of profiles that tests make up, and their quantities."""

from typing import Any

import pytest

from costdb.estimate import Missing, Priced
from costdb.expr import evaluate, free_symbols
from costdb.machines import Json

SOURCES: dict[str, Json] = dict.fromkeys(("test", "calibration", "system", "s"), "made up")
HEADING: dict[str, Json] = {
    **{"schema_version": 1, "name": "test", "title": "Test", "library": "none"},
    "sources": SOURCES,
}


def quantity(value: float, unit: str, spread: float = 0.0) -> Json:
    """Return a measured number as a profile states it."""
    ends: dict[str, Json] = {"low": value * (1 - spread), "high": value * (1 + spread)}
    return {"value": value, **ends, "unit": unit, "provenance": "measured", "source": "test"}


def quantities(stated: dict[str, Any], unit: str = "us") -> dict[str, Any]:
    """Return measured numbers, and those in tables of them, as a profile states them."""
    leaf = {"unit": unit, "provenance": "measured", "source": "calibration"}
    return {
        key: quantities(value, unit)
        if isinstance(value, dict)
        else {"value": value, **leaf, "unit": "1" if key.endswith("residual") else unit}
        for key, value in stated.items()
    }


def microseconds(priced: Priced | Missing, **sizes: float) -> float:
    """Return the middle of a price, which is the sum of its terms and over nothing unknown."""
    assert isinstance(priced, Priced), priced
    values = {**{symbol: q.value for symbol, q in priced.coefficients.items()}, **sizes}
    assert free_symbols(priced.microseconds) <= values.keys()
    total = float(evaluate(priced.microseconds, values))
    assert sum(float(evaluate(t.microseconds, values)) for t in priced.terms) == pytest.approx(
        total
    )
    return total
