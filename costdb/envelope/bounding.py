"""Polynomials below and above a formula, over a region of sizes.

Choices are decided as they are at one point of the region, and the region shrinks to where they
are decided so; divisions that round are taken between the quotients that they can give; sums are
closed over polynomials. What fits nowhere has no bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from costdb.envelope.polynomial import (
    Interval,
    Polynomial,
    TooLarge,
    added,
    constant,
    derived,
    multiplied,
    names_in,
    product_range,
    replaced,
    scaled,
    summed,
    variable,
)
from costdb.envelope.region import NotBounded, Region, is_named
from costdb.expr import Expr, free_symbols, num
from costdb.expr.arithmetic import normal
from costdb.expr.exact import Rational
from costdb.expr.functions import (
    Comparison,
    Conditional,
    Equal,
    Extreme,
    Gcd,
    LessEqual,
    Log2,
    Max,
    MaxOver,
    Reduction,
    Sum,
)
from costdb.expr.nodes import Add, Division, FloorDiv, Mod, Mul, Num, Pow, Sym, power

ZERO: Polynomial = {}
ONE: Polynomial = {(): 1}
_LARGEST_POWER = 6
_ROUNDING = 1e-9
"""More than a logarithm is ever rounded by."""


class Bounds(NamedTuple):
    """Polynomials not above and not below a formula; one and the same where it is one."""

    low: Polynomial
    high: Polynomial

    @property
    def exact(self) -> bool:
        """Whether the formula is this polynomial."""
        return self.low is self.high


def exactly(polynomial: Polynomial) -> Bounds:
    """Return bounds of a polynomial."""
    return Bounds(polynomial, polynomial)


def bounds_of(expr: Expr, region: Region) -> Bounds:
    """Return polynomials below and above a formula throughout a region, which may shrink.

    Parameters
    ----------
    expr : Expr
        Over the sizes of the region, all whole numbers of at least 1.
    region : Region

    Raises
    ------
    NotBounded
        No such polynomials are known, or they are too large.
    """
    try:
        return _Bounding(region, {}).bounds(expr)
    except (TooLarge, OverflowError, ZeroDivisionError):
        raise NotBounded from None


class _Bounding:
    """Within the reductions whose indices are in `scope`."""

    def __init__(self, region: Region, scope: dict[str, str]) -> None:
        self.region = region
        self.scope = scope
        self.known: dict[Expr, Bounds] = {}
        self.inside: dict[tuple[str, str], _Bounding] = {}

    def bounds(self, expr: Expr) -> Bounds:
        if isinstance(expr, Num):
            return exactly(constant(expr.value))
        if isinstance(expr, Sym):
            return exactly(variable(self.scope.get(expr.name, expr.name)))
        found = self.known.get(expr)
        if found is None:
            found = self.known[expr] = self._bounds(expr)
        return found

    def _bounds(self, expr: Expr) -> Bounds:
        match expr:
            case Add():
                return self._sum(expr)
            case Mul():
                product = exactly(constant(expr.coefficient))
                for factor in expr.factors:
                    product = self._product(product, self.bounds(factor))
                return product
            case Conditional():
                test = self.truth(expr.test)
                if test is None:
                    return self._hull(self.bounds(expr.then), self.bounds(expr.orelse))
                return self.bounds(expr.then if test else expr.orelse)
            case Comparison():
                test = self.truth(expr)
                return Bounds(ZERO, ONE) if test is None else exactly(ONE if test else ZERO)
            case Extreme():
                return self._extreme([self.bounds(arg) for arg in expr.args], isinstance(expr, Max))
            case Division():
                return self._division(expr)
            case Pow():
                return self._power(expr)
            case Gcd() if self.region.throughout:
                return self._divisor(expr)
            case Gcd() if self._is_steady(expr):
                return exactly(constant(self.region.fix(expr)))
            case Log2():
                return self._logarithm(expr)
            case Reduction():
                return self._reduction(expr)
            case _:
                raise NotBounded

    def _is_steady(self, expr: Expr) -> bool:
        """Tell whether no index occurs in a part."""
        return free_symbols(expr).isdisjoint(self.scope)

    def _sum(self, expr: Add) -> Bounds:
        parts = [self.bounds(term) for term in expr.terms]
        low = constant(expr.constant)
        for part in parts:
            low = added(low, part.low)
        if all(part.exact for part in parts):
            return exactly(low)
        high = constant(expr.constant)
        for part in parts:
            high = added(high, part.high)
        return Bounds(low, high)

    def _product(self, left: Bounds, right: Bounds) -> Bounds:
        if left.exact and right.exact:
            return exactly(multiplied(left.low, right.low))
        if right.exact:
            left, right = right, left
        least, most = self.region.range_of(left.low)[0], self.region.range_of(left.high)[1]
        if left.exact and least >= 0:
            return Bounds(multiplied(left.low, right.low), multiplied(left.low, right.high))
        if left.exact and most <= 0:
            return Bounds(multiplied(left.low, right.high), multiplied(left.low, right.low))
        if least >= 0 and self.region.range_of(right.low)[0] >= 0:
            return Bounds(multiplied(left.low, right.low), multiplied(left.high, right.high))
        ends = product_range((least, most), self._ends(right))
        return Bounds(constant(ends[0]), constant(ends[1]))

    def _ends(self, bounds: Bounds) -> Interval:
        return self.region.range_of(bounds.low)[0], self.region.range_of(bounds.high)[1]

    def _hull(self, one: Bounds, other: Bounds) -> Bounds:
        return Bounds(self._most([one.low, other.low], -1), self._most([one.high, other.high], 1))

    def _extreme(self, parts: Sequence[Bounds], largest: bool) -> Bounds:
        sign = 1 if largest else -1
        best = max(parts, key=lambda part: sign * self.region.near(part.low))
        others = [part for part in parts if part is not best]
        if all(self._is_beyond(best, other, sign) for other in others):
            return best
        if largest:
            return Bounds(best.low, self._most([part.high for part in parts], 1))
        return Bounds(self._most([part.low for part in parts], -1), best.high)

    def _is_beyond(self, best: Bounds, other: Bounds, sign: int) -> bool:
        if sign > 0:
            return self.region.holds(added(best.low, other.high, -1))
        return self.region.holds(added(other.low, best.high, -1))

    def _most(self, parts: Sequence[Polynomial], sign: int) -> Polynomial:
        """Return a polynomial not below any of `parts`; with `sign` -1, not above."""
        best = max(parts, key=lambda part: sign * self.region.near(part))
        for part in parts:
            gap = added(scaled(best, sign), part, -sign)
            if part is not best and not self.region.holds(gap):
                best = added(best, constant(-sign * min(0, self.region.range_of(gap)[0])))
        return best

    def truth(self, test: Expr) -> bool | None:
        """Tell whether a test is passed throughout the region; None where that changes."""
        found: bool | None = None
        if isinstance(test, Conditional):
            chosen = self.truth(test.test)
            if chosen is not None:
                return self.truth(test.then if chosen else test.orelse)
        elif isinstance(test, Equal):
            found = self._equal(test)
        elif isinstance(test, Comparison):
            left, right = self.bounds(test.left), self.bounds(test.right)
            strictly = not isinstance(test, LessEqual)
            if self.region.holds(added(right.low, left.high, -1), strictly=strictly):
                return True
            if self.region.holds(added(left.low, right.high, -1), strictly=not strictly):
                return False
        elif not isinstance(test, Comparison):
            value = self.bounds(test)
            low, high = self._ends(value)
            found = True if low > 0 or high < 0 else False if low == high == 0 else None
        if found is None and self._is_steady(test) and not self.region.throughout:
            return self.region.fix(test) != 0
        return found

    def _equal(self, test: Equal) -> bool | None:
        left, right = self.bounds(test.left), self.bounds(test.right)
        if left.exact and right.exact and left.low == right.low:
            return True
        for one, other in ((left, right), (right, left)):
            if self.region.range_of(added(other.low, one.high, -1))[0] > 0:
                return False
        return None

    def _division(self, expr: Division) -> Bounds:
        below = self.bounds(expr.divisor)
        if not (below.exact and not names_in(below.low)):
            if not self._is_steady(expr.divisor):
                raise NotBounded
            if self.region.throughout:
                return self._division_by_size(expr)
            below = exactly(constant(self.region.fix(expr.divisor)))
        divisor = below.low.get((), 0)
        if divisor <= 0:
            raise NotBounded
        above = self.bounds(expr.dividend)
        whole = isinstance(divisor, int) and expr.dividend.is_whole(free_symbols(expr.dividend))
        slack = divisor - 1 if whole else divisor
        if isinstance(expr, Mod):
            least, most = self._ends(above)
            return above if least >= 0 and most < divisor else Bounds(ZERO, constant(slack))
        inverse = _inverse(divisor)
        quotient = Bounds(scaled(above.low, inverse), scaled(above.high, inverse))
        if above.exact and _is_whole(quotient.low):
            return exactly(quotient.low)
        share = constant(slack * inverse)
        if not isinstance(expr, FloorDiv):
            return Bounds(quotient.low, added(quotient.high, share))
        low = added(quotient.low, share, -1)
        if self.region.range_of(low)[0] < 0 <= self.region.range_of(above.low)[0]:
            low = ZERO
        return Bounds(low, quotient.high)

    def _division_by_size(self, expr: Division) -> Bounds:
        """Return bounds of a division whose divisor has several values in the region."""
        above = self.bounds(expr.dividend)
        inverse = self.bounds(power(expr.divisor, num(-1)))
        if isinstance(expr, Mod):
            return Bounds(ZERO, constant(self._ends(self.bounds(expr.divisor))[1]))
        rounded = math.floor if isinstance(expr, FloorDiv) else math.ceil
        ends = product_range(self._ends(above), self._ends(inverse))
        low, high = (rounded(end) for end in ends)
        if low == high:
            return exactly(constant(low))
        quotient = self._product(above, inverse)
        if not isinstance(expr, FloorDiv):
            return Bounds(quotient.low, added(quotient.high, ONE))
        least = added(quotient.low, ONE, -1)
        return Bounds(ZERO if self.region.range_of(least)[0] < 0 <= low else least, quotient.high)

    def _power(self, expr: Pow) -> Bounds:
        exponent = expr.exponent.value if isinstance(expr.exponent, Num) else None
        if isinstance(exponent, int) and 0 < exponent <= _LARGEST_POWER:
            base = self.bounds(expr.base)
            product = base
            for _ in range(exponent - 1):
                product = self._product(product, base)
            return product
        if not isinstance(exponent, int) or exponent > 0 or not self._is_steady(expr):
            raise NotBounded
        low, high = self._ends(self.bounds(power(expr.base, num(-exponent))))
        if low <= 0:
            raise NotBounded
        return exactly(self.region.named(expr, _inverse(high), _inverse(low)))

    def _divisor(self, expr: Gcd) -> Bounds:
        """Return bounds of a common divisor, which is not above a number that is never 0."""
        ends = [self._ends(self.bounds(part)) for part in (expr.left, expr.right)]
        most = [high for low, high in ends if low > 0]
        if not most or not expr.is_whole(free_symbols(expr)):
            raise NotBounded
        return Bounds(ONE, constant(min(most)))

    def _logarithm(self, expr: Log2) -> Bounds:
        low, high = self._ends(self.bounds(expr.argument))
        if low <= 0 or not (self._is_steady(expr) or self.region.throughout):
            raise NotBounded
        ends = math.log2(low) - _ROUNDING, math.log2(high) + _ROUNDING
        if not self._is_steady(expr):
            return Bounds(constant(ends[0]), constant(ends[1]))
        return exactly(self.region.named(expr, *ends))

    def _reduction(self, expr: Reduction) -> Bounds:
        low, high = self._end(expr.low), self._end(expr.high)
        steps = added(added(high, low, -1), ONE)
        if self.region.range_of(steps)[1] <= 0:
            return exactly(ZERO)
        if not self.region.holds(steps, strictly=isinstance(expr, MaxOver)):
            if self.region.holds(scaled(steps, -1)):
                return exactly(ZERO)
            raise NotBounded
        index = self.region.index(low, high)
        key = expr.index, index.name
        if key not in self.inside:
            scope = {**self.scope, expr.index: index.name}
            self.inside[key] = _Bounding(self.region, scope)
        body = self.inside[key].bounds(expr.body)
        if isinstance(expr, Sum):
            total = summed(body.low, index.name, low, high)
            if body.exact:
                return exactly(total)
            return Bounds(total, summed(body.high, index.name, low, high))
        slope = self.region.range_of(derived(body.high, index.name))
        if slope[0] < 0 < slope[1]:
            raise NotBounded
        end = high if slope[0] >= 0 else low
        most = replaced(body.high, index.name, end)
        return exactly(most) if body.exact else Bounds(replaced(body.low, index.name, end), most)

    def _end(self, expr: Expr) -> Polynomial:
        if not expr.is_whole(free_symbols(expr)):
            raise NotBounded
        found = self.bounds(expr)
        if found.exact:
            return found.low
        if not self._is_steady(expr):
            raise NotBounded
        return self.region.named(expr, *self._ends(found))


def _inverse(value: Rational) -> Rational:
    return normal(Fraction(1) / value)


def _is_whole(polynomial: Polynomial) -> bool:
    """Tell whether all values are whole, where variables for parts may not be."""
    if any(is_named(name) for name in names_in(polynomial)):
        return False
    return all(isinstance(normal(weight), int) for weight in polynomial.values())
