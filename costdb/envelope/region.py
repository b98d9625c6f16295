"""A region of sizes around a point: what holds throughout, and what has to be asked."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from costdb.envelope.polynomial import (
    Interval,
    Polynomial,
    added,
    by_degree,
    derived,
    names_in,
    range_over,
    replaced,
    scaled,
    value_at,
    variable,
)
from costdb.expr import Expr, ExprError, evaluate
from costdb.expr.exact import Rational, Value

MOST_GUARDS = 24
"""Questions about one region before its cost is more than what it saves."""

_LARGEST_DENOMINATOR = 64


class NotBounded(Exception):
    """No polynomials below and above are known."""


@dataclass(frozen=True, slots=True)
class Index:
    """The index of a reduction, as a variable of its own: its ends do not hold it."""

    name: str
    low: Polynomial
    high: Polynomial


@dataclass(slots=True)
class Region:
    """Points of a box that answer some questions as one point of it does.

    Attributes
    ----------
    point : mapping of str to int
        Of the sizes, later also of `variables`.
    box : mapping of str to (number, number)
        Ranges of the sizes, of `variables` and of indices.
    guards : list of Polynomial
        What is above 0 in the region.
    fixed : mapping of Expr to number
        What has the value in the region that it has at the point.
    variables : mapping of Expr to str
        What stands for a variable of polynomials.
    throughout : bool
        Whether nothing may be fixed, as bounds are asked for all over the box.
    """

    point: dict[str, Value]
    box: dict[str, Interval]
    guards: list[Polynomial] = field(default_factory=list)
    fixed: dict[Expr, Value] = field(default_factory=dict)
    variables: dict[Expr, str] = field(default_factory=dict)
    indices: dict[str, Index] = field(default_factory=dict)
    throughout: bool = False

    def holds(self, polynomial: Polynomial, *, strictly: bool = False) -> bool:
        """Tell whether a polynomial is not below 0 in the region.

        The region shrinks where that is true at its point, but not all over.

        Parameters
        ----------
        polynomial : Polynomial
            Over indices too: then at all their values.
        strictly : bool
            Whether it is above 0.
        """
        found = self._known(polynomial, strictly)
        if found is not None:
            return found
        bare = self.without_indices(polynomial)
        if bare is None:
            return False
        found = self._known(bare, strictly) if bare is not polynomial else None
        if found is None:
            bare = bare if strictly else _above_minus_one(bare)
            found = value_at(bare, self.point) > 0
            if found and bare not in self.guards:
                if len(self.guards) >= MOST_GUARDS:
                    raise NotBounded
                self.guards.append(bare)
        return found

    def _known(self, polynomial: Polynomial, strictly: bool) -> bool | None:
        low, high = self.range_of(polynomial)
        if low > 0 or (low == 0 and not strictly):
            return True
        return False if high < 0 or (high == 0 and strictly) else None

    def without_indices(self, polynomial: Polynomial) -> Polynomial | None:
        """Return a polynomial's least value over its indices; None where no end is the least."""
        # inner indices first: their ends hold the outer ones
        for name in reversed(self.indices):
            if name not in names_in(polynomial):
                continue
            low, high = self.range_of(derived(polynomial, name))
            index = self.indices[name]
            if low >= 0:
                polynomial = replaced(polynomial, name, index.low)
            elif high <= 0:
                polynomial = replaced(polynomial, name, index.high)
            else:
                return None
        return polynomial

    def range_of(self, polynomial: Polynomial) -> Interval:
        """Return numbers below and above all values in the box."""
        return range_over(polynomial, self.box)

    def near(self, polynomial: Polynomial) -> Rational:
        """Return the value at the point, with indices at their low ends."""
        for name in reversed(self.indices):
            if len(by_degree(polynomial, name)) > 1:
                polynomial = replaced(polynomial, name, self.indices[name].low)
        return value_at(polynomial, self.point)

    def fix(self, expr: Expr) -> Value:
        """Return the value of a part at the point, and let it have that value in the region.

        Raises
        ------
        NotBounded
            It has none, or nothing may be fixed.
        """
        if expr not in self.fixed:
            if self.throughout or len(self.fixed) >= MOST_GUARDS:
                raise NotBounded
            self.fixed[expr] = self._at_point(expr)
        return self.fixed[expr]

    def named(self, expr: Expr, low: Value, high: Value) -> Polynomial:
        """Return a part between two values as a variable, which is evaluated at each point."""
        name = self.variables.get(expr)
        if name is None:
            name = f"~{len(self.variables)}"
            self.point[name] = self._at_point(expr)
            self.box[name] = (_exact(low), _exact(high))
            self.variables[expr] = name
        return variable(name)

    def _at_point(self, expr: Expr) -> Value:
        try:
            return evaluate(expr, self.point)
        except ExprError as error:
            raise NotBounded from error

    def index(self, low: Polynomial, high: Polynomial) -> Index:
        """Return an index over a range that may be empty, the same for the same range."""
        for known in self.indices.values():
            if known.low == low and known.high == high:
                return known
        name = f"#{len(self.indices)}"
        first, last = self.range_of(low)[0], self.range_of(high)[1]
        self.box[name] = (first, max(first, last))
        self.indices[name] = Index(name, low, high)
        return self.indices[name]

    def needed(self) -> list[Polynomial]:
        """Return the guards without those that others imply."""
        kept: list[Polynomial] = []
        for place, guard in enumerate(self.guards):
            others = kept + self.guards[place + 1 :]
            if not any(self.range_of(added(guard, other, -1))[0] >= 0 for other in others):
                kept.append(guard)
        return kept


def _above_minus_one(polynomial: Polynomial) -> Polynomial:
    """Return what is above 0 where a polynomial is not below 0, if its values are whole."""
    whole = math.lcm(*(weight.denominator for weight in polynomial.values()))
    if whole > _LARGEST_DENOMINATOR or any(map(is_named, names_in(polynomial))):
        return polynomial
    return added(scaled(polynomial, whole), {(): Fraction(1, 2)})


def is_named(name: str) -> bool:
    """Tell whether a variable stands for a part of a formula."""
    return name.startswith("~")


def _exact(value: Value) -> Rational:
    return Fraction(value) if isinstance(value, float) else value
