"""The full check of a profile: its JSON Schema, and what physics allows.

It is made when a profile is imported, validated, or written by a calibration. Every start makes
only the cheap checks of :mod:`costdb.machines`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from costdb.expr import ExprError, parse
from costdb.machines import (
    LINE_SIZE_EXPECTED,
    Json,
    Machine,
    MachineError,
    built_in_names,
    cheap_problems,
    is_line_size,
    machine_of,
    place_of,
    read_document,
)
from costdb.store.database import now, transaction, writing
from costdb.store.place import store_path

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError


_LONGEST_MESSAGE = 200

# Least and greatest plausible value by unit, generous by orders of magnitude beyond any machine:
# they catch a wrong unit or a lost exponent, not an unusual machine.
_PLAUSIBLE: Mapping[str, tuple[float, float]] = {
    "us": (0.0, 1e9),
    "us/byte": (1e-7, 1e3),
    "us/line": (0.0, 1e4),
    "us/access": (0.0, 1e4),
    "us/operation": (0.0, 1e4),
    "us/element": (0.0, 1e6),
    "MB/s": (1e-6, 1e7),
    "MByte/s": (1e-6, 1e7),
    "GB/s": (1e-9, 1e4),
    "MFlop/s": (1e-6, 1e10),
    "MHz": (1e-3, 1e5),
    "byte": (0.0, 1e15),
}
_POSITIVE_KEYS = frozenset(("alpha_us", "barrier_us", "clock_mhz"))


def check_profile(document: object, where: str) -> list[str]:
    """Return all that is wrong with a profile, each in one line with file and JSON place.

    Parameters
    ----------
    document : object
        As parsed from JSON.
    where : str
        File or other origin, shown first on each line.

    Returns
    -------
    list of str
        Empty when the profile is sound.
    """
    if not isinstance(document, dict):
        return [f"{where}: /: expected an object"]
    problems = list(cheap_problems(document))
    if not any(problem.endswith("nested too deeply") for problem in problems):
        problems += _not_said_yet(_schema_problems(document), problems)
    if not problems:
        for path, part in _parts(document):
            if isinstance(part, dict) and "value" in part:
                problems += _quantity_problems(part, path)
            elif isinstance(part, list) and any("max_bytes" in _object(item) for item in part):
                problems += _grade_problems(part, place_of(path))
        problems += _section_problems(document)
    return [f"{where}: {_one_line(problem)}" for problem in problems]


def _schema_problems(document: dict[str, Json]) -> Iterator[str]:
    errors = sorted(_validator().iter_errors(document), key=lambda error: str(error.json_path))
    for error in errors:
        narrowed = _narrowed(error)
        yield f"{place_of(narrowed.absolute_path) or '/'}: {narrowed.message}"


@cache
def _validator() -> Draft202012Validator:
    from importlib.resources import files

    from jsonschema import Draft202012Validator

    text = files("machine_profiles").joinpath("profile.schema.json").read_text("utf-8")
    return Draft202012Validator(json.loads(text))


def _narrowed(error: ValidationError) -> ValidationError:
    from jsonschema.exceptions import best_match

    best: ValidationError | None = best_match([error])
    return error if best is None else best


def _not_said_yet(found: Iterator[str], known: list[str]) -> list[str]:
    places = {problem.split(": ", 1)[0] for problem in known}
    return [problem for problem in found if problem.split(": ", 1)[0] not in places]


def _parts(value: Json, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Json]]:
    """Yield all objects and lists of a document with their places, quantities undivided."""
    yield path, value
    inner: Iterable[tuple[object, Json]] = ()
    if isinstance(value, list):
        inner = enumerate(value)
    elif isinstance(value, dict) and "value" not in value:
        inner = value.items()
    for key, part in inner:
        yield from _parts(part, (*path, str(key)))


def _quantity_problems(leaf: dict[str, Json], path: tuple[str, ...]) -> Iterator[str]:
    value, unit, key = _number(leaf["value"]), str(leaf["unit"]), path[-1]
    place = place_of(path)
    least, greatest = _PLAUSIBLE.get(unit, (float("-inf"), float("inf")))
    # An intercept is negative where a regression holds for large sizes only.
    if key != "L" and not least <= value <= greatest:
        yield f"{place}: {value:g} {unit} is not plausible, expected {least:g} to {greatest:g}"
    if key in _POSITIVE_KEYS and value <= 0:
        yield f"{place}: expected a positive number, got {value:g}"
    if key == "cache_line_bytes" and not is_line_size(value):
        yield f"{place}: {LINE_SIZE_EXPECTED}, got {value:g}"


def _section_problems(document: dict[str, Json]) -> Iterator[str]:
    lines = _object(document.get("lines"))
    for name, ends in _object(lines.get("range")).items():
        if isinstance(ends, list) and _number(ends[0]) > _number(ends[1]):
            yield f"{place_of(('lines', 'range', name))}: the range is empty"
    for key, by_type in _object(_object(document.get("arrays")).get("rates")).items():
        for dtype, rates in _object(by_type).items():
            for name, pieces in _object(rates).items():
                yield from _piece_problems(_object(pieces), ("arrays", "rates", key, dtype, name))
    applications = _object(_object(document.get("phases")).get("applications"))
    for application, described in applications.items():
        for label, stated in _object(_object(described).get("ranges")).items():
            place = place_of(("phases", "applications", application, "ranges", label))
            yield from _range_problems(_object(stated), place)


def _piece_problems(pieces: Mapping[str, Json], path: tuple[str, ...]) -> Iterator[str]:
    """Check lines by how far they come from: a price must not fall when the bytes grow."""
    if "value" in pieces:
        return
    nearest_first = sorted(pieces, key=_distance)
    for near, far in pairwise(nearest_first):
        before, then = (_number(_object(pieces[name])["value"]) for name in (near, far))
        if then < before:
            place = place_of((*path, far))
            yield f"{place}: {then:g} is less than {before:g} of {near}, which is nearer"


def _distance(piece: str) -> float:
    """Return up to where a piece reaches: ``b1048576`` names its bytes."""
    if piece.startswith("b") and piece[1:].isdecimal():
        return float(piece[1:])
    return float("inf") if piece == "beyond" else 0.0


def _grade_problems(graded: list[Json], place: str) -> Iterator[str]:
    limits = [_object(piece).get("max_bytes") for piece in graded]
    if limits[-1] is not None:
        yield f"{place}: the last piece has max_bytes null"
    if None in limits[:-1]:
        yield f"{place}: only the last piece has max_bytes null"
        return
    sizes = [_number(limit) for limit in limits[:-1]]
    if any(left >= right for left, right in pairwise(sizes)):
        yield f"{place}: max_bytes must grow from piece to piece"


def _range_problems(stated: Mapping[str, Json], place: str) -> Iterator[str]:
    if _number(stated.get("low")) > _number(stated.get("high")):
        yield f"{place}: the range is empty"
    try:
        parse(str(stated.get("quantity")))
    except ExprError as error:
        yield f"{place}/quantity: {error}"


def _object(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _number(value: Json) -> float:
    assert isinstance(value, int | float)
    return float(value)


def _one_line(text: str) -> str:
    joined = " ".join(text.split())
    return joined if len(joined) <= _LONGEST_MESSAGE else joined[: _LONGEST_MESSAGE - 3] + "..."


# A user's own profiles, kept after the full check.


def import_profile(path: Path, *, replace: bool = False) -> Machine:
    """Check a profile in full and keep it in the store under its own name.

    Raises
    ------
    MachineError
        Unreadable, not valid, named like a built-in machine, or already there without `replace`.
    StoreError
        The store cannot be written.
    """
    document = read_document(path)
    problems = check_profile(document, str(path))
    if problems:
        raise MachineError(problems[0])
    return store_profile(document, str(path), replace=replace)


def store_profile(document: dict[str, Json], origin: str, *, replace: bool = False) -> Machine:
    """Keep a checked document in the store; see :func:`import_profile` for the errors."""
    machine = machine_of(document, origin)
    if machine.name in built_in_names():
        raise MachineError(f'{origin}: /name: "{machine.name}" is a built-in machine')
    row = (
        machine.name,
        json.dumps(document, allow_nan=False),
        origin,
        now(),
    )
    statement = "INSERT OR REPLACE" if replace else "INSERT OR IGNORE"
    with writing(store_path()) as connection, transaction(connection):
        done = connection.execute(f"{statement} INTO profiles VALUES (?, ?, ?, ?)", row)
    if done.rowcount != 1:
        raise MachineError(
            f'{origin}: /name: a machine "{machine.name}" was imported before; '
            "replacing it must be asked for"
        )
    return machine


def remove_profile(name: str) -> bool:
    """Forget an imported or calibrated profile; tell whether there was one.

    What a calibration measured is kept, as it is when the profile is made anew.
    """
    path = store_path()
    if not path.is_file():
        return False
    with writing(path) as connection, transaction(connection):
        done = connection.execute("DELETE FROM profiles WHERE name = ?", (name,))
    return done.rowcount == 1
