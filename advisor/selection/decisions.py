"""What was decided and why; the prices behind it are found when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from advisor.selection.plans import Plan

TIE = 1.01
"""Predicted times whose quotient is below this are equal: the first is taken."""

PREDICTED, TIED, OUTSIDE, UNPRICED = "predicted", "tie", "outside range", "no price"
"""Why a variant was taken; all but the first mean the first variant."""


@dataclass(frozen=True, slots=True)
class Prices:
    """What a decision follows from.

    Attributes
    ----------
    variant : int
    why, because : str
        In one of the words above, and in a sentence.
    sizes : mapping of str to number
    times_us : tuple of float
        Predicted, by variant; empty without prices.
    """

    variant: int
    why: str
    because: str
    sizes: Mapping[str, int | float]
    times_us: tuple[float, ...] = ()


class Decision:
    """Which variant is taken for arguments of certain sizes, and why.

    Attributes
    ----------
    variant : int
    why : str
        ``"predicted"``, ``"tie"``, ``"outside range"`` or ``"no price"``.
    """

    __slots__ = ("_plan", "_prices", "_values", "variant", "why")

    def __init__(
        self, variant: int, why: str, plan: Plan | None, values: tuple[int | float, ...]
    ) -> None:
        self.variant = variant
        self.why = why
        self._plan = plan
        self._values = values
        self._prices: Prices | None = None

    @property
    def prices(self) -> Prices:
        """What it follows from."""
        if self._prices is None:
            assert self._plan is not None
            self._prices = prices_at(self._plan, self._values)
        return self._prices

    @property
    def because(self) -> str:
        """Why, in a sentence."""
        return self.prices.because

    @property
    def sizes(self) -> Mapping[str, int | float]:
        """By name."""
        return self.prices.sizes

    @property
    def times_us(self) -> tuple[float, ...]:
        """Predicted, by variant; empty without prices."""
        return self.prices.times_us


def priced(prices: Prices) -> Decision:
    """Return the decision that follows from prices."""
    decision = Decision(prices.variant, prices.why, None, ())
    decision._prices = prices
    return decision


def without_price(because: str) -> Decision:
    """Return the decision for the first variant, for want of a price."""
    return priced(Prices(0, UNPRICED, because, {}))


def prices_at(plan: Plan, values: tuple[int | float, ...]) -> Prices:
    """Price every variant of a plan at the values of its sizes, and say which is taken."""
    formulas = plan.formulas
    sizes = dict(zip(formulas.names, values, strict=True))
    if any(value < 1 for value in values):
        return Prices(0, OUTSIDE, "a size is below 1, where no model holds", sizes)
    times = formulas.times_us(values)
    outside = formulas.outside(values)
    if outside is not None:
        place, why = outside
        because = f"{plan.variants[place]} is outside the calibrated range: {why}"
        return Prices(0, OUTSIDE, because, sizes, times)
    best = min(range(len(times)), key=times.__getitem__)
    if times[0] <= times[best] * TIE:
        if best == 0 and all(t > times[0] * TIE for t in times[1:]):
            return Prices(0, PREDICTED, "predicted to be fastest", sizes, times)
        because = f"as fast as any, within {TIE - 1:.0%}, so the first one is taken"
        return Prices(0, TIED, because, sizes, times)
    return Prices(best, PREDICTED, "predicted to be fastest", sizes, times)
