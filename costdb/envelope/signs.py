"""Where a formula of one whole number is above 0: all places, certified.

A range is taken apart into boxes. In each the formula lies between two polynomials whose signs
change at places that are found exactly; where they do not agree the box is halved, until it is
small enough to try every value. Nothing is assumed between two values: a range that this does not
decide has no answer.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from costdb.envelope.bounding import bounds_of
from costdb.envelope.polynomial import (
    Polynomial,
    TooLarge,
    added,
    by_degree,
    constant,
    multiplied,
    names_in,
    scaled,
    variable,
)
from costdb.envelope.region import NotBounded, Region
from costdb.expr import Expr, num, sym
from costdb.expr.exact import Rational
from costdb.expr.nodes import power

FEWEST_BOXES, MOST_BOXES, PARTS = 8, 64, 180_000
"""Boxes before a range is left undecided: fewer for formulas of many parts, which take longer."""

NARROW = 1.05
"""At the end of a range, a box of such ends that is not decided tells that larger sizes decide no
more: the difference does not outgrow what is not known of it. Where values are too large to be
tried, it will not be decided either."""

MOST_UNBOUNDED = 3
"""Boxes without any bounds before it is."""

MOST_CHANGES = 1000
"""Changes of the sign before it is: what changes on and on is not told by a list."""

_DENSE = 256
"""Values at the start of a range that are tried one by one: there formulas round most."""

Coefficients: TypeAlias = tuple[int, ...]
"""Of a polynomial of one whole number, the constant first, times what makes all of them whole."""

_Run: TypeAlias = tuple[int, bool]
"""Where a sign begins, and whether it is above 0."""

_Box: TypeAlias = tuple[int, int]
"""The first and the last of some values."""


class _Undecided(Exception):
    """Neither bounds nor a few trials tell."""


def sign_changes(
    expr: Expr,
    name: str,
    low: int,
    high: int,
    is_above: Callable[[int], bool],
    few: int,
    tried_to: int,
) -> tuple[bool, tuple[int, ...]] | None:
    """Return whether a formula is above 0 at `low`, and every value at which that changes.

    Parameters
    ----------
    expr : Expr
        Over `name` alone.
    name : str
    low, high : int
        Values to consider, inclusive, from 1 on.
    is_above : callable
        Tells it for one value.
    few : int
        Values that are sooner tried one by one than bounded.
    tried_to : int
        The largest value that may be tried.

    Returns
    -------
    (bool, tuple of int) or None
        None where it was not decided for every value of the range.
    """
    dense = min(high, low + max(few, min(_DENSE, 16 * few)) - 1)
    runs: list[_Run] = []
    try:
        # what bounds do not decide is not worth trying the first values
        if dense < high:
            runs += _Deciding(expr, name, is_above, few, tried_to).runs([(dense + 1, high)])
    except _Undecided:
        return None
    runs += _tried(is_above, low, dense)
    runs.sort()
    flips = tuple(then for (_, one), (then, other) in pairwise(runs) if one != other)
    return None if len(flips) > MOST_CHANGES else (runs[0][1], flips)


def _tried(is_above: Callable[[int], bool], low: int, high: int) -> list[_Run]:
    runs: list[_Run] = []
    for value in range(low, high + 1):
        found = is_above(value)
        if not runs or runs[-1][1] != found:
            runs.append((value, found))
    return runs


class _Piece(NamedTuple):
    """A formula between two polynomials from the start of a box up to `last`."""

    last: int
    below: Coefficients
    above: Coefficients


def _width(box: _Box) -> tuple[int, int]:
    low, high = box
    return (high // low).bit_length(), -low


class _Deciding:
    """One formula, and how much has been asked of it."""

    def __init__(
        self, expr: Expr, name: str, is_above: Callable[[int], bool], few: int, tried_to: int
    ) -> None:
        self.expr = expr
        self.name = name
        self.is_above = is_above
        self.few = few
        self.tried_to = tried_to
        self.boxes = max(FEWEST_BOXES, min(MOST_BOXES, PARTS // expr.size))
        self.end = 0
        self.unbounded = 0

    def runs(self, pending: list[_Box]) -> list[_Run]:
        """Return the signs over boxes.

        Raises
        ------
        _Undecided
        """
        found: list[_Run] = []
        self.end = pending[-1][1]
        few: list[_Box] = []
        without: list[_Box] = []
        while pending or without:
            few += (box for box in (*pending, *without) if not self._is_bounded(box))
            pending = [box for box in pending if self._is_bounded(box)]
            without = [box for box in without if self._is_bounded(box)]
            # each takes at least one more
            if self.boxes < len(pending) + len(without):
                raise _Undecided
            if not pending and not without:
                break
            # Whether all are decided does not depend on the order; that they are not shows at the
            # least expense in parts of what had no bounds, the widest first.
            low, high = max(without, key=_width) if without else pending[-1]
            (without or pending).remove((low, high))
            self.boxes -= 1
            piece = self._piece(low, high)
            if piece is None:
                without += self._halves(low, high)
                continue
            if piece.last < high:
                pending.append((piece.last + 1, high))
            changes = {*changes_of(piece.below, low, piece.last)}
            changes.update(changes_of(piece.above, low, piece.last))
            edges = [low, *sorted(changes), piece.last + 1]
            for start, end in pairwise(edges):
                if _value(piece.below, start) > 0:
                    found.append((start, True))
                elif _value(piece.above, start) <= 0:
                    found.append((start, False))
                elif end - start > (high - low) // 2:
                    pending += self._halves(start, end - 1)
                else:
                    pending.append((start, end - 1))
        for low, high in few:
            found += _tried(self.is_above, low, high)
        return found

    def _is_bounded(self, box: _Box) -> bool:
        """Tell whether a box is bounded sooner than its values are tried."""
        low, high = box
        return high - low >= self.few or high > self.tried_to

    def _halves(self, low: int, high: int) -> list[_Box]:
        hopeless = high == self.end or low > self.tried_to
        if low == high or (hopeless and high < NARROW * low):
            raise _Undecided
        # over a range that wide, formulas grow by factors
        middle = math.isqrt(low * high) if high > 4 * low else (low + high) // 2
        return [(low, middle), (middle + 1, high)]

    def _piece(self, low: int, high: int) -> _Piece | None:
        region = Region({self.name: low}, {self.name: (low, high)}, throughout=True)
        try:
            bounds = bounds_of(self.expr, region)
            below = self._of_one(bounds.low, region)
            above = (
                below
                if bounds.exact and names_in(bounds.low) <= {self.name}
                else scaled(self._of_one(scaled(bounds.high, -1), region), -1)
            )
            last = high
            for guard in region.guards:
                # what is not above 0 at the start of the box is no guard, but for named parts
                held = _coefficients(self._of_one(guard, region), self.name)
                if _value(held, low) <= 0:
                    return None
                last = min([last, *(place - 1 for place in changes_of(held, low, last)[:1])])
        except (NotBounded, TooLarge):
            self.unbounded += 1
            if self.unbounded > MOST_UNBOUNDED:
                raise _Undecided from None
            return None
        return _Piece(last, _coefficients(below, self.name), _coefficients(above, self.name))

    def _of_one(self, polynomial: Polynomial, region: Region) -> Polynomial:
        """Return a polynomial of the one number that is not above another in the box."""
        inverses = [region.variables.get(power(sym(self.name), num(-1)))]
        for name in sorted(names_in(polynomial) - {self.name}):
            least, most = region.box[name]
            parts = by_degree(polynomial, name)
            polynomial = parts[0]
            for degree, part in enumerate(parts[1:], 1):
                if not part:
                    continue
                if least < 0 and degree % 2 == 0:
                    raise NotBounded
                low = self._is_positive(part, region)
                if degree == 1 and name in inverses:
                    end = self._inverse(region, low)
                else:
                    end = constant((least if low else most) ** degree)
                polynomial = added(polynomial, multiplied(part, end))
        return polynomial

    def _inverse(self, region: Region, low: bool) -> Polynomial:
        """Return a line below or above the inverse of the number: a tangent or a chord."""
        first, last = region.box[self.name]
        own = variable(self.name)
        if low:
            middle = Fraction(first + last) / 2
            return added(constant(2 / middle), own, -1 / middle**2)
        return added(
            constant(Fraction(first + last) / (first * last)), own, Fraction(-1) / (first * last)
        )

    def _is_positive(self, polynomial: Polynomial, region: Region) -> bool:
        """Tell which sign, or 0, a polynomial has throughout the box."""
        least, most = region.range_of(polynomial)
        if least >= 0 or most <= 0:
            return least >= 0
        if names_in(polynomial) <= {self.name}:
            low, high = (int(end) for end in region.box[self.name])
            own = _coefficients(polynomial, self.name)
            if not changes_of(own, low, high):
                return _value(own, low) > 0
        raise NotBounded


def _coefficients(polynomial: Polynomial, name: str) -> Coefficients:
    found: list[Rational] = [part.get((), 0) for part in by_degree(polynomial, name)]
    whole = math.lcm(*(weight.denominator for weight in found))
    return tuple(int(weight * whole) for weight in found)


def changes_of(coefficients: Sequence[int], low: int, high: int) -> list[int]:
    """Return the whole numbers at which a polynomial starts, or ends, being above 0.

    Exact: between two turns, which are changes of the differences of neighbours, values only rise
    or only fall.

    Parameters
    ----------
    coefficients : sequence of int
        The constant first.
    low, high : int
        The range, inclusive; a change lies above `low`.
    """
    degree = len(coefficients) - 1
    if degree < 1 or high <= low:
        return []
    differences = [
        sum(coefficients[power] * math.comb(power, place) for power in range(place + 1, degree + 1))
        for place in range(degree)
    ]
    found = []
    for left, right in pairwise([low, *changes_of(differences, low, high - 1), high]):
        at_left = _value(coefficients, left) > 0
        if at_left != (_value(coefficients, right) > 0):
            span = range(left, right + 1)
            unlike = bisect_left(
                span, True, key=lambda place: (_value(coefficients, place) > 0) != at_left
            )
            found.append(span[unlike])
    return found


def _value(coefficients: Sequence[int], place: int) -> int:
    total = 0
    for coefficient in reversed(coefficients):
        total = total * place + coefficient
    return total
