"""Exact numbers, bounded in size."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias

from costdb.expr.errors import ExprError

Rational: TypeAlias = int | Fraction
Value: TypeAlias = int | Fraction | float

MAX_BITS = 8192
"""Bits of an exact constant, so that a tower of powers is refused and not computed."""


def magnitude(value: Rational) -> Rational:
    """Return the absolute value, which the type of `abs` would lose."""
    return -value if value < 0 else value


def check_size(value: Rational) -> Rational:
    """Return `value`, or refuse one of more than `MAX_BITS` bits."""
    # nearly every constant is a small whole number, and fractions are slow to ask
    if type(value) is int and -MAX_BITS < value < MAX_BITS:
        return value
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise ExprError(f"a constant needs more than {MAX_BITS} bits")
    return value


def exact(value: int | float | Fraction) -> Rational:
    """Return `value` as an exact rational; a float is the decimal it prints as."""
    if type(value) is int:
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ExprError(f"{value} is not a finite number")
        value = Fraction(repr(value))
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else value
    return int(value)


def rational_power(base: Rational, exponent: int) -> Rational:
    """Return ``base ** exponent`` exactly, or refuse a result too large to be meant."""
    if base == 0 and exponent < 0:
        raise ExprError("division by zero")
    if base in (0, 1, -1):
        return exact(base ** (exponent % 2 + 2)) if exponent else 1
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if (bits - 1) * abs(exponent) > MAX_BITS:
        raise ExprError(f"a power needs more than {MAX_BITS} bits")
    return exact(Fraction(base) ** exponent)
