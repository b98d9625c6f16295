"""Sums and maxima over ranges whose ends are numbers, a stretch of the range at a time.

Where sizes have values, what a body asks of its index (which argument is larger, what a quotient
is rounded to) has one answer over long stretches of the range, and over each stretch the body is
a polynomial. The work is in proportion to the stretches, of which there are a few for each block
of a distribution, and not to the range.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from costdb.expr.arithmetic import bounded_power, normal
from costdb.expr.errors import ExprError
from costdb.expr.exact import Rational, Value
from costdb.expr.functions import (
    Comparison,
    Conditional,
    Equal,
    Extreme,
    Gcd,
    Less,
    Log2,
    Max,
    Reduction,
    Sum,
    gcd_value,
    log2_value,
)
from costdb.expr.names import free_symbols
from costdb.expr.nodes import Add, CeilDiv, Division, Expr, FloorDiv, Mod, Mul, Num, Pow, Sym
from costdb.expr.stretches import (
    Cut,
    Interleaved,
    Polynomial,
    added,
    floor_of,
    is_above,
    is_zero,
    largest_of,
    multiplied,
    steady_value,
    sum_of,
    trimmed,
)

MOST_PIECES = 4096
"""Stretches that one reduction is taken apart into before it is left to enumeration."""

TERMS_A_PIECE = 32
"""Terms of a compiled enumeration that take the time of one piece."""

PIECED_FROM = 8192
"""Terms from which on a reduction is tried a piece at a time before it is enumerated."""

MOST_PRODUCTS = 2000
"""Products of symbols in one body before it is left to enumeration."""

Names: TypeAlias = tuple[str, ...]
Weights: TypeAlias = dict[Names, Value]
"""A sum of products of symbols, each product with its weight; the number has no symbol."""

_Form: TypeAlias = dict[Names, Polynomial]

_ZERO: Polynomial = (0,)
_ONE: Polynomial = (1,)


class _NotPieced(Exception):
    """The body is not made of polynomials, or of too many."""


def by_pieces(
    expr: Reduction, low: int, high: int, values: Mapping[str, Value], most: int = MOST_PIECES
) -> Weights | None:
    """Return a reduction over ``low..high`` as weights of products of symbols.

    Parameters
    ----------
    expr : Reduction
        Its own bounds are not looked at.
    low, high : int
    values : mapping of str to int, Fraction or float
        Of symbols in the body; the others stay symbols. With exact values weights are exact.
    most : int
        Stretches to try.

    Returns
    -------
    dict of tuple of str to number, or None
        None where the body has no such form, or more than `most` stretches. A product that
        holds a symbol twice names it twice.

    Raises
    ------
    ExprError
        The body has no value somewhere, as in a division by zero.
    """
    if high < low:
        return {(): 0}
    pending = [(low, 1, high - low + 1)]
    found: list[tuple[_Form, int]] = []
    tried = 0
    try:
        while pending:
            start, step, count = pending.pop()
            tried += 1
            if tried > 2 * most:
                return None
            try:
                form = _Stretch(expr.index, start, step, count, values).form(expr.body)
                largest = _largest(form, count) if not isinstance(expr, Sum) else None
            except Cut as cut:
                pending.append((start + step * cut.at, step, count - cut.at))
                pending.append((start, step, cut.at))
                continue
            except Interleaved as turns:
                if turns.period > most:
                    return None
                pending += [
                    (start + step * first, step * turns.period, -(-(count - first) // turns.period))
                    for first in range(turns.period)
                ]
                continue
            found.append(({(): (largest,)}, 1) if largest is not None else (form, count))
    except _NotPieced:
        return None
    if not isinstance(expr, Sum):
        return {(): max(form[()][0] for form, _ in found)}
    total: Weights = {}
    for form, count in found:
        for names, polynomial in form.items():
            total[names] = total.get(names, 0) + sum_of(polynomial, count)
    return {names: w if isinstance(w, float) else normal(w) for names, w in total.items()}


@lru_cache(maxsize=4096)
def pieced(
    expr: Reduction, low: int, high: int, values: tuple[tuple[str, Rational], ...]
) -> Weights | None:
    """Return what :func:`by_pieces` does, where that is quicker than enumeration.

    Remembered: crossovers and intervals ask for the same sums again and again.

    Parameters
    ----------
    expr : Reduction
    low, high : int
    values : tuple of (str, int or Fraction)
        Of symbols in the body; the others stay symbols.
    """
    return by_pieces(expr, low, high, dict(values), (high - low) // TERMS_A_PIECE)


def _largest(form: _Form, count: int) -> Value:
    return largest_of(_numeric(form), count)


def _numeric(form: _Form) -> Polynomial:
    if not form:
        return _ZERO
    if len(form) > 1 or () not in form:
        raise _NotPieced
    return form[()]


def _is_zero(polynomial: Polynomial) -> bool:
    return len(polynomial) == 1 and polynomial[0] == 0


class _Stretch:
    """The indices ``start + step*k`` for ``k = 0..count-1``."""

    def __init__(
        self, index: str, start: int, step: int, count: int, values: Mapping[str, Value]
    ) -> None:
        self.index = index
        self.line = trimmed([start, step], count)
        self.count = count
        self.values = values
        self.known: dict[Expr, _Form] = {}

    def form(self, expr: Expr) -> _Form:
        """Return `expr` as polynomials in the place, one for each product of symbols."""
        if isinstance(expr, Num):
            return {(): (expr.value,)}
        if isinstance(expr, Sym):
            if expr.name == self.index:
                return {(): self.line}
            if expr.name in self.values:
                return {(): (self.values[expr.name],)}
            return {(expr.name,): _ONE}
        known = self.known.get(expr)
        if known is None:
            known = self.known[expr] = self._form(expr)
        return known

    def number(self, expr: Expr) -> Polynomial:
        """Return `expr`, which must hold no symbol without a value."""
        return _numeric(self.form(expr))

    def constant(self, expr: Expr) -> Value:
        """Return the value of `expr`, which must be the same at all places."""
        polynomial = self.number(expr)
        if len(polynomial) > 1:
            raise _NotPieced
        return polynomial[0]

    def _form(self, expr: Expr) -> _Form:
        match expr:
            case Add():
                return self._sum(expr)
            case Mul():
                product: _Form = {(): (expr.coefficient,)}
                for factor in expr.factors:
                    product = self._product(product, self.form(factor))
                return product
            case Conditional():
                return self.form(expr.then if self._holds(expr.test) else expr.orelse)
            case Comparison():
                return {(): _ONE if self._compared(expr) else _ZERO}
            case Extreme():
                return {(): self._extreme(expr)}
            case Division():
                return {(): self._division(expr)}
            case Pow():
                return self._power(expr)
            case Log2():
                return {(): (log2_value(self.constant(expr.argument)),)}
            case Gcd():
                left, right = self.constant(expr.left), self.constant(expr.right)
                return {(): (gcd_value(left, right),)}
            case Reduction():
                return self._reduction(expr)
            case _:
                raise _NotPieced

    def _sum(self, expr: Add) -> _Form:
        total: _Form = {(): (expr.constant,)}
        for term in expr.terms:
            for names, polynomial in self.form(term).items():
                total[names] = added(total.get(names, _ZERO), polynomial, 1, self.count)
        return {names: p for names, p in total.items() if not names or not _is_zero(p)}

    def _product(self, left: _Form, right: _Form) -> _Form:
        if len(left) * len(right) > MOST_PRODUCTS:
            raise _NotPieced
        total: _Form = {}
        for names, one in left.items():
            for others, other in right.items():
                together = tuple(sorted((*names, *others))) if names and others else names or others
                part = multiplied(one, other, self.count)
                total[together] = added(total.get(together, _ZERO), part, 1, self.count)
        return {names: p for names, p in total.items() if not names or not _is_zero(p)}

    def _power(self, expr: Pow) -> _Form:
        exponent = self.constant(expr.exponent)
        base = self.form(expr.base)
        if isinstance(exponent, int) and exponent >= 0:
            product: _Form = {(): _ONE}
            for _ in range(exponent):
                product = self._product(product, base)
            return product
        polynomial = _numeric(base)
        if len(polynomial) > 1:
            raise _NotPieced
        return {(): (bounded_power(polynomial[0], exponent),)}

    def _holds(self, test: Expr) -> bool:
        if isinstance(test, Comparison):
            return self._compared(test)
        return not is_zero(self.number(test), self.count)

    def _compared(self, expr: Comparison) -> bool:
        gap = added(self.number(expr.right), self.number(expr.left), -1, self.count)
        if isinstance(expr, Equal):
            return is_zero(gap, self.count)
        return is_above(gap, self.count, strictly=isinstance(expr, Less))

    def _extreme(self, expr: Extreme) -> Polynomial:
        first, *others = [self.number(arg) for arg in expr.args]
        for other in others:
            gap = added(other, first, -1, self.count)
            if is_above(gap, self.count, strictly=False) == isinstance(expr, Max):
                first = other
        return first

    def _division(self, expr: Division) -> Polynomial:
        if isinstance(expr.dividend, Log2) and not isinstance(expr, Mod):
            rounded = math.floor if isinstance(expr, FloorDiv) else math.ceil
            divisor = self.constant(expr.divisor)
            argument = self.number(expr.dividend.argument)
            if divisor == 1:
                return (
                    steady_value(argument, self.count, lambda value: rounded(log2_value(value))),
                )
        below = self.constant(expr.divisor)
        above = self.number(expr.dividend)
        if isinstance(below, float) or any(isinstance(part, float) for part in above):
            raise _NotPieced
        if below == 0:
            raise ExprError("division by zero")
        sign = -1 if isinstance(expr, CeilDiv) else 1
        quotient = trimmed([sign * Fraction(part) / below for part in above], self.count)
        whole = floor_of(quotient, self.count)
        if isinstance(expr, Mod):
            return added(above, whole, -below, self.count)
        return tuple(sign * part for part in whole)

    def _reduction(self, expr: Reduction) -> _Form:
        if self.index in free_symbols(expr) and self.count > 1:
            raise _NotPieced
        low, high = self.constant(expr.low), self.constant(expr.high)
        if not (isinstance(low, int) and isinstance(high, int)):
            raise _NotPieced
        (here, *_) = self.line
        values = {**self.values, self.index: here} if self.count == 1 else self.values
        inner = by_pieces(expr, low, high, values)
        if inner is None:
            raise _NotPieced
        return {names: (weight,) for names, weight in inner.items()}
