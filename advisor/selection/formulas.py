"""Closed forms of variants as functions of plain numbers, compiled once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from advisor.analysis.lower import Unpriced
from advisor.ir.kernel import Kernel
from advisor.ranking.compare import Costed, cost
from costdb.estimate import Missing, Priced
from costdb.expr import Expr, ExprError, compile_scalar, free_symbols, num, substitute
from costdb.expr.exact import exact
from costdb.expr.scalar import ScalarFunction
from costdb.machines import Machine


@dataclass(frozen=True, slots=True)
class Range:
    """A compiled check that a coefficient is used where it was calibrated."""

    what: str
    amount: Expr
    quantity: ScalarFunction
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Formula:
    """The price of one variant.

    Attributes
    ----------
    priced : Priced
        With coefficients as symbols, for explanations.
    time : Expr
        In microseconds over sizes alone, every coefficient at its middle.
    time_us : callable
        The same, of the values of `names`.
    ranges : tuple of Range
    """

    priced: Priced
    time: Expr
    time_us: ScalarFunction
    ranges: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class Formulas:
    """The prices of all variants over the same sizes.

    Attributes
    ----------
    names : tuple of str
        Sizes, in the order of the arguments of all formulas.
    formulas : tuple of Formula
    lacking : str
        Why a choice is not possible; empty where it is.
    """

    names: tuple[str, ...]
    formulas: tuple[Formula, ...]
    lacking: str = ""


def formulas_of(kernels: Sequence[Kernel], machine: Machine) -> Formulas:
    """Return the compiled prices of variants; a reason instead as soon as one has none."""
    prices: list[Priced] = []
    for kernel in kernels:
        try:
            found = cost(kernel, machine)
        except Unpriced as unknown:
            place = f"line {unknown.span.start_line}"
            return Formulas((), (), f"`{kernel.name}` has no price: {unknown.reason} ({place})")
        except ExprError as error:
            return Formulas((), (), f"`{kernel.name}` has no price: {error}")
        if isinstance(found, Missing):
            return Formulas((), (), f"`{kernel.name}` has no price: {found.what}; {found.remedy}")
        assert isinstance(found, Costed)
        prices.append(found.priced)
    return _compiled(prices)


def _compiled(prices: Sequence[Priced]) -> Formulas:
    bound = [_with_coefficients(price) for price in prices]
    used: set[str] = set()
    for time, ranges in bound:
        used |= free_symbols(time).union(*(free_symbols(quantity) for quantity in ranges))
    names = tuple(sorted(used))
    try:
        made = tuple(
            Formula(
                price,
                time,
                compile_scalar(time, names),
                tuple(
                    Range(
                        domain.what,
                        quantity,
                        compile_scalar(quantity, names),
                        domain.low,
                        domain.high,
                    )
                    for domain, quantity in zip(price.domains, ranges, strict=True)
                ),
            )
            for price, (time, ranges) in zip(prices, bound, strict=True)
        )
    except ExprError as error:
        return Formulas((), (), f"a price cannot be compiled: {error}")
    return Formulas(names, made)


def _with_coefficients(price: Priced) -> tuple[Expr, tuple[Expr, ...]]:
    """Return time and checked quantities over sizes alone."""
    middles: Mapping[str, Expr] = {
        name: num(exact(quantity.value)) for name, quantity in price.coefficients.items()
    }
    quantities = tuple(substitute(domain.quantity, middles) for domain in price.domains)
    return substitute(price.microseconds, middles), quantities
