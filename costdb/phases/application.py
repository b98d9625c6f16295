"""What an application description says, once it has been read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from costdb.expr import Expr
from costdb.quantity import Quantity

Word: TypeAlias = str
Chosen: TypeAlias = str | int
"""What a parameter is bound to: a word such as ``TH``, or a whole number."""


class ApplicationError(ValueError):
    """A description or a choice that cannot be used; the message is one line with its place."""


@dataclass(frozen=True, slots=True)
class WordParameter:
    """A parameter that takes one of a few words; a word may stand for a set of sizes.

    Attributes
    ----------
    words : mapping of str to mapping of str to int
        The sizes that each allowed word stands for, often none.
    default : str or None
        The word taken when nothing is said.
    """

    name: str
    about: str
    words: Mapping[Word, Mapping[str, int]]
    default: Word | None


@dataclass(frozen=True, slots=True)
class NumberParameter:
    """A parameter that takes a whole number.

    Attributes
    ----------
    minimum : int
        Smallest value allowed.
    maximum : Expr or None
        Largest value allowed, over sizes and other parameters.
    power_of_two : bool
        Other values are refused.
    default : int or None
        The value taken when nothing is said.
    """

    name: str
    about: str
    minimum: int
    maximum: Expr | None
    power_of_two: bool
    default: int | None


Parameter: TypeAlias = WordParameter | NumberParameter


@dataclass(frozen=True, slots=True)
class When:
    """For which words an entry counts: every parameter named must have one of its words."""

    words: tuple[tuple[str, frozenset[Word]], ...] = ()

    def holds(self, chosen: Mapping[str, Word]) -> bool:
        """Tell whether the entry counts for the words in `chosen`."""
        return all(chosen.get(name) in allowed for name, allowed in self.words)


@dataclass(frozen=True, slots=True)
class Definition:
    """A derived quantity: `name` stands for `value` when `when` holds."""

    name: str
    value: Expr
    when: When
    place: str


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition on sizes and parameters, nonzero where it is met."""

    require: Expr
    because: str
    when: When
    place: str


@dataclass(frozen=True, slots=True)
class Phase:
    """Computation or copying between messages.

    Attributes
    ----------
    unit : str
        ``"flop"`` or ``"byte"``: what `count` counts.
    count : Expr
        Units done in one repetition.
    rate : str
        Name of the rate, or of the pair of rates.
    per_op : Expr or None
        None for one rate ``r``: the phase takes ``count / r`` microseconds. Else over the
        reciprocals ``a`` and ``b`` of the pair's outer and inner rate: ``count * per_op``.
    """

    name: str
    unit: str
    count: Expr
    rate: str
    per_op: Expr | None
    when: When
    place: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """Messages of one kind: `count` of `bytes` each, summed over a series where there is one.

    Attributes
    ----------
    pattern : str
        Which of the machine's communication patterns prices them; empty for plain
        point-to-point messages.
    series : tuple of (str, Expr, Expr) or None
        Index, first and last value of a series that `count` and `bytes` may use.
    """

    name: str
    count: Expr
    bytes: Expr
    pattern: str
    series: tuple[str, Expr, Expr] | None
    when: When
    place: str


@dataclass(frozen=True, slots=True)
class StatedRate:
    """A rate that the description itself states, for machines whose profile has none."""

    single: Quantity | None = None
    outer: Quantity | None = None
    inner: Quantity | None = None


@dataclass(frozen=True, slots=True)
class Application:
    """An application: its phases and messages over its parameters.

    Attributes
    ----------
    name, title, source : str
        Name under which a machine keeps the application's rates; heading; citation.
    origin : str
        Path of the description.
    repeat : Expr
        How often phases and messages are gone through in one run.
    rates : mapping of str to StatedRate
        Rates stated by the description; those of a machine's profile come before them.
    """

    name: str
    title: str
    source: str
    origin: str
    parameters: Mapping[str, Parameter]
    definitions: tuple[Definition, ...]
    constraints: tuple[Constraint, ...]
    phases: tuple[Phase, ...]
    exchanges: tuple[Exchange, ...]
    repeat: Expr
    rates: Mapping[str, StatedRate]

    @property
    def word_parameters(self) -> tuple[WordParameter, ...]:
        """Parameters that take words, in the description's order."""
        return tuple(p for p in self.parameters.values() if isinstance(p, WordParameter))

    @property
    def number_parameters(self) -> tuple[NumberParameter, ...]:
        """Parameters that take whole numbers, in the description's order."""
        return tuple(p for p in self.parameters.values() if isinstance(p, NumberParameter))

    @property
    def size_names(self) -> tuple[str, ...]:
        """Names that some word binds, in order of first mention."""
        names: dict[str, None] = {}
        for parameter in self.word_parameters:
            for sizes in parameter.words.values():
                names.update(dict.fromkeys(sizes))
        return tuple(names)
