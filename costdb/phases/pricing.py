"""Price of an application on a machine: rates and message costs put to its counts.

The compute rates were measured for the application on the machine, so they belong to the
machine's profile (``phases/applications/<name>/rates``); the description names them. Messages
cost ``alpha + beta*bytes`` with the machine's own numbers (``phases/alpha_us``,
``phases/beta_us_per_byte``), or those of a communication pattern (``phases/patterns/<name>``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from costdb.choosing import SubjectError
from costdb.estimate import Domain, Missing, Priced, Term
from costdb.expr import Expr, ExprError, free_symbols, num, parse, substitute, summation, sym
from costdb.machines import Machine
from costdb.phases.application import (
    RATE_UNITS,
    Application,
    Exchange,
    Phase,
    Word,
)
from costdb.quantity import Quantity

MODEL = "phases"


def price_words(
    application: Application, machine: Machine, words: Mapping[str, Word]
) -> Priced | Missing:
    """Return the time of a run of the variant that `words` pick, in microseconds.

    The words decide which phases and messages there are, all of them bound and allowed. Sizes and
    number parameters stay symbols of the formula, derived quantities are written out;
    :func:`costdb.phases.application.bind` gives the values to evaluate it with.

    Parameters
    ----------
    application : Application
    machine : Machine
    words : mapping of str to str

    Returns
    -------
    Priced or Missing
        One term for each phase and each kind of message, all repetitions together.

    Raises
    ------
    SubjectError
        The description leaves a name undefined for them.
    """
    lookup = _Lookup(application, machine)
    derived = derived_quantities(application, words)
    repeat = written_out(application, application.repeat, derived, "/repeat")
    terms: list[Term] = []
    parts: tuple[Phase | Exchange, ...] = (*application.phases, *application.exchanges)
    for part in parts:
        if part.when.holds(words):
            if isinstance(part, Phase):
                cost = _phase_us(part, lookup)
            else:
                cost = _exchange_us(part, lookup)
            if isinstance(cost, Missing):
                return cost
            whole = written_out(application, cost, derived, part.place)
            terms.append(Term(part.name, MODEL, repeat * whole))
    return Priced(
        microseconds=sum((term.microseconds for term in terms), num(0)),
        terms=tuple(terms),
        coefficients=lookup.found,
        domains=_domains(application, machine, derived),
    )


@dataclass(slots=True)
class _Lookup:
    """Coefficients by symbol, as they are asked for."""

    application: Application
    machine: Machine
    found: dict[str, Quantity] = field(default_factory=dict)

    def rate(self, name: str, part: str, unit: str) -> Expr | Missing:
        """Return the symbol of a rate's reciprocal, microseconds per unit.

        `part` is ``outer`` or ``inner`` of a pair, or empty. In reciprocals a price is linear.
        """
        section = ("phases", "applications", self.application.name, "rates", name)
        path = (*section, part) if part else section
        quantity = self.machine.quantity(*path)
        what = f'the {part + " " if part else ""}rate "{name}" of {self.application.name}'
        if quantity is None:
            return Missing(
                f"{what} on {self.machine.name}",
                f"time that phase on {self.machine.name} and state the rate in a copy of its "
                f"profile under /{'/'.join(path)}",
            )
        if quantity.low <= 0:
            raise SubjectError(f"{self.machine.origin}: {what} must be positive")
        if quantity.unit != RATE_UNITS[unit]:
            raise SubjectError(
                f"{self.machine.origin}: {what} is in {quantity.unit}, "
                f"the phase counts in {RATE_UNITS[unit]}"
            )
        parts = (name, part, f"us_per_{unit}") if part else (name, f"us_per_{unit}")
        # A rate in MFlop/s or MByte/s is one in units per microsecond.
        return self.symbol(".".join(parts), quantity.reciprocal(1, f"us/{unit}"))

    def message(self, key: str, pattern: str) -> Expr | Missing:
        """Return the symbol of ``alpha_us`` or ``beta_us_per_byte``, the pattern's own first."""
        if pattern:
            own = self.machine.quantity("phases", "patterns", pattern, key)
            if own is not None:
                return self.symbol(f"message.{pattern}.{key}", own)
        common = self.machine.quantity("phases", key)
        if common is None:
            return Missing(
                f"{key} of messages on {self.machine.name}",
                f"run `advise calibrate`, or state it in a copy of the profile under /phases/{key}",
            )
        return self.symbol(f"message.{key}", common)

    def symbol(self, name: str, quantity: Quantity) -> Expr:
        self.found[name] = quantity
        return sym(name)


def derived_quantities(application: Application, words: Mapping[str, Word]) -> dict[str, Expr]:
    """Return every derived quantity of a variant over sizes and parameters only.

    Raises
    ------
    SubjectError
        One is defined twice for these words.
    """
    derived: dict[str, Expr] = {}
    for definition in application.definitions:
        if not definition.when.holds(words):
            continue
        if definition.name in derived:
            raise SubjectError(
                f"{application.origin}: {definition.place}: {definition.name} is defined twice "
                f"for {_shown(words)}"
            )
        derived[definition.name] = substitute(definition.value, derived)
    return derived


def written_out(
    application: Application, expr: Expr, derived: Mapping[str, Expr], place: str
) -> Expr:
    """Return `expr` over sizes and parameters only.

    Raises
    ------
    SubjectError
        It needs a quantity that this variant does not define.
    """
    whole = substitute(expr, derived)
    undefined = free_symbols(whole) & {d.name for d in application.definitions}
    if undefined:
        raise SubjectError(
            f"{application.origin}: {place}: {min(undefined)} is not defined for this choice, "
            "or only after its use"
        )
    return whole


def _phase_us(phase: Phase, lookup: _Lookup) -> Expr | Missing:
    if phase.per_op is None:
        rate = lookup.rate(phase.rate, "", phase.unit)
        return rate if isinstance(rate, Missing) else phase.count * rate
    outer = lookup.rate(phase.rate, "outer", phase.unit)
    inner = lookup.rate(phase.rate, "inner", phase.unit)
    if isinstance(outer, Missing):
        return outer
    if isinstance(inner, Missing):
        return inner
    return phase.count * substitute(phase.per_op, {"a": outer, "b": inner})


def _exchange_us(exchange: Exchange, lookup: _Lookup) -> Expr | Missing:
    alpha = lookup.message("alpha_us", exchange.pattern)
    beta = lookup.message("beta_us_per_byte", exchange.pattern)
    if isinstance(alpha, Missing):
        return alpha
    if isinstance(beta, Missing):
        return beta
    cost = exchange.count * (alpha + beta * exchange.bytes)
    series = exchange.sum
    return cost if series is None else summation(series.index, series.from_, series.to, cost)


def _domains(
    application: Application, machine: Machine, derived: Mapping[str, Expr]
) -> tuple[Domain, ...]:
    """Return the ranges that the machine states for the application's rates."""
    ranges = machine.section("phases", "applications", application.name, "ranges")
    domains: list[Domain] = []
    for what, stated in ranges.items():
        place = f"{machine.origin}: /phases/applications/{application.name}/ranges/{what}"
        if not isinstance(stated, dict):
            raise SubjectError(f"{place}: expected an object")
        text, low, high = (stated.get(key) for key in ("quantity", "low", "high"))
        if (
            not isinstance(text, str)
            or not isinstance(low, int | float)
            or not isinstance(high, int | float)
            or not low <= high
        ):
            raise SubjectError(f'{place}: needs a "quantity" and numbers "low" <= "high"')
        try:
            quantity = substitute(parse(text), derived)
        except ExprError as error:
            raise SubjectError(f"{place}/quantity: {error}") from error
        domains.append(Domain(what, quantity, float(low), float(high)))
    return tuple(domains)


def _shown(words: Mapping[str, Word]) -> str:
    return ", ".join(f"{name} = {word}" for name, word in words.items())
