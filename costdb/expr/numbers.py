"""Numbers: exact constants of formulas, bounded in size, and functions of values."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias

Rational: TypeAlias = int | Fraction
Value: TypeAlias = int | Fraction | float

MAX_BITS = 8192
"""Bits of an exact constant, so that a tower of powers is refused and not computed."""


class ExprError(ValueError):
    """An expression that cannot be built, read or evaluated; the message is one line."""


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


def bounded_power(base: Value, exponent: Value) -> Value:
    """Return ``base ** exponent``, whole where both are whole and it can be."""
    if base == 0 and exponent < 0:
        raise ExprError("division by zero")
    if isinstance(exponent, int) and not isinstance(base, float):
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if bits > 1 and bits * abs(exponent) > 16 * MAX_BITS:
            raise ExprError(f"a power needs more than {16 * MAX_BITS} bits")
        return quotient(1, base**-exponent) if exponent < 0 else base**exponent
    if base < 0 and not float(exponent).is_integer():
        raise ExprError(f"{base} to the power {exponent} is not a real number")
    return math.pow(base, exponent)


def quotient(above: Value, below: Value) -> Value:
    """Return ``above / below``, whole where both are whole and it is."""
    if type(above) is int and type(below) is int:
        whole, rest = divmod(above, below)
        return above / below if rest else whole
    return above / below


def log2_value(value: Value) -> int | float:
    """Return the binary logarithm, an `int` for an exact power of two."""
    if value <= 0:
        raise ExprError(f"log2 of {value}, which is not positive")
    if isinstance(value, float):
        mantissa, exponent = math.frexp(value)
        return exponent - 1 if mantissa == 0.5 else math.log2(value)
    above, below = value.numerator, value.denominator
    if above & (above - 1) == 0 and below & (below - 1) == 0:
        return above.bit_length() - below.bit_length()
    return math.log2(above) - math.log2(below)


def gcd_value(left: Value, right: Value) -> int:
    """Return the greatest common divisor of two whole numbers."""
    for value in (left, right):
        if value % 1 != 0:
            raise ExprError(f"gcd of {value}, which is not a whole number")
    return math.gcd(int(left), int(right))
