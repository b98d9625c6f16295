"""What an application description says, once it has been read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from costdb.expr import Expr, ExprError, evaluate, free_symbols
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


# Binding parameters: which words and numbers a choice fixes, and whether it is allowed.


@dataclass(frozen=True, slots=True)
class Bindings:
    """A checked choice.

    Attributes
    ----------
    words : mapping of str to str
        The word of every parameter that takes words.
    numbers : mapping of str to int
        The sizes of those words and the number parameters that are bound.
    """

    words: Mapping[str, Word]
    numbers: Mapping[str, int]


def bind(application: Application, choices: Mapping[str, Chosen]) -> Bindings:
    """Check `choices` and complete them with the defaults and the sizes of the words.

    Numbers may come as text (``"16"``). A size such as ``NLAT`` may be bound too; it then
    replaces that of the word. Number parameters may stay unbound.

    Raises
    ------
    ApplicationError
        Unknown parameter, a word that is not allowed or not chosen, a number out of bounds,
        a constraint that is not met.
    """
    numbers: dict[str, int] = {}
    words = {
        parameter.name: _word(application, parameter, choices)
        for parameter in application.word_parameters
    }
    for name, word in words.items():
        numbers.update(_sizes(application, name, word))
    for extent in application.number_parameters:
        if extent.default is not None:
            numbers[extent.name] = extent.default
    sizes = frozenset(application.size_names)
    for name, chosen in choices.items():
        if name in words:
            continue
        if name not in application.parameters and name not in sizes:
            known = (*application.parameters, *application.size_names)
            raise _refusal(application, f"there is no parameter {name}{_nearest(name, known)}")
        value = _number(application, name, chosen)
        numbers[name] = value
        if name in sizes and value <= 0:
            raise _refusal(application, f"{name} = {chosen} must be positive")
    for extent in application.number_parameters:
        problem = number_problem(extent, numbers)
        if problem:
            raise _refusal(application, problem)
    for constraint in application.constraints:
        if constraint.when.holds(words):
            _require(application, constraint, numbers)
    return Bindings(words, numbers)


def number_problem(parameter: NumberParameter, numbers: Mapping[str, int]) -> str:
    """Return why a number parameter's value is not allowed; empty where it is or is unbound."""
    value = numbers.get(parameter.name)
    if value is None:
        return ""
    if value < parameter.minimum:
        return f"{parameter.name} = {value} must be at least {parameter.minimum}"
    if parameter.power_of_two and (value < 1 or value & (value - 1)):
        return f"{parameter.name} = {value} must be a power of two"
    if parameter.maximum is not None and free_symbols(parameter.maximum) <= numbers.keys():
        try:
            largest = evaluate(parameter.maximum, numbers)
        except ExprError as error:
            return f"/parameters/{parameter.name}/maximum: {error}"
        if value > largest:
            return f"{parameter.name} = {value} must be at most {largest}"
    return ""


def _sizes(application: Application, name: str, word: Word) -> Mapping[str, int]:
    parameter = application.parameters[name]
    return parameter.words[word] if isinstance(parameter, WordParameter) else {}


def _word(
    application: Application, parameter: WordParameter, choices: Mapping[str, Chosen]
) -> Word:
    chosen = choices.get(parameter.name, parameter.default)
    if chosen is None:
        raise _refusal(
            application, f"{parameter.name} is not chosen (one of {', '.join(parameter.words)})"
        )
    if not isinstance(chosen, str) or chosen not in parameter.words:
        raise _refusal(
            application,
            f"{parameter.name} = {chosen} is not one of {', '.join(parameter.words)}",
        )
    return chosen


def _number(application: Application, name: str, chosen: Chosen) -> int:
    if isinstance(chosen, str):
        text = chosen.strip()
        digits = text.removeprefix("-")
        if not digits.isascii() or not digits.isdecimal() or len(digits) > 18:
            raise _refusal(application, f"{name} = {chosen!r} is not a whole number")
        return int(text)
    if isinstance(chosen, bool) or not isinstance(chosen, int):
        raise _refusal(application, f"{name} = {chosen!r} is not a whole number")
    return chosen


def _require(application: Application, constraint: Constraint, numbers: Mapping[str, int]) -> None:
    names = free_symbols(constraint.require)
    if not names <= numbers.keys():
        return
    try:
        met = evaluate(constraint.require, numbers)
    except ExprError as error:
        raise _refusal(application, f"{constraint.place}: {error}") from error
    if not met:
        shown = ", ".join(f"{name} = {numbers[name]}" for name in sorted(names))
        raise _refusal(application, f"{constraint.because} ({shown})")


def _refusal(application: Application, problem: str) -> ApplicationError:
    return ApplicationError(f"{application.origin}: {problem}")


def _nearest(name: str, known: tuple[str, ...]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1)
    return f'; did you mean "{close[0]}"?' if close else f" (known: {', '.join(known)})"
