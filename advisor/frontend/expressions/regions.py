"""Subscripts of the source, as absolute regions."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from advisor.frontend.expressions.scalars import scalar
from advisor.frontend.naming.literals import literal_int
from advisor.frontend.naming.scope import Scope
from advisor.frontend.syntax.guard import NotUnderstood
from advisor.ir.signs import Sign, known_non_negative, non_negative_within, sign
from advisor.ir.values import Point, Range, Strided, Subscript
from costdb.expr import Expr, free_symbols, num, substitute
from costdb.expr.nodes import Num

ZERO = num(0)
ONE = num(1)


def region(
    elements: Sequence[cst.SubscriptElement], extents: tuple[Expr, ...], scope: Scope
) -> tuple[Subscript, ...]:
    """Return the region that a subscript of an array of shape `extents` selects."""
    entries = [element.slice for element in elements]
    dots = [i for i, entry in enumerate(entries) if _is_ellipsis(entry)]
    if len(dots) > 1:
        raise NotUnderstood("two ellipses in one subscript")
    missing = len(extents) - (len(entries) - len(dots))
    if missing < 0:
        raise NotUnderstood("more subscripts than dimensions")
    at = dots[0] if dots else len(entries)
    before, after = entries[:at], entries[at + len(dots) :]
    parts = [
        *(_part(entry, extent, scope) for entry, extent in zip(before, extents, strict=False)),
        *(Range(ZERO, extent) for extent in extents[at : at + missing]),
        *(_part(e, x, scope) for e, x in zip(after, extents[at + missing :], strict=True)),
    ]
    return tuple(parts)


def reversed_axis(elements: Sequence[cst.SubscriptElement], dimensions: int) -> int | None:
    """Return the axis that a subscript such as ``[:, ::-1]`` reverses, if that is all it does."""
    axis: int | None = None
    if len(elements) > dimensions:
        return None
    for position, element in enumerate(elements):
        entry = element.slice
        if not isinstance(entry, cst.Slice) or entry.lower or entry.upper:
            return None
        if entry.step is None:
            continue
        step = entry.step
        minus_one = (
            isinstance(step, cst.UnaryOperation)
            and isinstance(step.operator, cst.Minus)
            and isinstance(step.expression, cst.Integer)
            and step.expression.evaluated_value == 1
        )
        if not minus_one or axis is not None:
            return None
        axis = position
    return axis


def reversed_region(
    elements: Sequence[cst.SubscriptElement], extents: tuple[Expr, ...], scope: Scope
) -> tuple[tuple[Subscript, ...], int] | None:
    """Return the region of a subscript such as ``[k:0:-1]``, in order, and the axis it reverses.

    None where it is another kind of subscript.
    """
    entries = [element.slice for element in elements]
    backwards = [
        place
        for place, entry in enumerate(entries)
        if isinstance(entry, cst.Slice) and entry.step is not None and literal_int(entry.step) == -1
    ]
    if len(backwards) != 1 or len(entries) > len(extents) or any(map(_is_ellipsis, entries)):
        return None
    (place,) = backwards
    entry = entries[place]
    assert isinstance(entry, cst.Slice)
    forwards = cst.SubscriptElement(cst.Slice(lower=None, upper=None))
    parts = region([*elements[:place], forwards, *elements[place + 1 :]], extents, scope)
    extent = extents[place]
    low, high = ZERO, extent
    if entry.upper is not None:
        low = _absolute(scalar(entry.upper, scope), extent, scope) + 1
    if entry.lower is not None:
        high = _clipped(_absolute(scalar(entry.lower, scope), extent, scope) + 1, extent, scope)
    _in_order(low, high, extent)
    if known_non_negative(low - high, scope.minima) and low != high:
        raise NotUnderstood("a slice that is always empty")
    axis = sum(not isinstance(part, Point) for part in parts[:place])
    return (*parts[:place], Range(low, high), *parts[place + 1 :]), axis


def is_new_axis(element: cst.SubscriptElement) -> bool:
    """Return whether an entry of a subscript puts in a dimension (``None``, ``np.newaxis``)."""
    entry = element.slice
    if not isinstance(entry, cst.Index):
        return False
    if isinstance(entry.value, cst.Attribute):
        return entry.value.attr.value == "newaxis"
    return isinstance(entry.value, cst.Name) and entry.value.value in ("None", "newaxis")


def _is_ellipsis(entry: cst.BaseSlice) -> bool:
    return isinstance(entry, cst.Index) and isinstance(entry.value, cst.Ellipsis)


def _part(entry: cst.BaseSlice, extent: Expr, scope: Scope) -> Subscript:
    if isinstance(entry, cst.Index):
        if isinstance(entry.value, cst.Name) and entry.value.value == "None":
            raise NotUnderstood("a new axis in a subscript")
        value = scalar(entry.value, scope)
        return Point(_absolute(value, extent, scope))
    assert isinstance(entry, cst.Slice)
    step = _step(entry.step)
    low = ZERO if entry.lower is None else _absolute(scalar(entry.lower, scope), extent, scope)
    high = extent if entry.upper is None else _absolute(scalar(entry.upper, scope), extent, scope)
    low, high = _clipped(low, extent, scope), _clipped(high, extent, scope)
    _in_order(low, high, extent)
    if known_non_negative(low - high, scope.minima):
        if isinstance(low - high, Num):
            return Range(low, low)
        if entry.lower is not None and entry.upper is not None:
            raise NotUnderstood("a slice that is always empty")
    return Range(low, high) if step == 1 else _in_steps(low, high, step)


def _in_order(low: Expr, high: Expr, extent: Expr) -> None:
    """Refuse what holds nothing but for small extents."""
    sizes = free_symbols(extent)
    if sizes & free_symbols(low) and not sizes & free_symbols(high):
        raise NotUnderstood("a slice from near the end to near the start")


def _in_steps(low: Expr, high: Expr, step: int) -> Subscript:
    found = Strided(low, high, step)
    # what selects a single index is a range like any other
    return Range(low, low + 1) if found.count == ONE else found


def _clipped(bound: Expr, extent: Expr, scope: Scope) -> Expr:
    """Return a bound of a slice, moved to the edge where it surely lies beyond."""
    if sign(bound, scope.minima) is Sign.NEGATIVE:
        return ZERO
    beyond = bound - extent
    return extent if isinstance(beyond, Num) and beyond.value > 0 else bound


def _step(node: cst.BaseExpression | None) -> int:
    if node is None:
        return 1
    if not isinstance(node, cst.Integer) or node.evaluated_value < 1:
        raise NotUnderstood(
            "a slice with a step that is not written as a positive number, or as -1"
        )
    return node.evaluated_value


def _absolute(value: Expr, extent: Expr, scope: Scope) -> Expr:
    """Return a bound counted from the start, whatever sign Python would count it from.

    A bound ``extent - k`` with ``k >= 0`` is read as at least 0: sizes are assumed to be such
    that slices stay inside their array. A bound ``-k`` that may be 0 is not read at all, for
    Python counts it from the one end or from the other.
    """
    if non_negative_within(value, scope.minima, scope.maxima, scope.starts):
        return value
    found = sign(value, scope.minima)
    if found is Sign.NEGATIVE:
        return extent + value
    if found is Sign.UNKNOWN and _falls_short(value, extent, scope):
        return value
    raise NotUnderstood("the sign of a subscript is not known")


def _falls_short(value: Expr, extent: Expr, scope: Scope) -> bool:
    """Return whether a bound is written as the extent less something."""
    distance = extent - value
    if not non_negative_within(distance, scope.minima, scope.maxima, scope.starts):
        return False
    if free_symbols(extent):
        return not free_symbols(extent) & free_symbols(distance)
    return substitute(distance, dict.fromkeys(free_symbols(distance), ZERO)) == ZERO
