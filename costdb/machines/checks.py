"""The checks made at every start: cheap, and enough to keep a wrong number out of a prediction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from costdb.machines.documents import Json, escaped, place_of, shown, to_float
from costdb.quantity import Provenance

# The unit that each number of a profile is read in.
#
# Models take a number as it stands, so one that is stated in another unit than its key says would
# be priced wrongly, and without a word. The rates of applications are not covered here: the model
# of phases reads several units and checks them itself.

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


PROFILE_SCHEMA_VERSION = 1

_DEEPEST_NESTING = 16
_LARGEST_NUMBER = 1e300

_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789._-")
_SECTIONS = (
    "hardware", "lines", "smp", "phases", "pgas", "python", "pickle", "arrays", "collectives",
    "launches",
)  # fmt: skip
_PROVENANCES = frozenset(provenance.value for provenance in Provenance)
_QUANTITY_KEYS = frozenset(
    ("value", "low", "high", "unit", "provenance", "source", "note", "fitted_to")
)


LINE_SIZE_EXPECTED = "expected a power of two from 8 to 4096"
_LINE_SIZES = frozenset(2.0**power for power in range(3, 13))


def is_line_size(size_bytes: float) -> bool:
    """Tell whether a cache line can be so large; counting lines takes as long as one is."""
    return size_bytes in _LINE_SIZES


def is_machine_name(name: str) -> bool:
    """Tell whether `name` is spelt as a machine's name: lower case, digits, ``.``, ``_``, ``-``."""
    return bool(name) and name[0].isalnum() and _NAME_CHARACTERS.issuperset(name)


def cheap_problems(document: Mapping[str, Json]) -> Iterator[str]:
    """Yield what no profile may have, as ``place: problem``, in order of the document.

    Covers what would put a wrong number into a prediction: versions, headings, numbers that
    are not finite, quantities without unit or origin, empty intervals, negative rates.
    """
    version = document.get("schema_version")
    if version is None:
        yield "/: schema_version is missing"
        return
    if version != PROFILE_SCHEMA_VERSION or isinstance(version, bool):
        yield f"/schema_version: expected {PROFILE_SCHEMA_VERSION}, got {shown(version)}"
        return
    for key in ("name", "title", "library"):
        text = document.get(key)
        if not isinstance(text, str) or not text:
            yield f"/{key}: expected a text"
    name = document.get("name")
    if isinstance(name, str) and name and not is_machine_name(name):
        yield f'/name: "{name}" is not a name (lower case letters, digits, ".", "_", "-")'
    sources = document.get("sources", {})
    if not isinstance(sources, dict):
        yield "/sources: expected an object"
        sources = {}
    for key, citation in sources.items():
        if not isinstance(citation, str) or not citation:
            yield f"{place_of(('sources', key))}: expected a text"
    notes = document.get("notes", [])
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        yield "/notes: expected a list of texts"
    for key in _SECTIONS:
        if not isinstance(document.get(key, {}), dict):
            yield f"/{key}: expected an object"
    yield from _value_problems(document, "", sources, 0)


def _value_problems(
    value: object, place: str, sources: Mapping[str, Json], depth: int
) -> Iterator[str]:
    if depth > _DEEPEST_NESTING:
        yield f"{place}: nested too deeply"
    elif isinstance(value, dict):
        if "value" in value:
            yield from _quantity_problems(value, place, sources)
        else:
            for key, inner in value.items():
                if not isinstance(inner, str):
                    yield from _value_problems(inner, f"{place}/{escaped(key)}", sources, depth + 1)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _value_problems(inner, f"{place}/{index}", sources, depth + 1)
    elif isinstance(value, int | float) and not -_LARGEST_NUMBER < value < _LARGEST_NUMBER:
        yield f"{place}: expected a finite number, got {shown(value)}"


def _quantity_problems(
    leaf: Mapping[str, Json], place: str, sources: Mapping[str, Json]
) -> Iterator[str]:
    if not _QUANTITY_KEYS.issuperset(leaf):
        unknown = min(set(leaf) - _QUANTITY_KEYS)
        yield f'{place}: a quantity has no "{unknown}"'
    for key in ("value", "low", "high"):
        number = leaf.get(key, 0)
        if isinstance(number, bool) or not isinstance(number, int | float):
            yield f"{place}/{key}: expected a number"
            return
        if not -_LARGEST_NUMBER < number < _LARGEST_NUMBER:
            yield f"{place}/{key}: expected a finite number, got {shown(number)}"
            return
    unit = leaf.get("unit")
    if not isinstance(unit, str) or not unit:
        yield f"{place}/unit: expected a text"
        return
    wrong_unit = unit_problem(place, unit)
    if wrong_unit is not None:
        yield f"{place}/unit: {wrong_unit}"
    value = to_float(leaf["value"])
    low, high = to_float(leaf.get("low", value)), to_float(leaf.get("high", value))
    if not low <= value <= high:
        yield f"{place}: needs low <= value <= high, got {low:g}, {value:g}, {high:g}"
    if low < 0 and not may_be_negative(place, unit):
        yield f"{place}: {unit} must not be negative, got {min(value, low):g}"
    provenance = leaf.get("provenance")
    if not isinstance(provenance, str) or provenance not in _PROVENANCES:
        yield f"{place}/provenance: expected one of {', '.join(sorted(_PROVENANCES))}"
    source = leaf.get("source")
    if not isinstance(source, str) or source not in sources:
        yield f"{place}/source: {shown(source)} is not among the sources"
    fitted_to = leaf.get("fitted_to", "")
    if not isinstance(fitted_to, str):
        yield f"{place}/fitted_to: expected a text"
    elif fitted_to and provenance != Provenance.ESTIMATED.value:
        yield f"{place}/provenance: a number that was fitted to a figure is estimated"
    if not isinstance(leaf.get("note", ""), str):
        yield f"{place}/note: expected a text"


def may_be_negative(place: str, unit: str) -> bool:
    """Tell whether a quantity may be below 0: intercepts and second-order terms of regressions.

    Published regressions have negative intercepts ``L`` (they hold for large sizes only), and
    curvature has either sign; a rate or a latency has not.
    """
    key = place.rpartition("/")[2]
    return key == "L" or key.startswith(("intercept", "slack")) or "^" in unit or "*" in unit
