"""A described program as the subject of predictions: its parameters bound, its words priced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from costdb.estimate import ImpossibleError, Missing, Priced
from costdb.expr import ExprError, evaluate, free_symbols
from costdb.machines import Machine
from costdb.phases.application import (
    Application,
    ApplicationError,
    Bindings,
    NumberParameter,
    WordParameter,
    bind,
)
from costdb.subject import Bound, Chosen, Number, RefusedError, SubjectError
from costdb.wording import read_number

Price: TypeAlias = Callable[[Mapping[str, str], Machine], Priced | Missing]
"""From the words of a variant to its price on a machine."""


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
        """Check `given` against the description; see :class:`costdb.subject.Subject`."""
        known = (*self.head.parameters, *self.head.size_names)
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
        try:
            return self.price_words(words, self.machine)
        except ApplicationError as error:
            raise SubjectError(str(error)) from error
        except (ExprError, ImpossibleError) as error:
            raise SubjectError(f"{self.origin}: {error}") from error

    def values(self, name: str, given: Mapping[str, Chosen]) -> Sequence[Chosen]:
        """Return the allowed values of a parameter; see :class:`costdb.subject.Subject`."""
        match self.head.parameters[name]:
            case WordParameter(words=words):
                return tuple(words)
            case NumberParameter() as parameter:
                try:
                    bound = bind(self.head, {n: self._chosen(n, v) for n, v in given.items()})
                except ApplicationError as error:
                    raise RefusedError(str(error)) from error
                try:
                    return _allowed_numbers(self.head, parameter, bound)
                except ApplicationError as error:
                    raise SubjectError(str(error)) from error

    def _chosen(self, name: str, value: Chosen) -> str | int:
        if name in self.words:
            return str(value)
        number: Number | None = read_number(value) if isinstance(value, str) else value
        # What is not a whole number is refused where it is bound, as it was written.
        return number if isinstance(number, int) else str(value)


def _allowed_numbers(
    application: Application, parameter: NumberParameter, bound: Bindings
) -> Sequence[int]:
    """Return all values of a number parameter, from its minimum to its maximum.

    Raises
    ------
    ApplicationError
        It has no maximum, or what is bound does not decide it.
    """
    if parameter.maximum is None or not free_symbols(parameter.maximum) <= bound.numbers.keys():
        raise ApplicationError(
            f"{application.origin}: /parameters/{parameter.name}: "
            "a number to choose over needs a maximum that the fixed parameters decide"
        )
    try:
        largest = int(evaluate(parameter.maximum, bound.numbers) // 1)
    except ExprError as error:
        raise ApplicationError(
            f"{application.origin}: /parameters/{parameter.name}/maximum: {error}"
        ) from error
    if not parameter.power_of_two:
        return range(parameter.minimum, largest + 1)
    powers = (1 << exponent for exponent in range(max(0, largest).bit_length()))
    return [value for value in powers if parameter.minimum <= value <= largest]
