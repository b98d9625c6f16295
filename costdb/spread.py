"""How intervals of several coefficients make one: what is independent does not add up.

A *residual* is what a calibration left unexplained of one class of work: a factor around 1 whose
ends are quantiles of measured over predicted time at points that no fit had seen. Misses of
different classes know nothing of one another, so that a price which several of them enter does
not miss by all at once. With ``T`` linear in each residual ``r_k``, ``T - T_mid`` is the sum of
the parts ``A_k * (r_k - 1)``, and the squares of independent deviations add:
``high - mid = sqrt(sum (A_k * (high_k - 1))**2)``, and so for the low end. Deviations that are
normal keep the probability of the quantiles exactly; where one term makes up most of the time,
whatever its distribution, its own quantiles are what is left. Everything else that is uncertain
(a published range, a locality that nobody knows) may be wrong in the same direction everywhere,
so that its ends do add up. Within a class the residual is one for all calls: equal calls repeat
their miss, and it never averages out over a loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping

from costdb.estimate import Ratio
from costdb.expr import substitute, sym
from costdb.multilinear import Box, General, Interval, Multilinear, Names, Reduced, extremes
from costdb.quantity import Quantity

# Which misses two programs have in common, for the interval of their ratio.
#
# A residual is how far a class of work misses what is predicted of it: by as much for equal calls,
# by something else for a call of another shape or on other memory, as the points show that it was
# found from. So of two programs only what both do alike misses alike, and cancels in their ratio:
# of each product of coefficients the lesser of both amounts. What either does beyond that has a
# miss of its own.

_ABOVE, _BELOW = ".above", ".below"
_SAME = 1e-9
"""A part of the greater amount: what is left of equal amounts when one is taken from the other."""


def with_own_misses(
    above: Reduced, below: Reduced, box: Box, residuals: Collection[str]
) -> tuple[Reduced, Reduced, Box]:
    """Return two prices in which residuals stand for what both do alike, or for one's own work.

    Parameters
    ----------
    above, below : Multilinear or General
    box : mapping of str to Interval
    residuals : collection of str
        Coefficients of the box that deviate independently of all others.

    Returns
    -------
    above, below : Multilinear or General
        With more coefficients, equal to those given where all residuals are.
    box : mapping of str to Interval
        That of all coefficients; those which were not in the box given are residuals.
    """
    names = frozenset(residuals) & above.coefficients & below.coefficients
    if not names or above == below:
        return above, below, box
    if isinstance(above, Multilinear) and isinstance(below, Multilinear):
        first: Reduced = _split(above.weights, below.weights, names, _ABOVE)
        second: Reduced = _split(below.weights, above.weights, names, _BELOW)
    else:
        first, second = _renamed(above, names, _ABOVE), below
    own = {
        name + mark: box[name]
        for name in names
        for mark in (_ABOVE, _BELOW)
        if name + mark in first.coefficients | second.coefficients
    }
    return first, second, {**box, **own}


def _split(
    weights: Mapping[Names, float], others: Mapping[Names, float], names: frozenset[str], mark: str
) -> Multilinear:
    made: dict[Names, float] = {}
    for product, weight in weights.items():
        both = min(weight, others.get(product, 0.0)) if weight > 0 else 0.0
        if names.isdisjoint(product):
            both = weight
        rest = weight - max(both, 0.0)
        if abs(rest) <= _SAME * abs(weight):
            made[product] = made.get(product, 0.0) + weight
            continue
        if both > 0:
            made[product] = made.get(product, 0.0) + both
        own = tuple(sorted(name + mark if name in names else name for name in product))
        made[own] = made.get(own, 0.0) + rest
    return Multilinear(made)


def _renamed(price: Reduced, names: frozenset[str], mark: str) -> Reduced:
    if isinstance(price, General):
        return General(substitute(price.reduced, {name: sym(name + mark) for name in names}))
    return _split(price.weights, {}, names, mark)


def spread(price: Reduced, box: Box, independent: Iterable[str]) -> Interval:
    """Return middle and ends of a price of which some coefficients are independent of all others.

    With at most one such coefficient this is :func:`costdb.multilinear.extremes`.
    """
    alone = sorted(price.coefficients & set(independent))
    if len(alone) < 2:
        return extremes(price, box)
    calm = _at_middle(box, alone)
    centre = extremes(price, calm)
    below = above = 0.0
    for name in alone:
        moved = extremes(price, {**calm, name: box[name]})
        below += (centre.low - moved.low) ** 2
        above += (moved.high - centre.high) ** 2
    return Interval(centre.low - math.sqrt(below), centre.mid, centre.high + math.sqrt(above))


def spread_of_ratio(ends: Callable[[Box], Ratio], box: Box, independent: Iterable[str]) -> Ratio:
    """Return a ratio's middle and ends; deviations of a ratio are its logarithm's.

    Parameters
    ----------
    ends : callable
        Returns the extremes of the ratio over a box.
    """
    alone = sorted(set(independent) & set(box))
    if len(alone) < 2:
        return ends(box)
    calm = _at_middle(box, alone)
    centre = ends(calm)
    moved = [ends({**calm, name: box[name]}) for name in alone]
    if not all(math.isfinite(one.high) and one.low > 0 for one in (centre, *moved)):
        return ends(box)
    below = math.hypot(*(math.log(centre.low / one.low) for one in moved))
    above = math.hypot(*(math.log(one.high / centre.high) for one in moved))
    return Ratio(centre.low * math.exp(-below), centre.mid, centre.high * math.exp(above))


def independent_of(coefficients: Mapping[str, Quantity]) -> list[str]:
    """Return the coefficients that deviate independently of all others."""
    return [name for name, quantity in coefficients.items() if quantity.independent]


def _at_middle(box: Box, names: Iterable[str]) -> Box:
    return {
        **box,
        **{name: Interval(box[name].mid, box[name].mid, box[name].mid) for name in names},
    }
