"""Which misses two programs have in common, for the interval of their ratio.

A residual is how far a class of work misses what is predicted of it: by as much for equal calls,
by something else for a call of another shape or on other memory, as the points show that it was
found from. So of two programs only what both do alike misses alike, and cancels in their ratio:
of each product of coefficients the lesser of both amounts. What either does beyond that has a
miss of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from costdb.expr import substitute, sym
from costdb.multilinear import Box, General, Multilinear, Names, Reduced

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
