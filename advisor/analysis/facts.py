"""What is known of sizes while a kernel is lowered: bounds of symbols, and what follows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache

from advisor.ir.dependence import Sign, non_negative_within, sign
from advisor.ir.statements import Bind, Loop, ScalarBind, Statement, Store
from advisor.ir.values import Point, Subscript, reads
from costdb.expr import Expr
from costdb.expr.nodes import Add, Sym

# What subscripts tell of sizes: ``u[-2]`` is an element only where there are two.


def least_sizes(statements: tuple[Statement, ...]) -> dict[str, int]:
    """Return the least values of sizes for which single indices lie inside their arrays.

    A kernel raises for smaller ones, so that what it costs then is nobody's question. Statements
    that may not run say nothing; what loops hold is taken to run.
    """
    found: dict[str, int] = {}
    for part in _subscripts(statements):
        if isinstance(part, Point):
            known = _least(part.at)
            if known is not None and known[1] > found.get(known[0], 1):
                found[known[0]] = known[1]
    return found


def _least(index: Expr) -> tuple[str, int] | None:
    """Return for an index such as ``N - 2`` the size and its least value."""
    match index:
        case Add((Sym(name),), int(constant)) if constant < 0 and "." not in name:
            return name, -constant
    return None


def _subscripts(statements: tuple[Statement, ...]) -> Iterator[Subscript]:
    for statement in statements:
        match statement:
            case Loop():
                yield from _subscripts(statement.body)
            case Store():
                yield from statement.region
                for read in reads(statement.value):
                    yield from read.region
            case Bind() | ScalarBind():
                for read in reads(statement.value):
                    yield from read.region


class NotPriced(Exception):
    """Something understood that no rule lowers to work yet, with the reason."""


class Turning(NotPriced):
    """A shift whose direction depends on its size."""

    def __init__(self, shift: Expr) -> None:
        super().__init__("a shift whose direction depends on its size")
        self.shift = shift


class Bounds:
    """Bounds of symbols at one point of a kernel; equal ones have equal consequences.

    Attributes
    ----------
    minima : mapping of str to int
        Least values of symbols, where they are not 1.
    maxima : mapping of str to Expr
        Greatest values of the indices of the loops around, outermost first.
    """

    __slots__ = ("_hash", "_key", "maxima", "minima")

    def __init__(self, minima: Mapping[str, int], maxima: Mapping[str, Expr]) -> None:
        self.minima = minima
        self.maxima = maxima
        self._key = tuple(minima.items()), tuple(maxima.items())
        self._hash = hash(self._key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Bounds) and self._key == other._key)

    def non_negative(self, expr: Expr) -> bool:
        """Return whether an expression is surely at least 0."""
        return _non_negative(expr, self)


class Facts:
    """Bounds of symbols while a kernel is gone through; every size is at least 1 by itself."""

    def __init__(self, bounds: Bounds | None = None) -> None:
        self.bounds = bounds or Bounds({}, {})

    @property
    def minima(self) -> Mapping[str, int]:
        """Least values of symbols, where they are not 1."""
        return self.bounds.minima

    @property
    def maxima(self) -> Mapping[str, Expr]:
        """Greatest values of the indices of the loops around, outermost first."""
        return self.bounds.maxima

    @contextmanager
    def within(self, index: str, least: int, greatest: Expr) -> Iterator[None]:
        """Know the bounds of a loop's index for as long as its body is looked at."""
        outside = self.bounds
        self.bounds = Bounds({**outside.minima, index: least}, {**outside.maxima, index: greatest})
        try:
            yield
        finally:
            self.bounds = outside

    def sign(self, expr: Expr) -> Sign:
        """Return the sign of an expression, as far as it is known."""
        found = sign(expr, self.minima)
        if found is Sign.UNKNOWN and self.maxima:
            if self.non_negative(expr):
                return Sign.NON_NEGATIVE
            if self.non_negative(-expr):
                return Sign.NON_POSITIVE
        return found

    def non_negative(self, expr: Expr) -> bool:
        """Return whether an expression is surely at least 0."""
        return _non_negative(expr, self.bounds)

    def ascending(self, values: Iterable[Expr]) -> tuple[Expr, ...] | None:
        """Return values in ascending order, None where their order is not known."""
        ordered: list[Expr] = []
        for value in values:
            place = len(ordered)
            while place and not self.non_negative(value - ordered[place - 1]):
                if not self.non_negative(ordered[place - 1] - value):
                    return None
                place -= 1
            ordered.insert(place, value)
        return tuple(ordered)


@lru_cache(maxsize=4096)
def _non_negative(expr: Expr, bounds: Bounds) -> bool:
    return non_negative_within(expr, bounds.minima, bounds.maxima)
