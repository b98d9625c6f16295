"""Which choice is fastest: every allowed binding of some parameters, priced and ranked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from costdb.estimate import Estimate, Missing, Priced
from costdb.evaluate import evaluate_price
from costdb.expr import Expr, ExprError, evaluate, free_symbols
from costdb.machines import Machine
from costdb.phases.application import (
    Application,
    ApplicationError,
    Chosen,
    NumberParameter,
)
from costdb.phases.binding import Bindings, bind
from costdb.phases.pricing import price_words

MOST_CANDIDATES = 100_000
"""Combinations that one ranking may look at before it is refused."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One binding of the parameters that were ranked over, and its predicted time."""

    bindings: Mapping[str, str | int]
    estimate: Estimate


def predict(
    application: Application, machine: Machine, choices: Mapping[str, Chosen]
) -> Estimate | Missing:
    """Return the predicted run time for one choice of all parameters.

    Raises
    ------
    ApplicationError
        A choice is not allowed, or a parameter is not bound.
    """
    bound = bind(application, choices)
    for parameter in application.number_parameters:
        if parameter.name not in bound.numbers:
            raise ApplicationError(
                f"{application.origin}: {parameter.name} is not bound"
                + (f" ({parameter.about})" if parameter.about else "")
            )
    return _estimate(application, price_words(application, machine, bound.words), bound)


def rank_choices(
    application: Application,
    machine: Machine,
    over: Sequence[str],
    fixed: Mapping[str, Chosen],
    where: Expr | None = None,
) -> tuple[Choice, ...] | Missing:
    """Return every allowed choice, fastest first.

    Parameters
    ----------
    application : Application
    machine : Machine
    over : sequence of str
        Parameters to vary: words over all allowed ones, numbers from their minimum to their
        maximum (powers of two only, where the description says so).
    fixed : mapping
        The other parameters.
    where : Expr, optional
        Over number parameters and sizes; choices where it is 0 are left out, for example
        ``PX*PY == 64``.

    Returns
    -------
    tuple of Choice or Missing
        Sorted by predicted time; ties in the order of the description. Missing as soon as one
        choice cannot be priced.

    Raises
    ------
    ApplicationError
        A name is unknown, a range has no end, or no choice is allowed.
    """
    _check_names(application, over, fixed, where)
    prices: dict[tuple[tuple[str, str], ...], Priced] = {}
    ranked: list[Choice] = []
    refusal: ApplicationError | None = None
    for candidate in _candidates(application, over, fixed):
        try:
            bound = bind(application, {**fixed, **candidate})
        except ApplicationError as error:
            refusal = refusal or error
            continue
        if where is not None and not _holds(application, where, bound):
            continue
        variant = tuple(bound.words.items())
        if variant not in prices:
            priced = price_words(application, machine, bound.words)
            if isinstance(priced, Missing):
                return priced
            prices[variant] = priced
        estimate = _estimate(application, prices[variant], bound)
        if isinstance(estimate, Missing):
            return estimate
        ranked.append(Choice(candidate, estimate))
    if not ranked:
        if refusal is not None:
            raise refusal
        raise ApplicationError(
            f"{application.origin}: no choice of {', '.join(over)} meets the condition"
        )
    return tuple(sorted(ranked, key=lambda choice: choice.estimate.mid))


def _estimate(
    application: Application, priced: Priced | Missing, bound: Bindings
) -> Estimate | Missing:
    if isinstance(priced, Missing):
        return priced
    try:
        return evaluate_price(priced, bound.numbers)
    except ExprError as error:
        raise ApplicationError(f"{application.origin}: {error}") from error


def _check_names(
    application: Application,
    over: Sequence[str],
    fixed: Mapping[str, Chosen],
    where: Expr | None,
) -> None:
    if not over:
        raise ApplicationError(f"{application.origin}: name the parameters to choose over")
    for name in over:
        if name not in application.parameters:
            known = ", ".join(application.parameters)
            raise ApplicationError(
                f"{application.origin}: there is no parameter {name} (known: {known})"
            )
        if name in fixed:
            raise ApplicationError(f"{application.origin}: {name} is fixed, so not to be chosen")
    if len(set(over)) != len(over):
        raise ApplicationError(f"{application.origin}: a parameter is named twice")
    if where is not None:
        numbers = {p.name for p in application.number_parameters} | set(application.size_names)
        for name in sorted(free_symbols(where) - numbers):
            raise ApplicationError(
                f"{application.origin}: condition: {name} is not a number of the application"
            )


def _candidates(
    application: Application, over: Sequence[str], fixed: Mapping[str, Chosen]
) -> Iterator[dict[str, str | int]]:
    """Yield every combination, words slowest, numbers within the bounds that are known."""
    words = [p for p in application.word_parameters if p.name in over]
    numbers = [p for p in application.number_parameters if p.name in over]
    seen = 0
    for combination in product(*(parameter.words for parameter in words)):
        chosen: dict[str, str | int] = {
            parameter.name: word for parameter, word in zip(words, combination, strict=True)
        }
        others = {key: value for key, value in fixed.items() if key not in over}
        sizes = bind(application, {**others, **chosen})
        ranges = [allowed_numbers(application, parameter, sizes) for parameter in numbers]
        seen += prod(map(len, ranges))
        if seen > MOST_CANDIDATES:
            raise ApplicationError(
                f"{application.origin}: more than {MOST_CANDIDATES} combinations of "
                f"{', '.join(over)}; fix some of them"
            )
        for values in product(*ranges):
            candidate = dict(chosen)
            candidate.update(
                {parameter.name: value for parameter, value in zip(numbers, values, strict=True)}
            )
            yield {name: candidate[name] for name in over}


def allowed_numbers(
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


def _holds(application: Application, where: Expr, bound: Bindings) -> bool:
    try:
        return bool(evaluate(where, bound.numbers))
    except ExprError as error:
        raise ApplicationError(f"{application.origin}: condition: {error}") from error
