"""Descriptions of programs in TOML, whichever model they are for, as subjects of predictions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path

import jsonschema

from costdb import pgas, phases, smp
from costdb.machines import Machine
from costdb.machines.documents import place_of
from costdb.phases.application import Application, ApplicationError, Word
from costdb.phases.document import Node, read_content, read_toml
from costdb.phases.pricing import derived_quantities, written_out
from costdb.phases.reading import PHASES
from costdb.phases.subject import DescribedSubject, Price
from costdb.subject import SubjectError

# The full check of a description, of whatever kind, for people who write one.
#
# A prediction does not need it and never imports it: reading alone keeps wrong numbers out.

_MOST_VARIANTS = 10_000
_LONGEST_MESSAGE = 200


def _broken(document: Mapping[str, object], path: Path) -> Iterator[str]:
    schema = json.loads(path.read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    errors = sorted(
        validator.iter_errors(document), key=lambda error: [str(k) for k in error.absolute_path]
    )
    for error in errors:
        message = " ".join(error.message.split())
        if len(message) > _LONGEST_MESSAGE:
            message = message[: _LONGEST_MESSAGE - 3] + "..."
        yield f"{place_of(error.absolute_path) or '/'}: {message}"


def _variant_problems(application: Application) -> Iterator[str]:
    names = [parameter.name for parameter in application.word_parameters]
    combinations = product(*(parameter.words for parameter in application.word_parameters))
    for combination in islice(combinations, _MOST_VARIANTS):
        words = dict(zip(names, combination, strict=True))
        try:
            _write_out_all(application, words)
        except ApplicationError as error:
            yield str(error)


def _write_out_all(application: Application, words: Mapping[str, Word]) -> None:
    derived = derived_quantities(application, words)
    for phase in application.phases:
        if phase.when.holds(words):
            written_out(application, phase.count, derived, phase.place)
            if phase.per_op is not None:
                written_out(application, phase.per_op, derived, phase.place)
    for exchange in application.exchanges:
        if exchange.when.holds(words):
            bounds = exchange.series[1:] if exchange.series else ()
            for expr in (exchange.count, exchange.bytes, *bounds):
                written_out(application, expr, derived, exchange.place)
    written_out(application, application.repeat, derived, "/repeat")


_SCHEMAS = {
    PHASES: Path(phases.__path__[0], "application.schema.json"),
    "supersteps": Path(smp.__path__[0], "supersteps.schema.json"),
    "references": Path(pgas.__path__[0], "references.schema.json"),
}


def description_problems(path: str | Path) -> tuple[str, ...]:
    """Return what is wrong with a description, one line each; nothing when it is right.

    First what breaks the JSON Schema of its kind; of a description that keeps to it, what cannot
    be read; of one that can, every choice of words for which a name is undefined.

    Raises
    ------
    SubjectError
        The file cannot be read at all.
    """
    try:
        document = read_toml(read_content(path), str(path))
    except ApplicationError as error:
        raise SubjectError(str(error)) from error
    kind = document.get("kind", PHASES)
    schema = _SCHEMAS.get(kind) if isinstance(kind, str) else None
    broken = () if schema is None else tuple(_broken(document, schema))
    if broken:
        return tuple(f"{path}: {problem}" for problem in broken)
    try:
        described = load_description(path)
    except SubjectError as error:
        return (str(error),)
    return tuple(dict.fromkeys(_variant_problems(described.head)))


KINDS = (PHASES, "supersteps", "references")


@dataclass(frozen=True, slots=True)
class Description:
    """What a document describes: parameters, and a price for the words among them."""

    head: Application
    price: Price

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
    try:
        return _description(read_toml(read_content(path), str(path)), str(path))
    except ApplicationError as error:
        raise SubjectError(str(error)) from error


def _description(document: dict[str, object], origin: str) -> Description:
    match document.get("kind", PHASES):
        case "phases":
            from costdb.phases.pricing import price_words
            from costdb.phases.reading import application_of

            application = application_of(document, origin)
            return Description(
                application, lambda words, machine: price_words(application, machine, words)
            )
        case "supersteps":
            from costdb.pricing import price_process
            from costdb.smp.document import program_of

            program = program_of(document, origin)
            return Description(
                program.head,
                lambda words, machine: price_process(program.process(words), machine),
            )
        case "references":
            from costdb.pgas.document import program_of as references_of
            from costdb.pricing import price_process

            references = references_of(document, origin)
            return Description(
                references.head,
                lambda words, machine: price_process(references.process(words), machine),
            )
        case kind:
            raise Node(kind, "/kind", origin).refuse(f"expected one of {', '.join(KINDS)}")
