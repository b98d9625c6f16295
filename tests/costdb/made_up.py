"""The heading of profiles that tests make up, and their quantities."""

from costdb.machines import Json

SOURCES: dict[str, Json] = dict.fromkeys(("test", "calibration", "system", "s"), "made up")
HEADING: dict[str, Json] = {
    **{"schema_version": 1, "name": "test", "title": "Test", "library": "none"},
    "sources": SOURCES,
}


def quantity(value: float, unit: str) -> Json:
    """Return a measured number as a profile states it."""
    return {"value": value, "unit": unit, "provenance": "measured", "source": "test"}
