"""Polynomials with exact coefficients, and the range of their values over a box."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TypeAlias

from costdb.expr.exact import Rational, Value
from costdb.expr.polynomials import MAX_DEGREE, power_sum_coefficients

Monomial: TypeAlias = tuple[tuple[str, int], ...]
"""Names with their powers, by name; empty for the number."""

Polynomial: TypeAlias = dict[Monomial, Rational]
Interval: TypeAlias = tuple[Rational, Rational]
Box: TypeAlias = Mapping[str, Interval]

MOST_TERMS = 200
"""Terms of a product before it is refused."""


class TooLarge(Exception):
    """A polynomial of too many terms, or of too high a degree."""


def constant(value: Value) -> Polynomial:
    """Return a number as a polynomial; a float exactly."""
    number: Rational = Fraction(value) if isinstance(value, float) else value
    return {(): number} if number else {}


def variable(name: str) -> Polynomial:
    """Return a name as a polynomial."""
    return {((name, 1),): 1}


def added(left: Polynomial, right: Polynomial, weight: Rational = 1) -> Polynomial:
    """Return ``left + weight*right``."""
    total = dict(left)
    for monomial, coefficient in right.items():
        found = total.get(monomial, 0) + weight * coefficient
        if found:
            total[monomial] = found
        else:
            total.pop(monomial, None)
    return total


def scaled(polynomial: Polynomial, weight: Rational) -> Polynomial:
    """Return ``weight*polynomial``."""
    return {m: c * weight for m, c in polynomial.items()} if weight else {}


def multiplied(left: Polynomial, right: Polynomial) -> Polynomial:
    """Return the product.

    Raises
    ------
    TooLarge
        It would have more than `MOST_TERMS` terms.
    """
    if len(left) * len(right) > MOST_TERMS:
        raise TooLarge
    total: Polynomial = {}
    for one, weight in left.items():
        for other, factor in right.items():
            together = _joined(one, other)
            found = total.get(together, 0) + weight * factor
            if found:
                total[together] = found
            else:
                total.pop(together, None)
    return total


def _joined(one: Monomial, other: Monomial) -> Monomial:
    if not one or not other:
        return one or other
    powers = dict(one)
    for name, power in other:
        powers[name] = powers.get(name, 0) + power
    return tuple(sorted(powers.items()))


def names_in(polynomial: Polynomial) -> set[str]:
    """Return the names that occur."""
    return {name for monomial in polynomial for name, _ in monomial}


def by_degree(polynomial: Polynomial, name: str) -> list[Polynomial]:
    """Return the coefficient of every power of one name, lowest first."""
    found: dict[int, Polynomial] = {0: {}}
    for monomial, coefficient in polynomial.items():
        power = next((p for n, p in monomial if n == name), 0)
        rest = tuple(pair for pair in monomial if pair[0] != name)
        found.setdefault(power, {})[rest] = coefficient
    return [found.get(power, {}) for power in range(max(found) + 1)]


def replaced(polynomial: Polynomial, name: str, value: Polynomial) -> Polynomial:
    """Return `polynomial` with another polynomial for a name."""
    total: Polynomial = {}
    for part in reversed(by_degree(polynomial, name)):
        total = added(multiplied(total, value), part)
    return total


def derived(polynomial: Polynomial, name: str) -> Polynomial:
    """Return the derivative by a name."""
    total: Polynomial = {}
    for power, part in enumerate(by_degree(polynomial, name)):
        if power:
            step = scaled(part, power)
            for _ in range(power - 1):
                step = multiplied(step, variable(name))
            total = added(total, step)
    return total


def summed(polynomial: Polynomial, name: str, low: Polynomial, high: Polynomial) -> Polynomial:
    """Return the sum over whole values of a name in ``low..high``, where ``high >= low - 1``."""
    total: Polynomial = {}
    parts = by_degree(polynomial, name)
    if len(parts) > MAX_DEGREE:
        raise TooLarge
    after = added(high, constant(1))
    for degree, part in enumerate(parts):
        if part:
            upto = added(_below(degree, after), _below(degree, low), -1)
            total = added(total, multiplied(part, upto))
    return total


def _below(degree: int, bound: Polynomial) -> Polynomial:
    """Return the sum of ``i**degree`` over ``0 <= i < bound``."""
    total: Polynomial = {}
    for weight in reversed(power_sum_coefficients(degree)):
        total = added(multiplied(total, bound), constant(weight))
    return total


def value_at(polynomial: Polynomial, point: Mapping[str, Value]) -> Rational:
    """Return the exact value at a point."""
    total: Rational = 0
    for monomial, coefficient in polynomial.items():
        product: Rational = coefficient
        for name, power in monomial:
            value = point[name]
            product *= (Fraction(value) if isinstance(value, float) else value) ** power
        total += product
    return total


def range_over(polynomial: Polynomial, box: Box) -> Interval:
    """Return numbers below and above all values over a box, the least and greatest of each term."""
    least: Rational = 0
    most: Rational = 0
    for monomial, coefficient in polynomial.items():
        low, high = (coefficient, coefficient)
        for name, power in monomial:
            low, high = product_range((low, high), _power_range(box[name], power))
        least += low
        most += high
    return least, most


def product_range(left: Interval, right: Interval) -> Interval:
    """Return the range of products of values of two ranges."""
    (a, b), (c, d) = left, right
    if a >= 0 and c >= 0:
        return a * c, b * d
    ends = (a * c, a * d, b * c, b * d)
    return min(ends), max(ends)


def _power_range(base: Interval, power: int) -> Interval:
    low, high = base
    if power == 1:
        return base
    if low >= 0 or power % 2:
        return low**power, high**power
    ends = (low**power, high**power)
    return (0 if high >= 0 else min(ends)), max(ends)
