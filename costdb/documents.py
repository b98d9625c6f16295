"""Descriptions of programs in TOML, whichever model they are for, as subjects of predictions.

Parameters, derived quantities, constraints and variants are the same in all
(:mod:`costdb.phases.application`); besides, there are phases and messages, supersteps, or
references (:mod:`costdb.pgas.document`). Each kind has one reader, which says the place of
whatever is wrong; a test holds the JSON Schemas to the readers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, product
from pathlib import Path
from typing import TypeAlias

from costdb.choosing import Bound, Chosen, SubjectError
from costdb.estimate import ImpossibleError, Missing, Priced
from costdb.expr import ONE, Expr, ExprError, evaluate, free_symbols
from costdb.machines import Machine
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
    entries,
    expressions_of,
    read_head,
)
from costdb.phases.document import Node, read_content, read_toml
from costdb.phases.pricing import derived_quantities, price_words, written_out
from costdb.records import dataclass, field
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
    if parameter.maximum is None or not free_symbols(parameter.maximum) <= bound.numbers.keys():
        raise SubjectError(
            f"{application.origin}: /parameters/{parameter.name}: "
            "a number to choose over needs a maximum that the fixed parameters decide"
        )
    try:
        largest = int(evaluate(parameter.maximum, bound.numbers) // 1)
    except ExprError as error:
        raise SubjectError(
            f"{application.origin}: /parameters/{parameter.name}/maximum: {error}"
        ) from error
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
