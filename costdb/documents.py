"""Descriptions of programs in TOML, whichever model they are for, as subjects of predictions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from costdb.machines import Machine
from costdb.phases.application import Application, ApplicationError
from costdb.phases.document import Node, read_content, read_toml
from costdb.phases.reading import PHASES
from costdb.phases.subject import DescribedSubject, Price
from costdb.subject import SubjectError

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
