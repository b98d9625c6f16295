"""Machines: profiles as JSON documents, read with suspicion, and their numbers as quantities.

Built-in profiles come with :mod:`machine_profiles`, a user's own from the store or from a path.
Loading makes only the cheap checks that keep a wrong number out of a prediction;
:mod:`costdb.documents` holds the full ones. For whatever is wrong there is one line, with file
and place.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path

import machine_profiles
from costdb.quantity import Provenance, Quantity
from costdb.records import bounded, dataclass
from costdb.store.evidence import stored_profile, stored_profile_names

# Larger documents are not profiles; refusing early keeps hostile ones cheap.
_LARGEST_DOCUMENT_BYTES = 4_000_000

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class MachineError(ValueError):
    """A profile that cannot be used; the message is one line with file and JSON place."""


class UnknownMachineError(MachineError):
    """No machine has this name; the message offers the nearest names."""


def read_document(path: Path) -> dict[str, Json]:
    """Read a JSON object from a file.

    Raises
    ------
    MachineError
        The file cannot be read, is too large, or is not a JSON object.
    """
    return parse_document(read_text(path), str(path))


def read_text(path: Path) -> bytes:
    """Return the text of a document in a file, one that is too large not to its end.

    Raises
    ------
    MachineError
        The file cannot be read.
    """
    said = f"cannot read machine profile {path}"
    return bounded(path, _LARGEST_DOCUMENT_BYTES, lambda why: MachineError(f"{said}: {why}"))


def parse_document(text: bytes | str, where: str) -> dict[str, Json]:
    """Parse a JSON object; `where` names it in errors.

    Raises
    ------
    MachineError
        Not JSON, not an object, a key given twice, nested too deeply or too large.
    """
    if len(text) > _LARGEST_DOCUMENT_BYTES:
        raise MachineError(f"{where}: larger than {_LARGEST_DOCUMENT_BYTES} bytes")
    try:
        document: Json = json.loads(text, object_pairs_hook=_without_duplicates)
    except json.JSONDecodeError as error:
        raise MachineError(
            f"{where}:{error.lineno}:{error.colno}: not JSON: {error.msg}"
        ) from error
    except UnicodeDecodeError as error:
        raise MachineError(f"{where}: not JSON: not UTF-8 text") from error
    except RecursionError as error:
        raise MachineError(f"{where}: nested too deeply") from error
    except ValueError as error:
        raise MachineError(f"{where}: {error}") from error
    if not isinstance(document, dict):
        raise MachineError(f"{where}: /: expected an object")
    return document


def _without_duplicates(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f'the key "{twice}" is given twice in one object')
    return found


def place_of(path: Iterable[str | int]) -> str:
    """Return the JSON pointer of a path of keys and indices."""
    return "".join(f"/{escaped(str(key))}" for key in path)


def parts_of(value: Json, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Json]]:
    """Yield a document and all parts of it with their places."""
    yield path, value
    for key, part in inside(value):
        yield from parts_of(part, (*path, str(key)))


def inside(value: Json) -> Iterable[tuple[object, Json]]:
    """Return the parts of an object or a list; quantities and lists of plain values have none."""
    if isinstance(value, dict) and "value" not in value:
        return value.items()
    if isinstance(value, list) and any(isinstance(one, dict | list) for one in value):
        return enumerate(value)
    return ()


def escaped(key: str) -> str:
    """Return a key as it is spelt within a JSON pointer on one line."""
    return key.replace("~", "~0").replace("/", "~1").replace("\n", "\\n")


def shown(value: object) -> str:
    """Return a value as short JSON on one line, for messages."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 40 else text[:37] + "..."


def to_float(value: Json) -> float:
    """Return a JSON number that was checked to be one."""
    assert isinstance(value, int | float)
    return float(value)


# A measured number, as a profile states it.

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


# The checks made at every start: cheap, and enough to keep a wrong number out of a prediction.

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


# A machine: a checked profile, and its numbers as quantities.


BUILT_IN = "built-in"
"""Where profiles that come with the package say that they are from."""

LEFT_OUT = ": left out: "
"""What stands in a note of a calibrated profile between a section that it lacks and the reason."""

RESIDUAL = "residual"
"""Key of what a calibration left unexplained of one class of work, independent of all others.

Where a class has several, the others' keys end with it.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Machine:
    """A machine profile.

    Attributes
    ----------
    name, title : str
        What ``--machine`` takes, and what a report shows.
    library : str
        Communication library and its generation; coefficients hold for that one only.
    sources : mapping of str to str
        Citations by the identifiers that quantities refer to.
    notes : tuple of str
        Remarks on the whole profile.
    document : mapping
        The profile as read.
    origin : str
        Path of the profile, ``"built-in"``, or the store that holds it.
    """

    name: str
    title: str
    library: str
    sources: Mapping[str, str]
    notes: tuple[str, ...]
    document: Mapping[str, Json]
    origin: str

    @property
    def may_be_here(self) -> bool:
        """Whether what runs here may tell of it: the machines of the studies are no more."""
        return self.origin != BUILT_IN

    @property
    def is_calibrated(self) -> bool:
        """Whether a calibration by this project made the profile."""
        return any(source.startswith(SOURCE) for source in self.sources)

    def section(self, *path: str) -> Mapping[str, Json]:
        """Return the object at `path`; an empty one where the profile says nothing.

        Raises
        ------
        MachineError
            Something other than an object is there.
        """
        found = self._at(path)
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise self.refuse("expected an object", *path)
        return found

    def quantity(self, *path: str | int) -> Quantity | None:
        """Return the quantity at `path`, its source as a citation; None where there is none.

        A path may go through lists, by number.

        Raises
        ------
        MachineError
            Something other than a quantity is there.
        """
        found = self._at(path)
        if found is None:
            return None
        if not isinstance(found, dict) or "value" not in found:
            raise self.refuse("expected a quantity", *path)
        return quantity_of(found, self.sources, independent=is_residual(path[-1]))

    @property
    def cache_line_bytes(self) -> int:
        """Bytes of a cache line as the lines model counts them.

        Raises
        ------
        MachineError
            The profile does not state one, or not a power of two that is the size of a line.
        """
        for section in ("lines", "hardware"):
            stated = self.quantity(section, "cache_line_bytes")
            if stated is not None:
                if not is_line_size(stated.value):
                    problem = f"{LINE_SIZE_EXPECTED}, got {stated.value:g}"
                    raise self.refuse(problem, section, "cache_line_bytes")
                return int(stated.value)
        raise MachineError(f'machine "{self.name}" states no cache_line_bytes')

    def refuse(self, problem: str, *path: str | int) -> MachineError:
        """Return the complaint about what is at `path`, to be raised."""
        return MachineError(f"{self.origin}: {place_of(path)}: {problem}")

    def _at(self, path: Sequence[str | int]) -> Json:
        found: Json = dict(self.document)
        for key in path:
            if isinstance(found, dict) and isinstance(key, str):
                found = found.get(key)
            elif isinstance(found, list) and isinstance(key, int) and key < len(found):
                found = found[key]
            else:
                return None
        return found


def machine_of(document: dict[str, Json], origin: str) -> Machine:
    """Return the machine that a document describes, after the cheap checks.

    Raises
    ------
    MachineError
        With the place of the first problem.
    """
    for problem in cheap_problems(document):
        raise MachineError(f"{origin}: {problem}")
    sources = document.get("sources", {})
    notes = document.get("notes", [])
    return Machine(
        name=str(document["name"]),
        title=str(document["title"]),
        library=str(document["library"]),
        sources={key: str(text) for key, text in sources.items()}
        if isinstance(sources, dict)
        else {},
        notes=tuple(map(str, notes)) if isinstance(notes, list) else (),
        document=document,
        origin=origin,
    )


def is_residual(key: str | int) -> bool:
    """Return whether a key of a profile is that of a residual."""
    return isinstance(key, str) and (key == RESIDUAL or key.endswith(f"_{RESIDUAL}"))


def quantity_of(
    leaf: Mapping[str, Json], sources: Mapping[str, str], *, independent: bool = False
) -> Quantity:
    """Return the quantity that a checked leaf of a profile states."""
    value = leaf["value"]
    source = str(leaf["source"])
    return Quantity(
        value=to_float(value),
        low=to_float(leaf.get("low", value)),
        high=to_float(leaf.get("high", value)),
        unit=str(leaf["unit"]),
        provenance=Provenance(str(leaf["provenance"])),
        source=sources.get(source, source),
        fitted_to=str(leaf.get("fitted_to", "")),
        independent=independent,
    )


# Machines by name: those that come with the package, the user's own, and files.

# Machines whose profiles come with the package.

_BUILT_INS = Path(str(machine_profiles.__file__)).parent


@cache
def built_in_machine(name: str) -> Machine:
    """Return a machine of `built_in_names`."""
    text = (_BUILT_INS / f"{name}.json").read_bytes()
    machine = machine_of(parse_document(text, f"{BUILT_IN} {name}"), BUILT_IN)
    if machine.name != name:
        raise MachineError(f'{BUILT_IN} {name}: /name: expected "{name}", got "{machine.name}"')
    return machine


@cache
def built_in_names() -> tuple[str, ...]:
    """Return the names of the profiles that come with the package, sorted."""
    names = (path.name for path in _BUILT_INS.glob("*.json"))
    return tuple(
        sorted(name.removesuffix(".json") for name in names if not name.endswith(".schema.json"))
    )


CALIBRATED = "here"
"""The machine that a calibration makes unless told otherwise, and that is meant where none is."""

SHIPPED = "node2026"
"""The machine of today that comes with the package, meant where none is named nor calibrated."""


def default_machine() -> str:
    """Return the machine meant where none is named: the calibrated one, once there is one.

    Raises
    ------
    StoreError
        The store cannot be read, or was written by a newer version.
    """
    return SHIPPED if stored_profile(CALIBRATED) is None else CALIBRATED


def load_machine(name_or_path: str) -> Machine:
    """Return a machine by name (built-in, then the user's own) or by a path ending in .json.

    Names are in lower case, however they are asked for.

    Raises
    ------
    UnknownMachineError
        No machine has that name.
    MachineError
        The profile cannot be read or is not well formed.
    """
    if name_or_path.endswith(".json"):
        return _machine(read_text(Path(name_or_path)), name_or_path)
    name = name_or_path.lower()
    if name in built_in_names():
        return built_in_machine(name)
    stored = stored_profile(name) if is_machine_name(name) else None
    if stored is not None:
        return _machine(*stored)
    raise UnknownMachineError(_unknown(name_or_path))


def machine_names() -> tuple[str, ...]:
    """Return the names of all machines, built-in and stored, sorted."""
    return tuple(sorted({*built_in_names(), *stored_profile_names()}))


@lru_cache(maxsize=8)
def _machine(text: bytes | str, origin: str) -> Machine:
    """Return the machine of a profile's text, the same one again while that is the same.

    Prices are remembered by machine: an editor's server asks for it at every edit.
    """
    return machine_of(parse_document(text, origin), origin)


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    if name == CALIBRATED:
        return (
            f'"{name}" is this machine, and it is not calibrated yet: run "advise calibrate",'
            " or name another one"
        )
    nearest = get_close_matches(name.lower(), machine_names(), n=3, cutoff=0.5)
    verb = "are" if len(nearest) > 1 else "is"
    hint = f": nearest {verb} {', '.join(nearest)}" if nearest else ""
    asked = json.dumps(name, ensure_ascii=False)
    return f'unknown machine {asked}{hint}; "advise machine list" shows all'
