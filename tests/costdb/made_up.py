"""The heading of profiles that tests make up, and their quantities."""

from typing import Any

from costdb.machines import Json

SOURCES: dict[str, Json] = dict.fromkeys(("test", "calibration", "system", "s"), "made up")
HEADING: dict[str, Json] = {
    **{"schema_version": 1, "name": "test", "title": "Test", "library": "none"},
    "sources": SOURCES,
}


def quantity(value: float, unit: str) -> Json:
    """Return a measured number as a profile states it."""
    return {"value": value, "unit": unit, "provenance": "measured", "source": "test"}


def quantities(stated: dict[str, Any], unit: str = "us") -> dict[str, Any]:
    """Return measured numbers, and those in tables of them, as a profile states them."""
    leaf = {"unit": unit, "provenance": "measured", "source": "calibration"}
    return {
        key: quantities(value, unit)
        if isinstance(value, dict)
        else {"value": value, **leaf, "unit": "1" if key.endswith("residual") else unit}
        for key, value in stated.items()
    }
