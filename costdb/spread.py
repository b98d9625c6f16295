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
from collections.abc import Callable, Iterable, Mapping

from costdb.estimate import Ratio
from costdb.multilinear import Box, Interval, Reduced, extremes
from costdb.quantity import Quantity


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
