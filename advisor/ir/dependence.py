"""Dependences between the iterations of a loop: whether any must follow another.

Two accesses to one array conflict when their regions overlap. For each dimension the overlap of
two affine regions bounds the distance between the iterations that touch the same element; the
bounds of all dimensions together leave an interval of distances. Where a subscript is not affine
in the loop's index, or the sign of a difference is not known, nothing is excluded: the analysis
may report a dependence that is none, and never misses one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, inf
from typing import Final

from advisor.ir.signs import known_non_negative
from advisor.ir.statements import (
    Bind,
    Choice,
    Loop,
    Return,
    Statement,
    Store,
    Unrolled,
    values_of,
    within,
    written,
)
from advisor.ir.values import Point, Range, Strided, Subscript, bounds_in, reads, residue
from costdb.expr import Expr, free_symbols, substitute, sym
from costdb.expr.nodes import Num
from costdb.records import dataclass


@dataclass(frozen=True, slots=True)
class _Access:
    array: str
    region: tuple[Subscript, ...] | None
    writes: bool


_Distances = tuple[float, float]
"""The least and the greatest distance of iterations."""

_ANY: Final = (-inf, inf)


def _meet(one: _Distances, other: _Distances) -> _Distances | None:
    """Return the distances that are in both intervals; None where there are none."""
    low, high = max(one[0], other[0]), min(one[1], other[1])
    return (low, high) if low <= high else None


def carried(loop: Loop, minima: Mapping[str, int] | None = None) -> bool:
    """Return whether iterations of a loop may have to keep their order.

    False only when they are surely independent. An array that an iteration binds anew before it
    reads it belongs to that iteration alone.

    Parameters
    ----------
    loop : Loop
    minima : mapping of str to int, optional
        Least values of symbols, where they are not 1.
    """
    return _carried(loop, tuple(sorted((minima or {}).items())))


def may_be_distributed(loop: Loop) -> bool:
    """Return whether each statement of a loop may go through all iterations before the next one.

    Within a store every iteration reads before any stores, as in a statement on arrays; an inner
    loop may be the outer one.
    """
    accesses = [list(_accesses((statement,), {})) for statement in loop.body]
    for number, ours in enumerate(accesses):
        # what comes later in the text comes later still when statements are taken apart
        for theirs in accesses[: number + 1]:
            for one in ours:
                for other in theirs:
                    if one.array != other.array or not (one.writes or other.writes):
                        continue
                    alone = ours is theirs and isinstance(loop.body[number], Store)
                    if alone and other.writes and not one.writes:
                        continue
                    if _meet_later(one, other, loop, {}):
                        return False
    return True


@lru_cache(maxsize=512)
def _carried(loop: Loop, minima: tuple[tuple[str, int], ...]) -> bool:
    # variants that are distributed in other ways have the same loops
    known = dict(minima)
    own = _private(loop.body)
    accesses = [a for a in _accesses(loop.body, {}) if a.array not in own]
    return any(
        _meet_later(one, other, loop, known)
        for one in accesses
        for other in accesses
        if one.array == other.array and (one.writes or other.writes)
    )


def _private(body: tuple[Statement, ...]) -> frozenset[str]:
    """Return the arrays that every iteration makes afresh before it uses them."""
    own: set[str] = set()
    seen: set[str] = set()
    for statement in body:
        if isinstance(statement, Bind):
            used = {read.array for read in reads(statement.value)}
            if statement.name not in seen | used:
                own.add(statement.name)
            seen |= used
        else:
            seen |= {access.array for access in _accesses((statement,), {})}
    return frozenset(own)


def _accesses(
    body: tuple[Statement, ...], inner: dict[str, tuple[Expr, Expr]]
) -> Iterator[_Access]:
    """Yield all accesses, with the indices of inner loops widened to their whole range."""
    for statement in body:
        match statement:
            case Store(array, region):
                yield _Access(array, _widened(region, inner), True)
            case Loop(variable, low, high, _, nested):
                yield from _accesses(nested, {**inner, variable: (low, high - 1)})
            case Return(names):
                yield from (_Access(name, None, False) for name in sorted(names))
            case Choice() | Unrolled():
                yield from _accesses(within(statement), inner)
            case _:
                yield from (_Access(n, None, True) for n in sorted(written(statement)))
        for value in values_of(statement):
            for read in reads(value):
                yield _Access(read.array, _widened(read.region, inner), False)


def _widened(
    region: tuple[Subscript, ...], inner: dict[str, tuple[Expr, Expr]]
) -> tuple[Subscript, ...] | None:
    """Return a region that holds all that inner loops make of it; None for anything."""
    if not inner:
        return region
    made: list[Subscript] = []
    for part in region:
        if not any(free_symbols(bound) & inner.keys() for bound in bounds_in(part)):
            made.append(part)
            continue
        low, high = bounds_of(part)
        for variable in reversed(inner):
            ends = inner[variable]
            low_end = extreme(low, variable, ends, least=True)
            high_end = extreme(high, variable, ends, least=False)
            if low_end is None or high_end is None:
                return None
            low, high = low_end, high_end
        made.append(Point(low) if isinstance(part, Point) and low == high - 1 else Range(low, high))
    return tuple(made)


def extreme(expr: Expr, variable: str, ends: tuple[Expr, Expr], *, least: bool) -> Expr | None:
    """Return the least or greatest value between two of a variable; None where not affine."""
    slope = slope_of(expr, variable)
    if slope is None:
        return None
    if slope == 0:
        return expr
    end = ends[0] if (slope > 0) == least else ends[1]
    return substitute(expr, {variable: end})


def bounds_of(part: Subscript) -> tuple[Expr, Expr]:
    """Return the half-open interval that holds the indices which a subscript selects."""
    match part:
        case Point(at):
            return at, at + 1
        case Range(low, high):
            return low, high
        case Strided(start, stop, _):
            return start, stop


def _are_interleaved(one: Subscript, other: Subscript, variable: str) -> bool:
    """Return whether two subscripts, in any two iterations, lie in different progressions."""
    if isinstance(one, Range) or isinstance(other, Range):
        return False
    steps = {part.step for part in (one, other) if isinstance(part, Strided)}
    if len(steps) != 1:
        return False
    first, second = bounds_in(one)[0], bounds_in(other)[0]
    if variable in free_symbols(first) | free_symbols(second):
        return False
    return residue(first - second, steps.pop()) not in (None, 0)


@lru_cache(maxsize=4096)
def slope_of(expr: Expr, variable: str) -> int | Fraction | None:
    """Return by how much an expression grows with a variable; None where it is not affine."""
    if variable not in free_symbols(expr):
        return 0
    step = substitute(expr, {variable: sym(variable) + 1}) - expr
    return step.value if isinstance(step, Num) else None


def _meet_later(first: _Access, then: _Access, loop: Loop, minima: Mapping[str, int]) -> bool:
    """Return whether `then` may touch in a later iteration what `first` touched in an earlier."""
    found: _Distances | None = (1, inf)
    ours, theirs = first.region, then.region
    if ours is not None and theirs is not None and len(ours) == len(theirs):
        for one, other in zip(ours, theirs, strict=True):
            if found is None or _are_interleaved(one, other, loop.variable):
                return False
            (low, high), (its_low, its_high) = bounds_of(one), bounds_of(other)
            # with ``v`` the earlier iteration and ``v + d`` the later, each begins before the
            # other ends: its_low(v + d) < high(v) bounds d from one side, low(v) < its_high(v + d)
            # from the other
            for fixed, moving, below in ((high, its_low, True), (low, its_high, False)):
                known = _bound(fixed, moving, loop, minima, strict_upper=below)
                found = None if known is None or found is None else _meet(found, known)
    trips = loop.high - loop.low
    if found is not None and loop.step > 1:
        found = _meet(found, (ceil(found[0] / loop.step) * loop.step, inf))
    return found is not None and not (isinstance(trips, Num) and found[0] >= trips.value)


def _bound(
    fixed: Expr, moving: Expr, loop: Loop, minima: Mapping[str, int], *, strict_upper: bool
) -> _Distances | None:
    """Return the distances for which ``moving(v + d) < fixed(v)`` can hold (or ``>``).

    None where it cannot hold for any.
    """
    variable, ends = loop.variable, (loop.low, loop.high - 1)
    slope, own = slope_of(moving, variable), slope_of(fixed, variable)
    if slope is None or own is None:
        return _ANY
    gap = fixed - moving if strict_upper else moving - fixed
    if slope == own:
        # gap does not depend on v; moving grows by slope * d
        if slope == 0:
            return None if known_non_negative(-gap, minima) else _ANY
        if not isinstance(gap, Num):
            return _ANY
        # strict_upper: slope * d < gap; else slope * d > -gap
        limit = Fraction(gap.value) / Fraction(slope)
        if not strict_upper:
            limit = -limit
        return (-inf, ceil(limit) - 1) if (slope > 0) == strict_upper else (floor(limit) + 1, inf)
    # regions that move at different speeds: which iterations meet depends on more than distance,
    # but all of what the one comes to may lie beyond all of the other
    nearest = extreme(moving, variable, ends, least=strict_upper)
    reach = extreme(fixed, variable, ends, least=not strict_upper)
    if nearest is None or reach is None:
        return _ANY
    beyond = nearest - reach if strict_upper else reach - nearest
    return None if known_non_negative(beyond, minima) else _ANY
