"""Which of several formulas is the least, compiled for a region of sizes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from typing import Any, TypeAlias

from costdb.envelope.bounding import Bounds, bounds_of
from costdb.envelope.polynomial import Monomial, Polynomial, added, constant
from costdb.envelope.region import NotBounded, Region
from costdb.expr import Expr
from costdb.expr.exact import Rational, exact, magnitude
from costdb.expr.loops import Scalar
from costdb.expr.lower import assign, binary, compare, name
from costdb.expr.lower import constant as literal
from costdb.expr.scalar_code import nearest

Least: TypeAlias = Callable[..., int]
"""From sizes to the place of the least formula, `CLOSE` or `ELSEWHERE`."""

CLOSE = -1
"""The polynomials do not tell at these sizes."""
ELSEWHERE = -2
"""The sizes are not in the region."""

_AT: dict[str, Any] = {"lineno": 1, "col_offset": 0}
_ROUNDED = Fraction(1, 10**12)
"""Above what floats lose in a polynomial, as a share of the sizes of its terms together."""
_SAFE = 1 + Fraction(1, 10**9)
"""Likewise between two formulas that are evaluated in full."""


def least_in(
    formulas: Sequence[Expr],
    ranges: Sequence[tuple[Expr, float, float]],
    names: Sequence[str],
    point: Mapping[str, int],
    box: Mapping[str, tuple[int, int]],
    tie: float,
) -> Least:
    """Compile which formula is the least, for the sizes of a box that are like one of them.

    Parameters
    ----------
    formulas : sequence of Expr
        Over `names`; numbers above 0.
    ranges : sequence of (Expr, low, high)
        What must lie between two numbers at the sizes of the region.
    names : sequence of str
        Sizes, in the order of the arguments of the result.
    point, box : mapping
        The sizes that say how choices in the formulas are made, and all sizes to consider, whole
        numbers of at least 1.
    tie : float
        At least 1. The first is taken where every other is more than its `tie` fold; another where
        it is the least, and the first is more than its `tie` fold.

    Returns
    -------
    callable
        What it gives is certain: the same as comparing the formulas in full.

    Raises
    ------
    NotBounded
        No polynomials are known that bound a formula.
    """
    region = Region({n: point[n] for n in names}, {n: box[n] for n in names})
    for quantity, low, high in ranges:
        found = bounds_of(quantity, region)
        above = added(found.low, constant(exact(low)), -1)
        below = added(constant(exact(high)), found.high, -1)
        if not (region.holds(above) and region.holds(below)):
            raise NotBounded
    bounds = [bounds_of(formula, region) for formula in formulas]
    if not all(region.holds(one.low, strictly=True) for one in bounds):
        raise NotBounded
    return _Code(names, region).compiled_choice(bounds, exact(tie) * _SAFE)


class _Code(Scalar):
    """One function: guards, then differences, over monomials that are computed once."""

    def __init__(self, names: Sequence[str], region: Region) -> None:
        super().__init__(names)
        self.region = region
        self.monomials: dict[Monomial, str] = {}

    def compiled_choice(self, bounds: Sequence[Bounds], tie: Rational) -> Least:
        """Return the function."""
        for expr, value in self.region.fixed.items():
            self._unless(compare(self.lower(expr, True), ast.Eq(), self.number(exact(value), True)))
        for argument in list(self.scope.values()):
            self.statements.append(assign(f"f{argument}", _times(name(argument), literal(1.0))))
        self.floats = {one: f"f{given}" for one, given in self.scope.items()}
        for expr, named in self.region.variables.items():
            self.floats[named] = f"n{len(self.floats)}"
            self.statements.append(assign(self.floats[named], self.lower(expr, False)))
        guards = self.region.needed()
        chances = {place: self._margins(bounds, place, tie) for place in range(len(bounds))}
        possible = {
            place: margins
            for place, margins in chances.items()
            if all(self.region.range_of(margin)[1] > 0 for margin in margins)
        }
        self._share(chain(guards, *possible.values()))
        for guard in guards:
            self._unless(self._above(guard))
        for place, margins in possible.items():
            self._return(place, [self._above(margin) for margin in margins])
        self._return(CLOSE, [])
        arguments = [ast.arg(argument, None, **_AT) for argument in self.scope.values()]
        return self.compiled(arguments, self.helpers)

    def _margins(self, bounds: Sequence[Bounds], place: int, tie: Rational) -> list[Polynomial]:
        """Return what is all above 0 where one formula is taken."""
        return [
            added(other.low, bounds[place].high, -(_SAFE if place and at else tie))
            for at, other in enumerate(bounds)
            if at != place
        ]

    def _share(self, polynomials: chain[Polynomial]) -> None:
        wanted = sorted({m for one in polynomials for m in one}, key=lambda m: sum(p for _, p in m))
        for monomial in wanted:
            self._monomial(monomial)

    def _monomial(self, monomial: Monomial) -> ast.expr:
        """Return code for a product of powers, from one that is a factor less."""
        if not monomial:
            return literal(1.0)
        if monomial not in self.monomials:
            if len(monomial) == 1 and monomial[0][1] == 1:
                self.monomials[monomial] = self.floats[monomial[0][0]]
            else:
                lesser = [_without(monomial, one) for one, _ in monomial]
                rest = next((m for m in lesser if m in self.monomials), lesser[-1])
                (last,) = [n for n, p in monomial if dict(rest).get(n, 0) < p]
                code = _times(self._monomial(rest), name(self.floats[last]))
                target = f"m{len(self.monomials)}"
                self.statements.append(assign(target, code))
                self.monomials[monomial] = target
        return name(self.monomials[monomial])

    def _above(self, polynomial: Polynomial) -> ast.expr:
        """Return a test that is passed only where a polynomial is above 0."""
        lost: Rational = 0
        total: ast.expr | None = None
        for monomial, weight in polynomial.items():
            low, high = self.region.range_of({monomial: weight})
            lost += max((magnitude(low), magnitude(high)), key=nearest)
            if monomial:
                term = _times(self._monomial(monomial), literal(nearest(weight)))
                total = term if total is None else binary(total, ast.Add(), term)
        limit = literal(nearest(lost * _ROUNDED - polynomial.get((), 0)))
        return compare(literal(0.0) if total is None else total, ast.Gt(), limit)

    def _unless(self, test: ast.expr) -> None:
        self._return(ELSEWHERE, [ast.UnaryOp(ast.Not(), test, **_AT)])

    def _return(self, place: int, tests: list[ast.expr]) -> None:
        value = ast.Return(literal(place) if place >= 0 else _negative(place), **_AT)
        if not tests:
            self.statements.append(value)
            return
        test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests, **_AT)
        self.statements.append(ast.If(test, [value], [], **_AT))


def _times(left: ast.expr, right: ast.expr) -> ast.expr:
    return binary(left, ast.Mult(), right)


def _negative(value: int) -> ast.expr:
    return ast.UnaryOp(ast.USub(), literal(-value), **_AT)


def _without(monomial: Monomial, factor: str) -> Monomial:
    return tuple((n, p - (n == factor)) for n, p in monomial if n != factor or p > 1)
