"""Signs of size expressions: enough to read slice bounds, silent where unsure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from costdb.expr import Expr, free_symbols, num, substitute, sym
from costdb.expr.nodes import Add, Mul, Num, Pow, Sym


class Sign(StrEnum):
    """What is known of a value's sign when every size is at least its minimum."""

    NEGATIVE = "negative"
    ZERO = "zero"
    NON_NEGATIVE = "non-negative"
    NON_POSITIVE = "non-positive"
    UNKNOWN = "unknown"


def _non_negative(expr: Expr) -> bool:
    """Return whether `expr` is surely at least 0 when every symbol is."""
    match expr:
        case Num(value):
            return value >= 0
        case Sym():
            return True
        case Add(terms, constant):
            return constant >= 0 and all(map(_non_negative, terms))
        case Mul(factors, coefficient):
            return coefficient >= 0 and all(map(_non_negative, factors))
        case Pow(base, _):
            return _non_negative(base)
    return False


def sign(expr: Expr, minima: Mapping[str, int]) -> Sign:
    """Return the sign of `expr`, given a minimum for symbols (1 for those not named)."""
    moved = substitute(expr, {name: sym(name) + minima.get(name, 1) for name in free_symbols(expr)})
    if isinstance(moved, Num):
        if moved.value == 0:
            return Sign.ZERO
        return Sign.NON_NEGATIVE if moved.value > 0 else Sign.NEGATIVE
    if _non_negative(moved):
        return Sign.NON_NEGATIVE
    opposite = num(0) - moved
    if _non_negative(opposite):
        strict = isinstance(opposite, Add) and opposite.constant > 0
        return Sign.NEGATIVE if strict else Sign.NON_POSITIVE
    return Sign.UNKNOWN


def known_non_negative(expr: Expr, minima: Mapping[str, int]) -> bool:
    """Return whether `expr` is surely at least 0."""
    return sign(expr, minima) in (Sign.ZERO, Sign.NON_NEGATIVE)


def known_non_positive(expr: Expr, minima: Mapping[str, int]) -> bool:
    """Return whether `expr` is surely at most 0."""
    return sign(expr, minima) in (Sign.ZERO, Sign.NEGATIVE, Sign.NON_POSITIVE)
