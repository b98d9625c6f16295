"""Prices as functions of machine coefficients alone, and their extremes over a box of them.

With all sizes bound, most prices are multilinear in the coefficients: sums of products in which
no coefficient occurs twice. Such a function, and a quotient of two, has its extremes at corners
of the box: once the few coefficients that multiply others are put at a corner, ascent by single
coefficients finds them. Any other price is searched so from several points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TypeAlias

from costdb.expr import Expr, ExprError, free_symbols, substitute
from costdb.expr.evaluate import Evaluator
from costdb.expr.evaluate import Point as Sizes
from costdb.expr.functions import Conditional, Sum
from costdb.expr.nodes import Add, Mul, Sym, Value

_MOST_PRODUCTS = 2_000
_MOST_MULTIPLIERS = 5
_MOST_SWEEPS = 20

Point: TypeAlias = Mapping[str, float]
Names: TypeAlias = tuple[str, ...]
_Weights: TypeAlias = dict[Names, Value]


@dataclass(frozen=True, slots=True)
class Interval:
    """A coefficient's ends and middle, or a value's."""

    low: float
    mid: float
    high: float


Box: TypeAlias = Mapping[str, Interval]


@dataclass(frozen=True, slots=True)
class Multilinear:
    """Sum of ``weight * product of coefficients``; the constant has the empty product."""

    weights: Mapping[Names, float]

    @property
    def coefficients(self) -> frozenset[str]:
        """Coefficients whose value matters."""
        return frozenset(name for names in self.weights for name in names)

    def at(self, point: Point) -> float:
        """Return the value at `point`."""
        total = 0.0
        for names, weight in self.weights.items():
            for name in names:
                weight *= point[name]
            total += weight
        return total

    def given(self, fixed: Point) -> Multilinear:
        """Return the function that is left when some coefficients have a value."""
        left: dict[Names, float] = {}
        for names, weight in self.weights.items():
            for name in names:
                weight *= fixed.get(name, 1.0)
            rest = tuple(name for name in names if name not in fixed)
            left[rest] = left.get(rest, 0.0) + weight
        return Multilinear(left)


@dataclass(frozen=True, slots=True)
class General:
    """A price that is not multilinear, reduced to an expression over coefficients."""

    reduced: Expr
    _evaluator: Evaluator = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_evaluator", Evaluator((self.reduced,)))

    @property
    def coefficients(self) -> frozenset[str]:
        """Coefficients whose value matters."""
        return free_symbols(self.reduced)

    def at(self, point: Point) -> float:
        """Return the value at `point`."""
        return float(self._evaluator.at(point)[0])


Reduced: TypeAlias = Multilinear | General


def reduce_price(expr: Expr, sizes: Mapping[str, Value], coefficients: frozenset[str]) -> Reduced:
    """Bind all sizes in `expr`, leaving a function of the coefficients.

    Raises
    ------
    ExprError
        A symbol is neither a size nor a coefficient, or the expression has no value.
    """
    used = free_symbols(expr) - coefficients
    for name in sorted(used):
        if name not in sizes:
            raise ExprError(f"{name!r} has no value")
    weights = _weights(expr, Sizes(sizes), coefficients)
    if weights is None:
        return General(substitute(expr, {name: sizes[name] for name in used}))
    return Multilinear({names: _finite(weight) for names, weight in weights.items() if weight})


def extremes(price: Reduced, box: Box) -> Interval:
    """Return the least value, the value at the middle, and the greatest value over `box`.

    Exact for multilinear prices and for all that are monotone in each coefficient, whichever
    way; otherwise the best of a search from several corners. Always ``low <= mid <= high``.
    """
    price = settled(price, box)
    names = sorted(price.coefficients)
    mid = price.at({name: box[name].mid for name in names})
    fixed = multipliers(price)
    low = -search(lambda point: -price.at(point), names, box, fixed)
    return Interval(low, mid, search(price.at, names, box, fixed))


def multipliers(*prices: Reduced) -> Names | None:
    """Return few coefficients such that all is affine once they are fixed, those in most products.

    None where a price is not multilinear, or there are too many.
    """
    products: list[set[str]] = []
    for price in prices:
        if isinstance(price, General):
            return None
        products += [set(names) for names in price.weights if len(names) > 1]
    fixed: list[str] = []
    while products:
        if len(fixed) == _MOST_MULTIPLIERS:
            return None
        counts: dict[str, int] = {}
        for names in products:
            for name in names:
                counts[name] = counts.get(name, 0) + 1
        chosen = max(sorted(counts), key=counts.__getitem__)
        fixed.append(chosen)
        products = [left for names in products if len(left := names - {chosen}) > 1]
    return tuple(fixed)


def search(
    function: Callable[[Point], float], names: Sequence[str], box: Box, fixed: Names | None = None
) -> float:
    """Return the greatest value that coordinate ascent finds.

    Each step moves one coefficient to the better of its ends. That is the greatest of all for what
    is monotone in each coefficient, and for quotients of two affine functions: where no single end
    is better, no point of the box is.

    Parameters
    ----------
    fixed : tuple of str, optional
        Coefficients of which every corner is tried; ascents are over the others. None for ascents
        over all, from two corners and the middle.
    """
    middle = {name: box[name].mid for name in names}
    if fixed is None:
        ends = ({name: box[name].high for name in names}, {name: box[name].low for name in names})
        return max(_ascend(function, start, names, box) for start in (middle, *ends))
    others = [name for name in names if name not in fixed]
    corners = product(*(dict.fromkeys((box[name].low, box[name].high)) for name in fixed))
    return max(
        _ascend(function, {**middle, **dict(zip(fixed, corner, strict=True))}, others, box)
        for corner in corners
    )


def _ascend(
    function: Callable[[Point], float], point: dict[str, float], names: Sequence[str], box: Box
) -> float:
    best = function(point)
    for _ in range(_MOST_SWEEPS):
        before = best
        for name in names:
            here = point[name]
            interval = box[name]
            for candidate in (interval.low, interval.high):
                if candidate != here:
                    point[name] = candidate
                    value = function(point)
                    if value > best:
                        best, here = value, candidate
            point[name] = here
        if best == before:
            break
    return best


def settled(price: Reduced, box: Box) -> Reduced:
    """Return a price without the coefficients that have one value, which leaves fewer corners."""
    if isinstance(price, General):
        return price
    fixed = {name: box[name].mid for name in price.coefficients if box[name].low == box[name].high}
    return price.given(fixed) if fixed else price


def _weights(expr: Expr, sizes: Sizes, coefficients: frozenset[str]) -> _Weights | None:
    if free_symbols(expr).isdisjoint(coefficients):
        return {(): sizes.at(expr)}
    match expr:
        case Sym():
            return {(expr.name,): 1}
        case Add():
            total: _Weights = {(): expr.constant}
            for term in expr.terms:
                part = _weights(term, sizes, coefficients)
                if part is None:
                    return None
                for names, weight in part.items():
                    total[names] = total.get(names, 0) + weight
            return total
        case Mul():
            product: _Weights | None = {(): expr.coefficient}
            for factor in expr.factors:
                product = _multiplied(product, _weights(factor, sizes, coefficients))
            return product
        case Conditional() if free_symbols(expr.test).isdisjoint(coefficients):
            return _weights(expr.then if sizes.at(expr.test) else expr.orelse, sizes, coefficients)
        case Sum() if expr.index not in coefficients:
            ends = free_symbols(expr.low) | free_symbols(expr.high)
            return sizes.amounts(expr, coefficients) if ends.isdisjoint(coefficients) else None
        case _:
            return None


def _multiplied(left: _Weights | None, right: _Weights | None) -> _Weights | None:
    if left is None or right is None or len(left) * len(right) > _MOST_PRODUCTS:
        return None
    total: _Weights = {}
    for names, weight in left.items():
        for others, factor in right.items():
            if names and others:
                together = tuple(sorted((*names, *others)))
                if len(set(together)) != len(together):
                    return None
            else:
                together = names or others
            total[together] = total.get(together, 0) + weight * factor
    return total


def _finite(value: Value) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if number - number != 0:
        raise ExprError("the value is not a finite number")
    return number
