"""Arithmetic and comparisons of whole numbers of the source, as expressions over sizes."""

from __future__ import annotations

import operator as of_python
from collections.abc import Callable, Mapping
from fractions import Fraction

from costdb.expr import (
    Expr,
    ExprError,
    ceil,
    equal,
    floor,
    floor_div,
    less,
    less_equal,
    log2,
    logical_and,
    logical_not,
    logical_or,
    num,
)
from costdb.expr.nodes import Num


def calculated(operation: str, *operands: Expr | None) -> Expr | None:
    """Return what an operator gives, by LibCST's name of it, or a function by its own.

    None where that is not known.
    """
    made, known = _OPERATIONS.get(operation), [one for one in operands if one is not None]
    if made is None or len(known) < len(operands):
        return None
    try:
        return made(*known)
    except (ExprError, ArithmeticError, ValueError):
        return None


def _power(base: Expr, exponent: Expr) -> Expr | None:
    """Return a power by a small number, or of two numbers, such as ``2 ** 20``."""
    if not isinstance(exponent, Num):
        return None
    small = abs(Fraction(exponent.value)) <= 8
    plain = isinstance(base, Num) and abs(Fraction(base.value)) <= 1024
    literal = plain and 0 <= Fraction(exponent.value) <= 64
    return base**exponent if small or literal else None


def _shifted(number: Expr, bits: Expr) -> Expr | None:
    power = _power(num(2), bits)
    return None if power is None else number * power


_OPERATIONS: Mapping[str, Callable[..., Expr | None]] = {
    "Add": of_python.add,
    "Subtract": of_python.sub,
    "Multiply": of_python.mul,
    "Divide": of_python.truediv,
    "FloorDivide": floor_div,
    "Modulo": of_python.mod,
    "Power": _power,
    "LeftShift": _shifted,
    "And": logical_and,
    "Or": logical_or,
    "Equal": equal,
    "Is": equal,
    "NotEqual": lambda one, other: logical_not(equal(one, other)),
    "IsNot": lambda one, other: logical_not(equal(one, other)),
    "LessThan": less,
    "LessThanEqual": less_equal,
    "GreaterThan": lambda one, other: less(other, one),
    "GreaterThanEqual": lambda one, other: less_equal(other, one),
    "floor": floor,
    "ceil": ceil,
    "sqrt": lambda value: value ** num(Fraction(1, 2)),
    "isqrt": lambda value: floor(value ** num(Fraction(1, 2))),
    "square": lambda value: value**2,
    "log2": log2,
}
