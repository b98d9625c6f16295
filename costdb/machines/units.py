"""The unit that each number of a profile is read in.

Models take a number as it stands, so one that is stated in another unit than its key says would be
priced wrongly, and without a word. The rates of applications are not covered here: the model of
phases reads several units and checks them itself.
"""

from __future__ import annotations

from functools import cache

_TIME = "us"

# What the ends of keys promise; `_us` is a time, whatever it is of.
_BY_ENDING = {
    "_us_per_byte": "us/byte",
    "_us_per_line": "us/line",
    "_us_per_operation": "us/operation",
    "_us": _TIME,
    "_bytes": "byte",
    "_mb_per_s": "MB/s",
    "_mflop_per_s": "MFlop/s",
    "_mhz": "MHz",
    "_elements": "element",
    "residual": "1",
}
_BY_KEY = {"us_per_byte": "us/byte"}
# A table names the unit of what is in it, by whatever key.
_BY_TABLE = {("arrays", "levels"): "byte", ("pgas", "rates"): "double words/s"}


def expected_unit(place: str) -> str | None:
    """Return the unit of a number at a place of a profile, where there is but one.

    ``us`` stands for a time of any kind: ``us``, or ``us/`` and what it is of.

    Parameters
    ----------
    place : str
        A JSON pointer, such as ``/lines/message/alpha_us``.
    """
    section, *inner = place.split("/")[1:] or [""]
    if section == "smp" and inner:
        coefficient = inner[-1]
        if coefficient == "L":
            return _TIME
        if coefficient.startswith(("gh", "gM")):
            return "us/element"
    if section == "phases" and inner[:1] == ["applications"]:
        return None
    for key in reversed(inner):
        if (section, key) in _BY_TABLE:
            return _BY_TABLE[section, key]
        unit = _promised_by(key)
        if unit is not None:
            return unit
    return None


@cache
def _promised_by(key: str) -> str | None:
    """Remember keys: a calibrated profile has thousands of numbers and some dozens of keys."""
    if key in _BY_KEY:
        return _BY_KEY[key]
    return next((unit for ending, unit in _BY_ENDING.items() if key.endswith(ending)), None)


def unit_problem(place: str, unit: str) -> str | None:
    """Return what is wrong with the unit of a number at a place, in words, if anything is."""
    expected = expected_unit(place)
    if expected is None or unit == expected:
        return None
    if expected == _TIME:
        if unit.startswith(f"{_TIME}/"):
            return None
        return f'expected {_TIME}, alone or for each of something ({_TIME}/line), got "{unit}"'
    return f'expected {expected}, got "{unit}"'
