"""Numbers from prices: estimates in seconds, ratios of two prices, and where the better one flips.

Every machine coefficient has an interval. An estimate's ends put each coefficient at whichever
of its ends makes the price least or greatest, except residuals, which are independent of one
another (:mod:`costdb.spread`); a ratio moves the coefficients that both prices share together, so
what is uncertain about both alike cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TypeGuard

from costdb.estimate import Domain, Estimate, Priced, Ratio, Seconds, TermEstimate
from costdb.expr import Expr, ExprError, compile_scalar, evaluate, free_symbols, num
from costdb.expr.exact import exact
from costdb.expr.functions import Reduction
from costdb.expr.scalar import ScalarFunction
from costdb.multilinear import (
    Box,
    Interval,
    Multilinear,
    Point,
    Reduced,
    extremes,
    greatest_quotient,
    reduce_price,
    search,
)
from costdb.quantity import Provenance, Quantity
from costdb.spread import independent_of, spread, spread_of_ratio

_SECONDS_PER_MICROSECOND = 1e-6
_DENSE_VALUES = 256
_GEOMETRIC_STEP = 1.08
_FEW_VALUES = 16
_WIDE_STEP = 1.5
_ROUNDING = 1e-9
"""Relative difference of two prices below which their order is found exactly."""
_TRUST = tuple(Provenance)

Bindings = Mapping[str, int | float]


@dataclass(frozen=True, slots=True)
class Crossover:
    """Where the better of two prices changes, along one variable.

    Attributes
    ----------
    variable : str
        What varies.
    flips : tuple of int
        Each the first value at which the other price is the better one, ascending.
    after_wins_first : bool
        Whether ``after`` is strictly cheaper at `low`.
    low, high : int
        Values scanned, inclusive.
    dense_to : int
        Every value up to this one was tried; above it, steps of some per cent (of a half, where
        formulas hold sums without closed form), with an exact search between two that differ.
    """

    variable: str
    flips: tuple[int, ...]
    after_wins_first: bool
    low: int
    high: int
    dense_to: int


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
    _check_bindings(bindings)
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
        high=high,
        terms=tuple(terms),
        provenance=_worst(priced.coefficients[name] for name in whole.coefficients),
        in_range=not remarks,
        remarks=remarks,
    )


def middle(priced: Priced, bindings: Bindings) -> Seconds:
    """Return the predicted time with every coefficient at its middle, and nothing else.

    Raises
    ------
    ExprError
        As :func:`evaluate_price`.
    """
    _check_bindings(bindings)
    values = {name: quantity.value for name, quantity in priced.coefficients.items()}
    microseconds = float(evaluate(priced.microseconds, {**bindings, **values}))
    return Seconds(max(0.0, microseconds) * _SECONDS_PER_MICROSECOND)


def compare(before: Priced, after: Priced, bindings: Bindings) -> Ratio:
    """Return predicted time `before` over `after`, with shared coefficients moved together.

    Exact where both prices are multilinear in their coefficients and positive over the
    intervals; otherwise the best of a search from several corners.

    Raises
    ------
    ExprError
        As :func:`evaluate_price`; or the prices disagree on a coefficient.
    """
    _check_bindings(bindings)
    merged = merge_coefficients((before.coefficients, after.coefficients))
    names, box = frozenset(merged), _box(merged)
    above = reduce_price(before.microseconds, bindings, names)
    below = reduce_price(after.microseconds, bindings, names)
    used = sorted(above.coefficients | below.coefficients)
    given = {name: box[name] for name in used}
    return spread_of_ratio(
        lambda box: _ratio_over(above, below, box), given, independent_of(merged)
    )


def _ratio_over(above: Reduced, below: Reduced, box: Box) -> Ratio:
    mid = _quotient(above, below, {name: interval.mid for name, interval in box.items()})
    if _positive_multilinear(above, box) and _positive_multilinear(below, box):
        greatest = greatest_quotient(above, below, box)
        inverse = greatest_quotient(below, above, box)
        if greatest is not None and inverse is not None:
            return Ratio(min(1 / inverse, mid), mid, max(greatest, mid))
    high = search(lambda point: _quotient(above, below, point), list(box), box)
    low = -search(lambda point: -_quotient(above, below, point), list(box), box)
    return Ratio(low, mid, high)


def crossover(
    before: Priced,
    after: Priced,
    variable: str,
    bindings: Bindings,
    low: int = 1,
    high: int = 1_000_000,
) -> Crossover:
    """Return the whole values of `variable` at which the better price changes.

    Coefficients stand at their middle. A binding of `variable` itself is ignored. Two flips
    between neighbouring steps above `dense_to` go unseen.

    Raises
    ------
    ExprError
        A size other than `variable` is unbound, or a formula has no value somewhere.
    """
    if low > high:
        raise ExprError(f"the range {low}..{high} of {variable!r} is empty")
    others = {name: value for name, value in bindings.items() if name != variable}
    _check_bindings(others)
    merged = merge_coefficients((before.coefficients, after.coefficients))
    values: dict[str, int | float] = {**others, **{n: q.value for n, q in merged.items()}}
    after_wins = _comparison(before.microseconds, after.microseconds, variable, values)
    # a sum that has no closed form takes time in proportion to its range, at every value
    slow = _enumerates(before.microseconds) or _enumerates(after.microseconds)
    dense, step = (_FEW_VALUES, _WIDE_STEP) if slow else (_DENSE_VALUES, _GEOMETRIC_STEP)
    dense_to = min(high, low + dense - 1)
    stops = list(range(low, dense_to + 1))
    while stops[-1] < high:
        stops.append(min(high, math.ceil(stops[-1] * step)))
    wins = [after_wins(stop) for stop in stops]
    flips = [
        _first_unlike(after_wins, left, right, won)
        for (left, right), (won, then) in zip(pairwise(stops), pairwise(wins), strict=True)
        if won != then
    ]
    return Crossover(variable, tuple(flips), wins[0], low, high, dense_to)


def _enumerates(expr: Expr) -> bool:
    """Return whether a formula holds a sum or maximum that has no closed form."""
    pending, seen = [expr], {expr}
    while pending:
        part = pending.pop()
        if isinstance(part, Reduction):
            return True
        fresh = [child for child in part.children if child not in seen]
        seen.update(fresh)
        pending += fresh
    return False


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


def _comparison(
    before: Expr, after: Expr, variable: str, values: Bindings
) -> Callable[[int], bool]:
    """Return a test of whether `after` is less than `before` at a value of `variable`.

    Floats decide where the difference is far above their rounding, exact arithmetic elsewhere.
    """
    difference = before - after
    if difference == num(0):
        return lambda value: False
    fractions = {name: exact(value) for name, value in values.items()}
    if _enumerates(before) or _enumerates(after):
        # sums of whole numbers are as quick as those of floats, and remembered where the same
        # price is compared with several others
        def after_is_less(value: int) -> bool:
            point = {**fractions, variable: value}
            return evaluate(before, point) > evaluate(after, point)

        return after_is_less
    names = tuple(sorted(free_symbols(before) | free_symbols(after)))
    unbound = [name for name in names if name != variable and name not in values]
    if unbound:
        raise ExprError(f"{unbound[0]!r} has no value")
    gain, size = _compiled(difference, names), _compiled(before, names)
    point: list[int | float] = [values.get(name, 0) for name in names]
    place = names.index(variable) if variable in names else None

    def after_wins(value: int) -> bool:
        if place is not None:
            point[place] = value
        found = float(gain(*point))
        if abs(found) > _ROUNDING * abs(float(size(*point))):
            return found > 0
        return evaluate(difference, {**fractions, variable: value}) > 0

    return after_wins


@lru_cache(maxsize=16)
def _compiled(expr: Expr, names: tuple[str, ...]) -> ScalarFunction:
    # the formula is the same whichever of its names varies
    return compile_scalar(expr, names)


def _first_unlike(test: Callable[[int], bool], left: int, right: int, at_left: bool) -> int:
    while right - left > 1:
        middle = (left + right) // 2
        if test(middle) == at_left:
            left = middle
        else:
            right = middle
    return right


def _positive_multilinear(price: Reduced, box: Box) -> TypeGuard[Multilinear]:
    return isinstance(price, Multilinear) and extremes(price, box).low > 0


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


def _check_bindings(bindings: Bindings) -> None:
    for name, value in bindings.items():
        if not math.isfinite(value):
            raise ExprError(f"{name!r} is not a finite number")
