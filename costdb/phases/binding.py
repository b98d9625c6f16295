"""Binding parameters: which words and numbers a choice fixes, and whether it is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from costdb.expr import ExprError, evaluate, free_symbols
from costdb.phases.application import (
    Application,
    ApplicationError,
    Chosen,
    Constraint,
    NumberParameter,
    Word,
    WordParameter,
)


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
