"""Numbers from prices: estimates in seconds and ratios of two prices.

Every machine coefficient has an interval. An estimate's ends put each coefficient at whichever
of its ends makes the price least or greatest, except residuals, which are independent of one
another (:mod:`costdb.intervals`); a ratio moves the coefficients that both prices share together,
so what is uncertain about both alike cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from costdb.estimate import Domain, Estimate, Priced, Ratio, Seconds, TermEstimate
from costdb.expr import ExprError
from costdb.expr.evaluate import Evaluator
from costdb.intervals import (
    Box,
    Interval,
    Point,
    Reduced,
    independent_of,
    multipliers,
    reduce_price,
    search,
    settled,
    spread,
    spread_of_ratio,
    with_own_misses,
)
from costdb.quantity import Provenance, Quantity
from costdb.repetition import with_repetition

_SECONDS_PER_MICROSECOND = 1e-6
_TRUST = tuple(Provenance)

Bindings = Mapping[str, int | float]


def evaluate_price(priced: Priced, bindings: Bindings) -> Estimate:
    """Return the estimate of a price for given sizes.

    Parameters
    ----------
    priced : Priced
        In microseconds, over sizes and coefficients.
    bindings : mapping of str to int or float
        A value for every size; names that do not occur are ignored.

    Returns
    -------
    Estimate
        In seconds. A formula used where it turns negative counts as 0, and a remark says so.

    Raises
    ------
    ExprError
        A size is unbound or not a finite number, or the formula has no value there.
    """
    check_bindings(bindings)
    names = frozenset(priced.coefficients)
    box = _box(priced.coefficients)
    whole = reduce_price(priced.microseconds, bindings, names)
    independent = independent_of(priced.coefficients)
    interval = spread(whole, box, independent)
    remarks = _extrapolations(priced, bindings, box)
    if interval.mid < 0:
        remarks = (*remarks, "the formula is negative at these sizes; taken as 0")
    terms = []
    for term in priced.terms:
        part = spread(reduce_price(term.microseconds, bindings, names), box, independent)
        low, mid, high = _seconds(part)
        terms.append(TermEstimate(term.label, term.model, low, mid, high))
    low, mid, high = _seconds(interval)
    return Estimate(
        low=low,
        mid=mid,
        high=Seconds(math.inf) if priced.omitted else high,
        terms=tuple(terms),
        provenance=_worst(priced.coefficients[name] for name in whole.coefficients),
        in_range=not remarks,
        remarks=remarks,
        omitted=priced.omitted,
    )


def middle(priced: Priced, bindings: Bindings) -> Seconds:
    """Return the predicted time with every coefficient at its middle, and nothing else.

    Raises
    ------
    ExprError
        As :func:`evaluate_price`.
    """
    return middles([priced])(bindings)[0]


def fixed_part(priced: Priced, bindings: Bindings) -> Seconds:
    """Return what is paid for each call and each step, however little data it is for.

    Raises
    ------
    ExprError
        As :func:`evaluate_price`.
    """
    fixed = {
        name: replace(quantity, value=0.0, low=0.0) if "/" in quantity.unit else quantity
        for name, quantity in priced.coefficients.items()
    }
    return middle(replace(priced, coefficients=fixed), bindings)


def middles(prices: Sequence[Priced]) -> Callable[[Bindings], list[Seconds]]:
    """Return what gives the times of several prices at sizes, each as :func:`middle` does.

    Variants share most of their parts, and one set of sizes much with the next.
    """
    try:
        merged = merge_coefficients([priced.coefficients for priced in prices])
    except ExprError:
        # one name stands for two numbers
        return lambda bindings: [middle(priced, bindings) for priced in prices]
    values = {name: quantity.value for name, quantity in merged.items()}
    evaluator = Evaluator([priced.microseconds for priced in prices])

    def at(bindings: Bindings) -> list[Seconds]:
        check_bindings(bindings)
        found = evaluator.at({**bindings, **values})
        return [Seconds(max(0.0, float(one)) * _SECONDS_PER_MICROSECOND) for one in found]

    return at


def compare(before: Priced, after: Priced, bindings: Bindings) -> Ratio:
    """Return predicted time `before` over `after`, with shared coefficients moved together.

    How far two launches differ is part of the interval where the machine states it.

    Exact where both prices are multilinear in their coefficients and positive over the
    intervals; otherwise the best of a search from several corners.

    What both omit alike takes the same time in both, nobody knows how long: the ratio can be
    anything between that of the known parts and 1. What one of them omits alone leaves the ratio
    without an upper end, or without a lower one.

    Raises
    ------
    ExprError
        As :func:`evaluate_price`; or the prices disagree on a coefficient.
    """
    found = _compare_known(before, after, bindings)
    above, below = set(before.omitted), set(after.omitted)
    low, high = found.low, found.high
    if above & below:
        low, high = min(low, 1.0), max(high, 1.0)
    return Ratio(0.0 if below - above else low, found.mid, math.inf if above - below else high)


def _compare_known(before: Priced, after: Priced, bindings: Bindings) -> Ratio:
    check_bindings(bindings)
    merged = merge_coefficients((before.coefficients, after.coefficients))
    names, box = frozenset(merged), _box(merged)
    above = reduce_price(before.microseconds, bindings, names)
    below = reduce_price(after.microseconds, bindings, names)
    used = sorted(above.coefficients | below.coefficients)
    residuals = independent_of(merged)
    given = {name: box[name] for name in used}
    one, other, wider = with_own_misses(above, below, given, residuals)
    own = wider.keys() - given.keys()
    found = spread_of_ratio(lambda box: _ratio_over(one, other, box), wider, {*residuals, *own})
    return with_repetition(found, before.repeats, after.repeats)


def _ratio_over(above: Reduced, below: Reduced, box: Box) -> Ratio:
    above, below = settled(above, box), settled(below, box)
    mid = _quotient(above, below, {name: interval.mid for name, interval in box.items()})
    fixed = multipliers(above, below)
    high = search(lambda point: _quotient(above, below, point), list(box), box, fixed)
    low = -search(lambda point: -_quotient(above, below, point), list(box), box, fixed)
    return Ratio(min(low, mid), mid, max(high, mid))


def merge_coefficients(mappings: Sequence[Mapping[str, Quantity]]) -> dict[str, Quantity]:
    """Return all coefficients together.

    Raises
    ------
    ExprError
        One symbol stands for two different quantities.
    """
    merged: dict[str, Quantity] = {}
    for mapping in mappings:
        for name, quantity in mapping.items():
            if merged.setdefault(name, quantity) != quantity:
                raise ExprError(f"the coefficient {name!r} has two different values")
    return merged


def _quotient(above: Reduced, below: Reduced, point: Point) -> float:
    before, after = max(above.at(point), 0.0), max(below.at(point), 0.0)
    if after > 0:
        return before / after
    return 1.0 if before == 0 else math.inf


def _box(coefficients: Mapping[str, Quantity]) -> Box:
    return {
        name: Interval(quantity.low, quantity.value, quantity.high)
        for name, quantity in coefficients.items()
    }


def _seconds(interval: Interval) -> tuple[Seconds, Seconds, Seconds]:
    low, mid, high = (
        Seconds(max(0.0, part) * _SECONDS_PER_MICROSECOND)
        for part in (interval.low, interval.mid, interval.high)
    )
    return low, mid, high


def _worst(quantities: Iterable[Quantity]) -> Provenance:
    known = [quantity.provenance for quantity in quantities]
    # Without any coefficient the time follows from what the input states.
    return max(known, key=_TRUST.index, default=Provenance.DERIVED)


def _extrapolations(priced: Priced, bindings: Bindings, box: Box) -> tuple[str, ...]:
    names = frozenset(priced.coefficients)
    middles = {name: interval.mid for name, interval in box.items()}
    return tuple(
        dict.fromkeys(
            remark
            for domain in priced.domains
            if (remark := _extrapolation(domain, bindings, names, middles))
        )
    )


def _extrapolation(
    domain: Domain, bindings: Bindings, names: frozenset[str], middles: Point
) -> str:
    value = reduce_price(domain.quantity, bindings, names).at(middles)
    if domain.low <= value <= domain.high:
        return ""
    return f"{domain.what}: {value:g} is outside the calibrated {domain.low:g} to {domain.high:g}"


def check_bindings(bindings: Bindings) -> None:
    """Refuse sizes that are not finite numbers.

    Raises
    ------
    ExprError
    """
    for name, value in bindings.items():
        if not math.isfinite(value):
            raise ExprError(f"{name!r} is not a finite number")
