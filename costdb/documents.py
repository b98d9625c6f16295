"""Descriptions of programs in TOML, whichever model they are for, as subjects of predictions.

Parameters, derived quantities, constraints and variants are the same in all
(:mod:`costdb.phases.application`); besides, there are phases and messages, supersteps, or
references (:mod:`costdb.pgas.document`). Each kind has one reader, which says the place of
whatever is wrong; a test holds the JSON Schemas to the readers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice, pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from costdb.choosing import Bound, Chosen, SubjectError
from costdb.evaluate import ImpossibleError, Missing, Priced
from costdb.expr import ONE, Expr, ExprError, evaluate, free_symbols, parse
from costdb.machines import (
    LINE_SIZE_EXPECTED,
    Json,
    Machine,
    MachineError,
    built_in_names,
    cheap_problems,
    is_line_size,
    machine_of,
    parts_of,
    place_of,
    read_document,
    to_float,
)
from costdb.phases.application import (
    HEAD_KEYS,
    OPTIONAL_HEAD_KEYS,
    PHASES,
    Application,
    NumberParameter,
    Used,
    When,
    Word,
    WordParameter,
    application_of,
    bind,
    check_names,
    derived_quantities,
    entries,
    expressions_of,
    price_words,
    read_head,
    written_out,
)
from costdb.phases.document import Node, read_content, read_toml
from costdb.records import dataclass, field
from costdb.store.database import now, transaction, writing
from costdb.store.place import store_path
from costdb.work import Leaf, Process, Sequential, Superstep, repeated

Price: TypeAlias = Callable[[Mapping[str, str], Machine], Priced | Missing]
"""From the words of a variant to its price on a machine."""

Variant: TypeAlias = Callable[[Mapping[str, Word]], Process]
"""From the words of a variant to its work."""


@dataclass(frozen=True, slots=True)
class DescribedSubject:
    """A described program on a machine."""

    head: Application
    price_words: Price
    machine: Machine

    @property
    def origin(self) -> str:
        """Path of the description."""
        return self.head.origin

    @property
    def names(self) -> tuple[str, ...]:
        """Parameters, in the description's order."""
        return tuple(self.head.parameters)

    @property
    def words(self) -> frozenset[str]:
        """Parameters that take words."""
        return frozenset(parameter.name for parameter in self.head.word_parameters)

    def about(self, name: str) -> str:
        """Return what the description says of a parameter."""
        parameter = self.head.parameters.get(name)
        return "" if parameter is None else parameter.about

    def bind(self, given: Mapping[str, Chosen]) -> Bound:
        """Check `given` against the description; see :class:`costdb.choosing.Subject`."""
        return bind(self.head, given)

    def price(self, words: Mapping[str, str]) -> Priced | Missing:
        """Return the formula of a variant; see :class:`costdb.choosing.Subject`."""
        try:
            return self.price_words(words, self.machine)
        except (ExprError, ImpossibleError) as error:
            raise SubjectError(f"{self.origin}: {error}") from error

    def values(self, name: str, given: Mapping[str, Chosen]) -> Sequence[Chosen]:
        """Return the allowed values of a parameter; see :class:`costdb.choosing.Subject`."""
        match self.head.parameters[name]:
            case WordParameter(words=words):
                return tuple(words)
            case NumberParameter() as parameter:
                return _allowed_numbers(self.head, parameter, bind(self.head, given))


def _allowed_numbers(
    application: Application, parameter: NumberParameter, bound: Bound
) -> Sequence[int]:
    """Return all values of a number parameter, from its minimum to its maximum.

    Raises
    ------
    SubjectError
        It has no maximum, or what is bound does not decide it.
    """
    place = f"/parameters/{parameter.name}"
    if parameter.maximum is None or not free_symbols(parameter.maximum) <= bound.numbers.keys():
        problem = "a number to choose over needs a maximum that the fixed parameters decide"
        raise application.refuse(place, problem)
    try:
        largest = int(evaluate(parameter.maximum, bound.numbers) // 1)
    except ExprError as error:
        raise application.refuse(f"{place}/maximum", str(error)) from error
    if not parameter.power_of_two:
        return range(parameter.minimum, largest + 1)
    powers = (1 << exponent for exponent in range(max(0, largest).bit_length()))
    return [value for value in powers if parameter.minimum <= value <= largest]


# Shared-memory programs as documents: supersteps over parameters, with variants.


@dataclass(frozen=True, slots=True)
class Stated:
    """A superstep of a document: its counts, how often it happens, and for which words."""

    name: str
    reads: Expr
    writes: Expr
    total: Expr
    times: Expr = ONE
    when: When = field(default_factory=When)
    place: str = ""

    @property
    def written(self) -> tuple[Expr, ...]:
        """How often, reads, writes, and the accesses of all."""
        return self.times, self.reads, self.writes, self.total


def supersteps_of(document: dict[str, object], origin: str) -> Description:
    """Return the shared-memory program that a parsed document describes.

    Raises
    ------
    SubjectError
        With the place of what cannot be used.
    """
    top = Node(document, "", origin)
    keys = top.known((*HEAD_KEYS, "kind", "processors", "supersteps"), OPTIONAL_HEAD_KEYS)
    head = read_head(keys, origin)
    processors = keys["processors"].expression()
    check_names(head, [Used("/processors", processors)])
    steps = entries(Stated, keys, "supersteps", head.parameters)
    if not steps:
        raise keys["supersteps"].refuse("there is no superstep")

    def process(words: Mapping[str, Word]) -> Process:
        derived = derived_quantities(head, words)
        leaves = []
        for one in steps:
            if one.when.holds(words):
                of_all, times, reads, writes, total = (
                    written_out(head, expr, derived, one.place)
                    for expr in (processors, *one.written)
                )
                work = Superstep(of_all, reads, writes, total, one.name)
                leaves.append(repeated(times, Leaf(work)))
        return _repeated(head, derived, tuple(leaves))

    used = [
        Used(one.place, expr, when=one.when) for one in steps for expr in (processors, *one.written)
    ]
    check_names(head, used)
    return Description(head, _priced(process), tuple(used), process)


KINDS = (PHASES, "supersteps", "references")
_MOST_VARIANTS = 10_000


@dataclass(frozen=True, slots=True)
class Description:
    """What a document describes: parameters, and a price for the words among them.

    Attributes
    ----------
    head : Application
    price : callable
    used : tuple of Used
        The expressions of its entries.
    process : callable or None
        What words pick, as work; None of phases, whose rates have units of their own.
    """

    head: Application
    price: Price
    used: tuple[Used, ...] = ()
    process: Variant | None = None

    def on(self, machine: Machine) -> DescribedSubject:
        """Return it as the subject of predictions for `machine`."""
        return DescribedSubject(self.head, self.price, machine)


def load_description(path: str | Path) -> Description:
    """Return what a TOML document describes.

    Raises
    ------
    SubjectError
        The file cannot be read or says something that cannot be used: one line with the file
        and the place.
    """
    return _description(read_toml(read_content(path), str(path)), str(path))


def _description(document: dict[str, object], origin: str) -> Description:
    match document.get("kind", PHASES):
        case "phases":
            application = application_of(document, origin)
            return Description(
                application,
                lambda words, machine: price_words(application, machine, words),
                tuple(expressions_of(application)),
            )
        case "supersteps":
            return supersteps_of(document, origin)
        case "references":
            from costdb.pgas.document import program_of
            from costdb.pgas.partition import remote_groups

            head, used, interval_for = program_of(document, origin)

            def process(words: Mapping[str, Word]) -> Process:
                groups = map(Leaf, remote_groups(interval_for(words)))
                return _repeated(head, derived_quantities(head, words), tuple(groups))

            return Description(head, _priced(process), used, process)
        case kind:
            raise Node(kind, "/kind", origin).refuse(f"expected one of {', '.join(KINDS)}")


def _repeated(
    head: Application, derived: Mapping[str, Expr], parts: tuple[Process, ...]
) -> Process:
    return repeated(written_out(head, head.repeat, derived, "/repeat"), Sequential(parts))


def _priced(process: Variant) -> Price:
    from costdb.pricing import price_process

    return lambda words, machine: price_process(process(words), machine)


def description_problems(path: str | Path) -> tuple[str, ...]:
    """Return what is wrong with a description, one line each; nothing when it is right.

    First what cannot be read; of one that can, every choice of words for which a name is undefined.

    Raises
    ------
    SubjectError
        The file cannot be read at all.
    """
    document = read_toml(read_content(path), str(path))
    try:
        description = _description(document, str(path))
    except SubjectError as error:
        return (str(error),)
    return tuple(dict.fromkeys(_variant_problems(description)))


def _variant_problems(description: Description) -> Iterator[str]:
    head = description.head
    names = [parameter.name for parameter in head.word_parameters]
    combinations = product(*(parameter.words for parameter in head.word_parameters))
    for combination in islice(combinations, _MOST_VARIANTS):
        words = dict(zip(names, combination, strict=True))
        try:
            derived = derived_quantities(head, words)
            for used in (*description.used, Used("/repeat", head.repeat)):
                if used.when.holds(words):
                    written_out(head, used.expr, derived, used.place)
        except SubjectError as error:
            yield str(error)


# --- profile check --------------------------------------------------------------------------------
# The full check of a profile: its JSON Schema, and what physics allows.
#
# It is made when a profile is imported, validated, or written by a calibration. Every start makes
# only the cheap checks of :mod:`costdb.machines`.


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
        for path, part in parts_of(document):
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


def _quantity_problems(leaf: dict[str, Json], path: tuple[str, ...]) -> Iterator[str]:
    value, unit, key = to_float(leaf["value"]), str(leaf["unit"]), path[-1]
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
        if isinstance(ends, list) and to_float(ends[0]) > to_float(ends[1]):
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
        before, then = (to_float(_object(pieces[name])["value"]) for name in (near, far))
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
    sizes = [to_float(limit) for limit in limits[:-1]]
    if any(left >= right for left, right in pairwise(sizes)):
        yield f"{place}: max_bytes must grow from piece to piece"


def _range_problems(stated: Mapping[str, Json], place: str) -> Iterator[str]:
    if to_float(stated.get("low")) > to_float(stated.get("high")):
        yield f"{place}: the range is empty"
    try:
        parse(str(stated.get("quantity")))
    except ExprError as error:
        yield f"{place}/quantity: {error}"


def _object(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


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
    row = (machine.name, json.dumps(document, allow_nan=False), origin, now())
    statement = "INSERT OR REPLACE" if replace else "INSERT OR IGNORE"
    with writing() as connection, transaction(connection):
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
