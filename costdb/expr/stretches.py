"""Numeric polynomials over a stretch of whole numbers: signs, rounded quotients, sums, maxima.

A polynomial is a tuple of its coefficients, the constant first, in the place ``k`` within a
stretch: ``k = 0, 1, ..., count - 1``. A question whose answer changes within the stretch is
answered by saying where to cut it, or into how many interleaved ones to take it apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias, TypeVar

from costdb.expr.exact import Rational, Value
from costdb.expr.polynomials import power_sum_coefficients

Polynomial: TypeAlias = tuple[Value, ...]
Known = TypeVar("Known")


class Cut(Exception):
    """The answer changes at place `at`, which is above 0 and below the count."""

    def __init__(self, at: int) -> None:
        self.at = at


class Interleaved(Exception):
    """Every `period`-th place on its own gives an answer for all."""

    def __init__(self, period: int) -> None:
        self.period = period


def trimmed(coefficients: list[Value], count: int) -> Polynomial:
    """Return a polynomial without leading zeros, fractions that are whole made so.

    Over a single place only the constant counts.
    """
    if count == 1:
        del coefficients[1:]
    while len(coefficients) > 1 and coefficients[-1] == 0:
        coefficients.pop()
    return tuple(
        c.numerator if isinstance(c, Fraction) and c.denominator == 1 else c for c in coefficients
    )


def added(left: Polynomial, right: Polynomial, weight: Value, count: int) -> Polynomial:
    """Return ``left + weight * right``."""
    if len(left) == 1 and len(right) == 1:
        return trimmed([left[0] + weight * right[0]], count)
    total = [*left, *([0] * (len(right) - len(left)))]
    for degree, coefficient in enumerate(right):
        total[degree] += weight * coefficient
    return trimmed(total, count)


def multiplied(left: Polynomial, right: Polynomial, count: int) -> Polynomial:
    """Return the product."""
    total: list[Value] = [0] * (len(left) + len(right) - 1)
    for degree, coefficient in enumerate(left):
        for other, factor in enumerate(right):
            total[degree + other] += coefficient * factor
    return trimmed(total, count)


def value_at(polynomial: Polynomial, place: Rational) -> Value:
    """Return the value at a place."""
    total: Value = 0
    for coefficient in reversed(polynomial):
        total = total * place + coefficient
    return total


def is_above(polynomial: Polynomial, count: int, *, strictly: bool) -> bool:
    """Tell whether values are at least 0, or `strictly` above it, at all places or at none.

    Raises
    ------
    Cut
    """

    def holds(place: int) -> bool:
        value = value_at(polynomial, place)
        return value > 0 if strictly else value >= 0

    _keep_monotone(polynomial, count)
    return _steady(holds, count)


def is_zero(polynomial: Polynomial, count: int) -> bool:
    """Tell whether values are 0 at all places or at none.

    Raises
    ------
    Cut
    """
    if len(polynomial) == 1:
        return polynomial[0] == 0
    at_least = is_above(polynomial, count, strictly=False)
    return at_least and not is_above(polynomial, count, strictly=True)


def floor_of(polynomial: Polynomial, count: int) -> Polynomial:
    """Return the values rounded down, as a polynomial.

    Raises
    ------
    Cut, Interleaved
    """
    whole = [math.floor(coefficient) for coefficient in polynomial]
    rest = trimmed([c - w for c, w in zip(polynomial, whole, strict=True)], count)
    if len(rest) > 1:
        # between whole numbers at all places, as its parts are not negative
        changes = math.floor(value_at(rest, count - 1)) - math.floor(rest[0])
        period = math.lcm(*(Fraction(c).denominator for c in rest[1:]))
        if period < count and period <= changes:
            raise Interleaved(period)
        _steady(lambda place: math.floor(value_at(rest, place)), count)
    return trimmed([whole[0] + math.floor(rest[0]), *whole[1:]], count)


def steady_value(polynomial: Polynomial, count: int, function: Callable[[Value], Value]) -> Value:
    """Return the one value that a function never falling, or never rising, has at all places.

    Raises
    ------
    Cut
    """
    _keep_monotone(polynomial, count)
    return _steady(lambda place: function(value_at(polynomial, place)), count)


def sum_of(polynomial: Polynomial, count: int) -> Value:
    """Return the sum of all values."""
    total: Value = polynomial[0] * count
    for degree, coefficient in enumerate(polynomial[1:], 1):
        powers = power_sum_coefficients(degree)
        total += coefficient * value_at(powers, count)
    return total


def largest_of(polynomial: Polynomial, count: int) -> Value:
    """Return the largest value.

    Raises
    ------
    Cut
    """
    _keep_monotone(polynomial, count)
    return max(polynomial[0], value_at(polynomial, count - 1))


def _keep_monotone(polynomial: Polynomial, count: int) -> None:
    """Cut a polynomial that may rise here and fall there."""
    if len(polynomial) <= 2:
        return
    if len(polynomial) == 3:
        turn = math.floor(-polynomial[1] / (2 * Fraction(polynomial[2]))) + 1
        if 0 < turn < count:
            raise Cut(turn)
        return
    rising = [coefficient >= 0 for coefficient in polynomial[1:]]
    if any(rising) and not all(rising):
        raise Cut(count // 2)


def _steady(function: Callable[[int], Known], count: int) -> Known:
    """Return the value that a monotone function of the place has everywhere."""
    first = function(0)
    if function(count - 1) == first:
        return first
    left, right = 0, count - 1
    while right - left > 1:
        middle = (left + right) // 2
        if function(middle) == first:
            left = middle
        else:
            right = middle
    raise Cut(right)
