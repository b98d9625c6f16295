"""Formulas without fractions among their numbers: whole ones, and what to divide them by.

Python adds whole numbers some fifty times faster than fractions. What is decided from sizes
(a comparison, a rounded division) is the same where both sides are multiplied by the denominators
of all constants in them, once, before the formula is compiled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache

from costdb.expr.errors import ExprError
from costdb.expr.functions import (
    Comparison,
    Conditional,
    Extreme,
    Gcd,
    Log2,
    Reduction,
    conditional,
)
from costdb.expr.nodes import (
    ONE,
    Add,
    CeilDiv,
    Division,
    Expr,
    FloorDiv,
    Mod,
    Mul,
    Num,
    Pow,
    Rational,
    combine,
    multiply,
    num,
    split_coefficient,
)

MOST_DENOMINATOR = 2**64
"""A larger common denominator is left alone: the whole numbers would be as slow as fractions."""

Over = tuple[Expr, int]
"""A formula, and a number of at least 1 that it is to be divided by."""


@lru_cache(maxsize=1024)
def over_denominator(expr: Expr) -> Over:
    """Return ``(above, below)`` with ``expr == above / below`` and no fraction in `above`.

    Fractions stay where they cannot be taken out: in an argument of a logarithm, in an exponent,
    below a quotient of sizes, or where `below` would be more than `MOST_DENOMINATOR`. Values are
    the same for whole numbers and fractions in place of the symbols; floats may round differently.
    """
    try:
        return _Clearing().over(expr)
    except ExprError:
        # such as one that would be nested too deep
        return expr, 1


@lru_cache(maxsize=1024)
def cleared(expr: Expr) -> Expr:
    """Return a formula of the same value that decides, and rounds, over whole numbers.

    Fractions stay where nothing is decided: weights of what is summed up.
    """
    try:
        return _Clearing().cleared(expr)
    except ExprError:
        return expr


class _TooFine(Exception):
    """The common denominator is too large."""


class _Clearing:
    """Parts that occur several times are looked at once."""

    def __init__(self) -> None:
        self.known_over: dict[Expr, Over] = {}
        self.known_cleared: dict[Expr, Expr] = {}

    def over(self, expr: Expr) -> Over:
        if isinstance(expr, Num):
            return num(expr.value.numerator), expr.value.denominator
        if not expr.children:
            return expr, 1
        found = self.known_over.get(expr)
        if found is None:
            try:
                found = self._over(expr)
            except (_TooFine, ExprError):
                found = self._inside(expr), 1
            self.known_over[expr] = found
        return found

    def cleared(self, expr: Expr) -> Expr:
        if not expr.children:
            return expr
        found = self.known_cleared.get(expr)
        if found is None:
            found = self.known_cleared[expr] = self._cleared(expr)
        return found

    def _over(self, expr: Expr) -> Over:
        match expr:
            case Add():
                return self._sum(expr)
            case Mul():
                return self._product(expr)
            case Conditional():
                test, _ = self.over(expr.test)
                (then, orelse), below = self._together((expr.then, expr.orelse))
                return conditional(test, then, orelse), below
            case Extreme():
                args, below = self._together(expr.children)
                return _over(expr, args), below
            case FloorDiv(dividend=Log2()) | CeilDiv(dividend=Log2()):
                return self._inside(expr), 1
            case Comparison() | FloorDiv() | CeilDiv():
                sides, _ = self._together(expr.children)
                return _over(expr, sides, type(expr)), 1
            case Gcd() | Mod():
                sides, below = self._together(expr.children)
                return _over(expr, sides, type(expr)), below
            case Pow(exponent=Num(value=int() as exponent)):
                base, below = self.over(expr.base)
                if exponent > 0:
                    return Pow(base, expr.exponent), _checked(below**exponent)
                return multiply((num(below**-exponent), Pow(base, expr.exponent))), 1
            case Reduction():
                body, below = self.over(expr.body)
                low, high = self.cleared(expr.low), self.cleared(expr.high)
                return type(expr)(expr.index, low, high, body), below
            case _:
                return self._inside(expr), 1

    def _sum(self, expr: Add) -> Over:
        if type(expr.constant) is int and all(map(_is_plain, expr.children)):
            parts = [self.over(term) for term in expr.children]
            if all(below == 1 for _, below in parts):
                return _over(expr, [above for above, _ in parts]), 1
        weighted: list[tuple[int, int, Expr]] = []
        below = expr.constant.denominator
        for term in expr.terms:
            coefficient, rest = split_coefficient(term)
            above, part = self.over(rest)
            weight, share = _shortened(coefficient.numerator, coefficient.denominator * part)
            below = math.lcm(below, share)
            weighted.append((weight, share, above))
        _checked(below)
        whole: list[tuple[Rational, Expr]] = [
            (weight * (below // share), above) for weight, share, above in weighted
        ]
        return combine([*whole, (int(expr.constant * below), ONE)]), below

    def _product(self, expr: Mul) -> Over:
        parts = [self.over(factor) for factor in expr.children]
        if type(expr.coefficient) is int and all(below == 1 for _, below in parts):
            return _over(expr, [above for above, _ in parts]), 1
        shares = math.prod([below for _, below in parts])
        own = expr.coefficient
        weight, below = _shortened(own.numerator, own.denominator * shares)
        return multiply((*[above for above, _ in parts], num(weight))), _checked(below)

    def _together(self, exprs: Sequence[Expr]) -> tuple[tuple[Expr, ...], int]:
        parts = [self.over(expr) for expr in exprs]
        if all(part == 1 for _, part in parts):
            return tuple([one for one, _ in parts]), 1
        below = _checked(math.lcm(*(part for _, part in parts)))
        scaled = [one if part == below else num(below // part) * one for one, part in parts]
        return tuple(scaled), below

    def _cleared(self, expr: Expr) -> Expr:
        if isinstance(expr, Add | Mul | Comparison | Division | Gcd):
            above, below = self.over(expr)
            if below == 1:
                return above
            if isinstance(expr, Division | Gcd):
                return num(Fraction(1, below)) * above
        return self._inside(expr)

    def _inside(self, expr: Expr) -> Expr:
        """Return what only holds cleared parts, itself not cleared."""
        if isinstance(expr, Conditional):
            test, _ = self.over(expr.test)
            return conditional(test, self.cleared(expr.then), self.cleared(expr.orelse))
        return _over(expr, [self.cleared(child) for child in expr.children])


def _shortened(above: int, below: int) -> tuple[int, int]:
    """Return a fraction in its lowest terms; Python's own takes ten times as long."""
    common = math.gcd(above, below)
    return above // common, below // common


def _is_plain(term: Expr) -> bool:
    """Return whether a term of a sum is multiplied by no fraction."""
    return not isinstance(term, Mul) or type(term.coefficient) is int


def _over(expr: Expr, children: Sequence[Expr], make: Callable[..., Expr] | None = None) -> Expr:
    """Return a formula over these children, itself where they are its own, as most are."""
    for one, other in zip(children, expr.children, strict=True):
        if one is not other:
            return make(*children) if make is not None else expr.rebuild(tuple(children))
    return expr


def _checked(below: int) -> int:
    if below > MOST_DENOMINATOR:
        raise _TooFine
    return below
