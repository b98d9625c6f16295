"""Signs of size expressions: enough to read slice bounds, silent where unsure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from math import prod

from costdb.expr import Expr, free_symbols, maximum, minimum, num, substitute, sym
from costdb.expr.functions import Max, Min
from costdb.expr.nodes import Add, FloorDiv, Mul, Num, Pow, Sym

UNBOUNDED = 10**9
"""Stands for a bound that is not known."""


class Sign(StrEnum):
    """What is known of a value's sign when every size is at least its minimum."""

    NEGATIVE = "negative"
    ZERO = "zero"
    NON_NEGATIVE = "non-negative"
    NON_POSITIVE = "non-positive"
    UNKNOWN = "unknown"


def _least(expr: Expr) -> int | Fraction | None:
    """Return a lower bound of `expr` over symbols of at least 0; None where none is found."""
    match expr:
        case Num(value):
            return value
        case Sym():
            return 0
        case Add(terms, constant):
            plain = _sum([constant, *map(_least, terms)])
            return _least_of_greatest(expr, terms) if plain is None else plain
        case Mul((factor,), coefficient) if coefficient >= 0:
            bound = _least(factor)
            return None if bound is None else coefficient * bound
        case Mul(factors, coefficient) if coefficient >= 0:
            bounds = [_least(factor) for factor in factors]
            if any(bound is None or bound < 0 for bound in bounds):
                return None
            return coefficient * prod(bound for bound in bounds if bound is not None)
        case Mul((Add(terms, constant),), coefficient):
            return _least(sum((term * coefficient for term in terms), num(constant * coefficient)))
        case FloorDiv(dividend, Num(divisor)) if divisor > 0:
            inner = _least(dividend)
            return None if inner is None else inner // divisor
        case Pow(base, _):
            inner = _least(base)
            return 0 if inner is not None and inner >= 0 else None
        case Max():
            known = [bound for part in expr.children if (bound := _least(part)) is not None]
            return max(known, default=None)
        case Min():
            parts = [_least(part) for part in expr.children]
            whole = [bound for bound in parts if bound is not None]
            return min(whole) if len(whole) == len(parts) else None
    return None


def _least_of_greatest(expr: Expr, terms: Sequence[Expr]) -> int | Fraction | None:
    """Return a lower bound of a sum that is a maximum, such as ``N - min(b, N)``.

    It is at least what any operand of the maximum makes of it; so is ``N - 2 * (N // 2)``.
    """
    known: list[int | Fraction] = []
    for term in terms:
        factor, coefficient = term, num(1)
        if isinstance(term, Mul) and len(term.factors) == 1:
            factor, coefficient = term.factors[0], num(term.coefficient)
        rises = isinstance(coefficient, Num) and coefficient.value > 0
        if isinstance(factor, Max if rises else Min):
            rest = expr - term
            bounds = [_least(rest + coefficient * part) for part in factor.children]
            known += [bound for bound in bounds if bound is not None]
        elif isinstance(factor, FloorDiv) and isinstance(factor.divisor, Num) and not rises:
            # rounded down it is no more than what it is rounded from
            bound = _least(expr - term + coefficient * factor.dividend / factor.divisor)
            known += [] if bound is None else [bound]
    return max(known, default=None)


def _sum(bounds: Sequence[int | Fraction | None]) -> int | Fraction | None:
    known = [bound for bound in bounds if bound is not None]
    return sum(known) if len(known) == len(bounds) else None


def _negated(expr: Expr) -> Expr:
    """Return ``-expr`` as a sum of its own, which a product with -1 is not."""
    if not isinstance(expr, Add):
        return -expr
    return sum((-term for term in expr.terms), num(-expr.constant))


def sign(expr: Expr, minima: Mapping[str, int]) -> Sign:
    """Return the sign of `expr`, given a minimum for symbols (1 for those not named)."""
    if isinstance(expr, Num):
        # as most are at given sizes
        if expr.value == 0:
            return Sign.ZERO
        return Sign.NON_NEGATIVE if expr.value > 0 else Sign.NEGATIVE
    moved = substitute(expr, {name: sym(name) + minima.get(name, 1) for name in free_symbols(expr)})
    if moved == num(0):
        return Sign.ZERO
    low, high = _least(moved), _least(_negated(moved))
    if low is not None and low >= 0:
        return Sign.NON_NEGATIVE
    if high is not None and high >= 0:
        return Sign.NEGATIVE if high > 0 else Sign.NON_POSITIVE
    return Sign.UNKNOWN


def known_non_negative(expr: Expr, minima: Mapping[str, int]) -> bool:
    """Return whether `expr` is surely at least 0."""
    return sign(expr, minima) in (Sign.ZERO, Sign.NON_NEGATIVE)


def non_negative_within(
    expr: Expr,
    minima: Mapping[str, int],
    maxima: Mapping[str, Expr],
    starts: Mapping[str, Expr] | None = None,
) -> bool:
    """Return whether `expr` is surely at least 0, given the bounds of some symbols.

    Each index is counted from one end of its loop, innermost first, which takes two steps for
    each loop around: once all are counted from the end at which the expression is least, where
    that is known, and once all down from their greatest values.

    Parameters
    ----------
    expr : Expr
    minima : mapping of str to int
        Least values of symbols, where they are not 1.
    maxima : mapping of str to Expr
        Greatest values of the indices of the loops around, outermost first; each over symbols
        before it.
    starts : mapping of str to Expr, optional
        Least values of indices among these, over symbols before them.
    """
    if known_non_negative(expr, minima):
        return True
    if starts and _counted_non_negative(expr, minima, maxima, starts):
        return True
    return _counted_non_negative(expr, minima, maxima, {})


def _counted_non_negative(
    expr: Expr, minima: Mapping[str, int], maxima: Mapping[str, Expr], starts: Mapping[str, Expr]
) -> bool:
    """Return whether `expr` is seen to be at least 0 once indices are counted from an end.

    Those with a start at which the expression is least are counted up from there, others down
    from their greatest value; the symbol then stands for how far they have come.
    """
    least = dict(minima)
    for index, greatest in reversed(tuple(maxima.items())):
        if index not in free_symbols(expr):
            continue
        counted = greatest - sym(index)
        if index in starts:
            growth = substitute(expr, {index: sym(index) + 1}) - expr
            if known_non_negative(growth, least):
                counted = starts[index] + sym(index)
        expr = substitute(expr, {index: counted})
        least[index] = 0
        if known_non_negative(expr, least):
            return True
    return False


def largest(values: Sequence[Expr], minima: Mapping[str, int]) -> Expr:
    """Return the maximum of values, without those that are surely not above another."""
    kept = _extremes(values, lambda one, other: known_non_negative(other - one, minima))
    return maximum(*kept) if len(kept) > 1 else kept[0]


def smallest(values: Sequence[Expr], minima: Mapping[str, int]) -> Expr:
    """Return the minimum of values, without those that are surely not below another."""
    kept = _extremes(values, lambda one, other: known_non_negative(one - other, minima))
    return minimum(*kept) if len(kept) > 1 else kept[0]


def _extremes(values: Sequence[Expr], is_covered: Callable[[Expr, Expr], bool]) -> list[Expr]:
    kept = list(values)
    for value in values:
        others = [other for other in kept if other is not value]
        if any(is_covered(value, other) for other in others):
            kept = others
    return kept


def least_index(low: Expr, minima: Mapping[str, int]) -> int:
    """Return the least value of a loop's index that starts at `low`.

    A start of unknown sign, such as ``N - 5``, is taken as at least 0, since sizes are such that
    slices stay inside their array; one that is negative for all sizes has no bound.
    """
    if isinstance(low, Num):
        return int(low.value)
    match sign(low, minima):
        case Sign.NEGATIVE | Sign.NON_POSITIVE:
            return -UNBOUNDED
        case _:
            return 1 if known_non_negative(low - 1, minima) else 0
