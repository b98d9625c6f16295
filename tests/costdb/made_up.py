"""The heading of profiles that tests make up, and their quantities."""

import math
from collections.abc import Sequence
from typing import Any

import pytest

from costdb.evaluate import Missing, Priced
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


MESSAGE: dict[str, Json] = {
    "alpha_us": quantity(10, "us", 0.1),
    "beta_us_per_byte": quantity(0.01, "us/byte"),
    "gamma_us_per_line": quantity(0.5, "us/line"),
}
LOCAL: dict[str, Json] = {
    "phi_us_per_operation": quantity(0.003, "us/operation"),
    "access_us": quantity(0.002, "us/access"),
    "line_us": quantity(0.1, "us/line"),
}
"""Of ``lines``: messages, and what a rank does by itself."""

Grades = Sequence[tuple[float | None, float]]
"""Rates of bytes, each up to a size."""


def graded(grades: Grades, key: str = "us_per_byte", unit: str = "us/byte") -> Json:
    """Return grades as a profile states them."""
    return [{"max_bytes": limit, key: quantity(rate, unit)} for limit, rate in grades]


def by_grade(size: float, grades: Grades) -> float:
    """Return what a size takes, grade by grade."""
    time, above = 0.0, 0.0
    for limit, rate in grades:
        most = size if limit is None else min(size, limit)
        time += rate * max(0.0, most - above)
        above = math.inf if limit is None else limit
    return time


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
