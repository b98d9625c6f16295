"""What subscripts select: whole numbers, slices and new axes, as regions of an array."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import EllipsisType

from advisor.frontend.trees import NotUnderstood
from advisor.ir.dependence import Sign, known_non_negative, non_negative_within, sign
from advisor.ir.values import Point, Range, Strided, Subscript
from costdb.expr import ONE, ZERO, Expr, free_symbols, maximum, substitute
from costdb.expr.nodes import Num
from costdb.records import dataclass, field

Sliced = tuple[Expr | None, Expr | None, int | None]
"""The bounds of a slice, as they are written, and its step; None for one that is not a number."""

Entry = Expr | Sliced | EllipsisType | None
"""An index, a slice, an ellipsis, or a new axis."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What is known of the symbols in subscripts.

    Attributes
    ----------
    minima : mapping of str to int
        Least values, where they are not 1.
    maxima : mapping of str to Expr
        Greatest values of the indices of the loops around, outermost first.
    starts : mapping of str to Expr
        First values of those.
    value : callable or None
        Gives the value of an expression where a program tells it. With it a number whose sign is
        not known is taken to count from the start, as in most programs; else that is refused.
    """

    minima: Mapping[str, int] = field(default_factory=dict)
    maxima: Mapping[str, Expr] = field(default_factory=dict)
    starts: Mapping[str, Expr] = field(default_factory=dict)
    value: Callable[[Expr], int | None] | None = None

    def non_negative(self, expr: Expr) -> bool:
        """Return whether an expression is surely at least 0."""
        return non_negative_within(expr, self.minima, self.maxima, self.starts)

    def negative(self, expr: Expr) -> bool:
        """Return whether an expression is below 0, by its value where nothing else tells."""
        if sign(expr, self.minima) is Sign.NEGATIVE:
            return True
        known = None if self.value is None else self.value(expr)
        return known is not None and known < 0


@dataclass(frozen=True, slots=True)
class Selection:
    """What a subscript selects.

    Attributes
    ----------
    region : tuple of Subscript
        An entry for each dimension of the array, in order.
    flipped : tuple of int
        Axes of what remains that are gone through from the end.
    expanded : tuple of int
        Axes of length 1 that are put in after that, by their places in the result.
    """

    region: tuple[Subscript, ...]
    flipped: tuple[int, ...]
    expanded: tuple[int, ...]


def selected(entries: Sequence[Entry], extents: tuple[Expr, ...], sizes: Sizes) -> Selection:
    """Return what a subscript of an array of shape `extents` selects.

    Raises
    ------
    NotUnderstood
        For more entries than dimensions, or bounds that may lie anywhere.
    """
    dots = [place for place, entry in enumerate(entries) if entry is ...]
    missing = len(extents) + len(dots) - sum(entry is not None for entry in entries)
    if len(dots) > 1 or missing < 0:
        raise NotUnderstood("two ellipses in one subscript, or more entries than dimensions")
    at = dots[0] if dots else len(entries)
    whole: Sliced = (None, None, 1)
    parts: list[Subscript] = []
    flipped: list[int] = []
    expanded: list[int] = []
    remaining = 0
    for entry in (*entries[:at], *[whole] * missing, *entries[at + 1 :]):
        if entry is None:
            expanded.append(remaining + len(expanded))
            continue
        assert entry is not ...
        extent, backwards = extents[len(parts)], False
        if isinstance(entry, Expr):
            part: Subscript = _point(entry, extent, sizes)
        else:
            part = _slice(entry, extent, sizes)
            backwards = (entry[2] or 1) < 0
        flipped += [remaining] * backwards
        remaining += not isinstance(part, Point)
        parts.append(part)
    return Selection(tuple(parts), tuple(flipped), tuple(expanded))


def _point(at: Expr, extent: Expr, sizes: Sizes) -> Point:
    try:
        return Point(_absolute(at, extent, sizes))
    except NotUnderstood:
        if sizes.maxima:
            raise
        # one element, from whichever end: outside of loops no more is asked of it
        return Point(at % extent)


def _slice(entry: Sliced, extent: Expr, sizes: Sizes) -> Subscript:
    """Return the indices of a dimension, in order also where a slice runs backwards."""
    lower, upper, step = entry
    if step is None or (step < 1 and step != -1):
        raise NotUnderstood(
            "a slice with a step that is not written as a positive number, or as -1"
        )
    back = int(step < 0)
    first, last = (upper, lower) if back else (lower, upper)
    low = ZERO if first is None else _absolute(first, extent, sizes) + back
    high = extent if last is None else _absolute(last, extent, sizes) + back
    low, high = _clipped(low, extent, sizes), _clipped(high, extent, sizes)
    beyond = low - high
    if high == ZERO or (isinstance(beyond, Num) and beyond.value >= 0) or sizes.negative(-beyond):
        return Range(high, high)
    if None not in (lower, upper) and known_non_negative(beyond, sizes.minima):
        raise NotUnderstood("a slice that is always empty")
    if not sizes.non_negative(high - low):
        _in_order(low, high, extent)
        if sizes.value is None and not free_symbols(extent) & free_symbols(high - low):
            # nothing, where the bounds are the other way round
            high = maximum(low, high)
    return Range(low, high) if step in (1, -1) else _in_steps(low, high, step)


def _in_order(low: Expr, high: Expr, extent: Expr) -> None:
    """Refuse what holds nothing but for small extents."""
    sizes = free_symbols(extent)
    if sizes & free_symbols(low) and not sizes & free_symbols(high):
        raise NotUnderstood("a slice from near the end to near the start")


def _in_steps(low: Expr, high: Expr, step: int) -> Subscript:
    found = Strided(low, high, step)
    # what selects a single index is a range like any other
    return Range(low, low + 1) if found.count == ONE else found


def _clipped(bound: Expr, extent: Expr, sizes: Sizes) -> Expr:
    """Return a bound of a slice, moved to the edge where it surely lies beyond."""
    if sign(bound, sizes.minima) is Sign.NEGATIVE:
        return ZERO
    beyond = bound - extent
    return extent if isinstance(beyond, Num) and beyond.value > 0 else bound


def _absolute(value: Expr, extent: Expr, sizes: Sizes) -> Expr:
    """Return a bound counted from the start, whatever sign Python would count it from.

    A bound ``extent - k`` with ``k >= 0`` is read as at least 0: sizes are assumed to be such
    that slices stay inside their array. A bound ``-k`` that may be 0 is not read at all, for
    Python counts it from the one end or from the other.
    """
    if sizes.non_negative(value):
        return value
    if sizes.negative(value):
        return extent + value
    unknown = sign(value, sizes.minima) is Sign.UNKNOWN
    if sizes.value is not None or (unknown and _falls_short(value, extent, sizes)):
        return value
    raise NotUnderstood("the sign of a subscript is not known")


def _falls_short(value: Expr, extent: Expr, sizes: Sizes) -> bool:
    """Return whether a bound is written as the extent less something."""
    distance = extent - value
    if not sizes.non_negative(distance):
        return False
    if free_symbols(extent):
        return not free_symbols(extent) & free_symbols(distance)
    return substitute(distance, dict.fromkeys(free_symbols(distance), ZERO)) == ZERO
