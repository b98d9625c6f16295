"""What evaluation and compiled formulas agree on: limits, powers, bounds of reductions."""

from __future__ import annotations

import math
from fractions import Fraction

from costdb.expr.errors import ExprError
from costdb.expr.exact import MAX_BITS, Rational, Value

MAX_ITERATIONS = 10_000_000
"""Terms that one evaluation may enumerate before it is refused."""


def reduction_bound(value: Value, index: str) -> int:
    """Return a reduction's bound as `int`, or refuse one that is not whole."""
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise ExprError(f"a bound of {index!r} is {value}, which is not a whole number")


def bounded_power(base: Value, exponent: Value) -> Value:
    """Return ``base ** exponent``, exact where both are exact and the exponent is whole."""
    if isinstance(exponent, Fraction) and exponent.denominator == 1:
        exponent = exponent.numerator
    if isinstance(exponent, int) and not isinstance(base, float):
        if base == 0 and exponent < 0:
            raise ExprError("division by zero")
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if bits > 1 and bits * abs(exponent) > 16 * MAX_BITS:
            raise ExprError(f"a power needs more than {16 * MAX_BITS} bits")
        return normal(Fraction(base) ** exponent)
    if base == 0 and exponent < 0:
        raise ExprError("division by zero")
    if base < 0 and not float(exponent).is_integer():
        raise ExprError(f"{base} to the power {exponent} is not a real number")
    return math.pow(base, exponent)


def normal(value: Rational) -> Rational:
    """Return `value`, as `int` where it is whole."""
    return value.numerator if value.denominator == 1 else value
