"""Dependences between the iterations of a loop: whether any must follow another.

Two accesses to one array conflict when their regions overlap. For each dimension the overlap of
two affine regions bounds the distance between the iterations that touch the same element; the
bounds of all dimensions together leave an interval of distances. Where a subscript is not affine
in the loop's index, or the sign of a difference is not known, nothing is excluded: the analysis
may report a dependence that is none, and never misses one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, inf, prod
from typing import Final

from advisor.ir.statements import (
    Bind,
    Choice,
    Loop,
    Return,
    Statement,
    Store,
    Unknown,
    Unrolled,
    values_of,
    within,
    written,
)
from advisor.ir.values import Point, Range, Strided, Subscript, bounds_in, reads, residue
from costdb.expr import Expr, free_symbols, maximum, minimum, num, substitute, sym
from costdb.expr.functions import Max, Min
from costdb.expr.nodes import Add, FloorDiv, Mod, Mul, Num, Pow, Sym
from costdb.records import dataclass

# Signs of size expressions: enough to read slice bounds, silent where unsure.


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
        case FloorDiv(dividend, divisor):
            # who divides by 0 gets no number
            inner, by = _least(dividend), _least(divisor)
            return None if inner is None or by is None or inner < 0 or by < 0 else 0
        case Mod(_, divisor):
            inner = _least(divisor)
            return 0 if inner is not None and inner > 0 else None
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
    return _sign(expr, frozenset((name, minima.get(name, 1)) for name in free_symbols(expr)))


@lru_cache(maxsize=4096)
def _sign(expr: Expr, minima: frozenset[tuple[str, int]]) -> Sign:
    moved = substitute(expr, {name: sym(name) + least for name, least in minima})
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
            case Unknown():
                changed = written(statement)
                yield from (_Access(n, None, n in changed) for n in sorted(statement.mentions))
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
