"""Prices of variants as functions of their sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from advisor.analysis.lower import Unpriced
from advisor.ir.kernel import Kernel
from advisor.ranking.compare import Costed, cost
from costdb.estimate import Missing, Priced
from costdb.expr import Expr, ExprError, free_symbols, num, substitute
from costdb.expr.evaluate import Evaluator
from costdb.machines import Machine


@dataclass(frozen=True, slots=True)
class Formulas:
    """The prices of all variants over the same sizes.

    Attributes
    ----------
    names : tuple of str
        Sizes, in the order of their values in :meth:`at`.
    prices : tuple of Priced
        With coefficients as symbols, for explanations.
    lacking : str
        Why a choice is not possible; empty where it is.
    """

    names: tuple[str, ...]
    prices: tuple[Priced, ...]
    lacking: str = ""
    _bound: tuple[tuple[Expr, tuple[Expr, ...]], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_bound", tuple(map(_with_coefficients, self.prices)))

    def times_us(self, values: Sequence[int | float]) -> tuple[float, ...]:
        """Return the predicted time of each variant, every coefficient at its middle."""
        # one evaluator a call: calls may come from several threads
        found = Evaluator([time for time, _ in self._bound])
        return tuple(map(float, found.at(dict(zip(self.names, values, strict=True)))))

    def outside(self, values: Sequence[int | float]) -> tuple[int, str] | None:
        """Return the first variant that is used where its model was not calibrated, and why."""
        evaluator = Evaluator([amount for _, amounts in self._bound for amount in amounts])
        found = iter(evaluator.at(dict(zip(self.names, values, strict=True))))
        for place, price in enumerate(self.prices):
            for domain in price.domains:
                value = float(next(found))
                if not domain.low <= value <= domain.high:
                    span = f"{domain.low:.4g} to {domain.high:.4g}"
                    return place, f"{domain.what}: {value:.4g} is not in {span}"
        return None


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
    used: set[str] = set()
    for price in prices:
        used |= free_symbols(price.microseconds) - price.coefficients.keys()
        for domain in price.domains:
            used |= free_symbols(domain.quantity) - price.coefficients.keys()
    return Formulas(tuple(sorted(used)), tuple(prices))


def _with_coefficients(price: Priced) -> tuple[Expr, tuple[Expr, ...]]:
    """Return time and checked quantities over sizes alone."""
    middles: Mapping[str, Expr] = {
        name: num(quantity.value) for name, quantity in price.coefficients.items()
    }
    quantities = tuple(substitute(domain.quantity, middles) for domain in price.domains)
    return substitute(price.microseconds, middles), quantities
