"""Descriptions of programs in TOML, whichever model they are for, as subjects of predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from costdb.estimate import Missing, Priced
from costdb.expr import ExprError
from costdb.machines import Machine
from costdb.phases.application import Application, ApplicationError, NumberParameter, WordParameter
from costdb.phases.binding import bind
from costdb.phases.document import LARGEST_BYTES, Node, read_toml
from costdb.phases.reading import PHASES
from costdb.subject import Bound, Chosen, Number, RefusedError, SubjectError
from costdb.wording import nearest, read_number

Price: TypeAlias = Callable[[Mapping[str, str], Machine], Priced | Missing]

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
        with Path(path).open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SubjectError(f"{path}: {reason}") from error
    try:
        return _description(read_toml(content, str(path)), str(path))
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

    def bind(self, given: Mapping[str, Chosen]) -> Bound:
        """Check `given` against the description; see :class:`costdb.subject.Subject`."""
        known = (*self.head.parameters, *self.head.size_names)
        for name in given:
            if name not in known:
                raise RefusedError(
                    f"{self.origin}: there is no parameter {name}{nearest(name, known)}"
                )
        try:
            bound = bind(self.head, {n: self._chosen(n, value) for n, value in given.items()})
        except ApplicationError as error:
            raise RefusedError(str(error)) from error
        everything: Mapping[str, Chosen] = {**bound.words, **bound.numbers}
        shown = {
            name: everything[name]
            for name in known
            if name in everything and (name in self.head.parameters or name in given)
        }
        return Bound(bound.words, bound.numbers, shown)

    def price(self, words: Mapping[str, str]) -> Priced | Missing:
        """Return the formula of a variant; see :class:`costdb.subject.Subject`."""
        from costdb.pgas.partition import PartitionError
        from costdb.smp.functions import SuperstepError

        try:
            return self.price_words(words, self.machine)
        except ApplicationError as error:
            raise SubjectError(str(error)) from error
        except (ExprError, PartitionError, SuperstepError) as error:
            raise SubjectError(f"{self.origin}: {error}") from error

    def values(self, name: str, given: Mapping[str, Chosen]) -> Sequence[Chosen]:
        """Return the allowed values of a parameter; see :class:`costdb.subject.Subject`."""
        from costdb.phases.choosing import allowed_numbers

        match self.head.parameters[name]:
            case WordParameter(words=words):
                return tuple(words)
            case NumberParameter() as parameter:
                try:
                    bound = bind(self.head, {n: self._chosen(n, v) for n, v in given.items()})
                except ApplicationError as error:
                    raise RefusedError(str(error)) from error
                try:
                    return allowed_numbers(self.head, parameter, bound)
                except ApplicationError as error:
                    raise SubjectError(str(error)) from error

    def _chosen(self, name: str, value: Chosen) -> str | int:
        if name in self.words:
            return str(value)
        number: Number | None = read_number(value) if isinstance(value, str) else value
        # What is not a whole number is refused where it is bound, as it was written.
        return number if isinstance(number, int) else str(value)
