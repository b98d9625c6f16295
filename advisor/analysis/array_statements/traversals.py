"""The memory that an array statement walks, and how far it moves with the loop around."""

from __future__ import annotations

from advisor.analysis.facts import Facts
from advisor.analysis.placed.operands import Operand, pairs_of
from advisor.analysis.placed.placement import (
    Placement,
    in_steps,
    local_extents,
    low_of,
    pitches_bytes,
)
from advisor.dtypes import itemsize_of
from advisor.ir.dependence import slope_of
from advisor.ir.shapes import ArrayType, length_of
from advisor.ir.values import Point, Subscript, bounds_in
from costdb.expr import ONE, ZERO, Expr, maximum
from costdb.work import Region


def traversed(
    operand: Operand, region: tuple[Subscript, ...], counts: tuple[Expr, ...], facts: Facts
) -> Region:
    """Return the memory that an operand's elements are loaded from, one for each computed."""
    itemsize = itemsize_of(operand.array.dtype)
    extents = local_extents(operand.placement, operand.array.extents, facts)
    dense = pitches_bytes(extents, operand.placement.order, itemsize)
    pitches = in_steps(dense, operand.placement, operand.region)
    steps = [ZERO] * len(region)
    for own, target in pairs_of(operand, region):
        part = operand.region[own]
        if target is not None and not isinstance(part, Point) and length_of(part) != ONE:
            steps[target] = pitches[own]
    return Region(itemsize, counts, tuple(steps))


def advance(
    name: str,
    found: ArrayType,
    placement: Placement,
    region: tuple[Subscript, ...],
    others: list[tuple[str, tuple[Subscript, ...]]],
    facts: Facts,
) -> Expr | None:
    """Return how far a region of a named array moves with the innermost loop around.

    One that follows another of `others` at the same pace finds what that one brought.
    """
    index = next(reversed(tuple(facts.maxima)), None)
    if index is None:
        return None
    extents = local_extents(placement, found.extents, facts)
    pitches = pitches_bytes(extents, placement.order, itemsize_of(found.dtype))
    pace = _moved(region, pitches, index)
    if pace is None or pace == ZERO:
        return None
    for other, its in others:
        if other == name and its != region and _moved(its, pitches, index) == pace:
            ahead = ZERO
            for one, own, pitch in zip(its, region, pitches, strict=True):
                ahead = ahead + (low_of(one) - low_of(own)) * pitch
            if facts.non_negative(ahead * pace):
                return ZERO
    return length_of_step(pace, facts)


def length_of_step(pace: Expr, facts: Facts) -> Expr:
    """Return how far a step goes, up or down in memory: what loops that run backwards move by."""
    if facts.non_negative(pace):
        return pace
    return -pace if facts.non_negative(-pace) else maximum(pace, -pace)


def _moved(region: tuple[Subscript, ...], pitches: tuple[Expr, ...], index: str) -> Expr | None:
    """Return how far a region moves at each step of an index, None where it changes its shape."""
    total = ZERO
    for part, pitch in zip(region, pitches, strict=True):
        slopes = {slope_of(end, index) for end in bounds_in(part)}
        if len(slopes) > 1 or None in slopes:
            return None
        total = total + (slopes.pop() or 0) * pitch
    return total
