"""Operands of array statements: which dimensions go together, and the memory that they lie in."""

from __future__ import annotations

from advisor.analysis.facts import Facts
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
from costdb.records import dataclass, replace
from costdb.work import Region


@dataclass(frozen=True, slots=True)
class Operand:
    """A region of an array that a statement reads.

    Attributes
    ----------
    name : str or None
        None for an array that has no name.
    array : ArrayType
        The array behind the region.
    placement : Placement
        Of that array.
    region : tuple of Subscript
    view : tuple of (int or None), optional
        Dimensions of the array in the order in which the operand shows them, None for new ones;
        by default those that `region` keeps, as they are.
    part : Region, optional
        Where one rank's elements lie, if `array` is but the type of a part of a larger one.
    """

    name: str | None
    array: ArrayType
    placement: Placement
    region: tuple[Subscript, ...]
    view: tuple[int | None, ...] | None = None
    part: Region | None = None


Pairs = list[tuple[int, int | None]]


def pairs_of(operand: Operand, region: tuple[Subscript, ...]) -> Pairs:
    """Return, for each dimension of an operand, the dimension of the target it goes with."""
    if operand.view is None:
        return paired(operand.region, region)
    targets = [dimension for dimension, one in enumerate(region) if not isinstance(one, Point)]
    shown = zip(reversed(operand.view), reversed(targets), strict=False)
    going = {own: target for own, target in shown if own is not None}
    return [(own, going.get(own)) for own in range(len(operand.region))]


def paired(
    part: tuple[Subscript, ...], region: tuple[Subscript, ...]
) -> list[tuple[int, int | None]]:
    """Return, for each dimension of what is read, the dimension of the target it goes with.

    Where both single out indices of the same dimensions, those go together; otherwise the
    dimensions that are left go together from the last one backwards, as NumPy broadcasts.
    """
    points = [isinstance(one, Point) for one in part]
    if points == [isinstance(other, Point) for other in region]:
        return [(dimension, dimension) for dimension in range(len(part))]
    kept = [dimension for dimension, one in enumerate(part) if not isinstance(one, Point)]
    targets = [dimension for dimension, one in enumerate(region) if not isinstance(one, Point)]
    going = dict(zip(reversed(kept), reversed(targets), strict=False))
    return [(dimension, going.get(dimension)) for dimension in range(len(part))]


def stretched(operand: Operand, region: tuple[Subscript, ...]) -> Operand:
    """Return an operand whose ranges of one index that meet longer ones are single indices.

    ``x[k:k + 1, :]`` beside whole columns is repeated along them, as ``x[k, :]`` is.
    """
    alone = {
        own
        for own, target in pairs_of(operand, region)
        if target is not None
        and not isinstance(operand.region[own], Point)
        and length_of(operand.region[own]) == ONE
        and length_of(region[target]) != ONE
    }
    if not alone:
        return operand
    kept = [own for own, one in enumerate(operand.region) if not isinstance(one, Point)]
    shown = operand.view if operand.view is not None else tuple(kept)
    return replace(
        operand,
        region=tuple(
            Point(low_of(one)) if own in alone else one for own, one in enumerate(operand.region)
        ),
        view=tuple(None if own in alone else own for own in shown),
    )


def called(operand: Operand) -> str:
    """Return how a message names an operand."""
    return "an intermediate array" if operand.name is None else f"`{operand.name}`"


def local_region(
    found: ArrayType, placement: Placement, counts: tuple[Expr, ...], facts: Facts
) -> Region:
    """Return so many neighbours along each dimension of one rank's part of an array."""
    itemsize = itemsize_of(found.dtype)
    extents = local_extents(placement, found.extents, facts)
    return Region(itemsize, counts, pitches_bytes(extents, placement.order, itemsize))


def held(operand: Operand, facts: Facts) -> Region:
    """Return where all that one rank has of an operand's array lies."""
    if operand.part is not None:
        return operand.part
    counts = local_extents(operand.placement, operand.array.extents, facts)
    return local_region(operand.array, operand.placement, counts, facts)


def selected(
    found: ArrayType,
    placement: Placement,
    region: tuple[Subscript, ...],
    counts: tuple[Expr, ...],
    facts: Facts,
) -> Region:
    """Return what one rank has of a region of an array, `counts` of its indices."""
    memory = local_region(found, placement, counts, facts)
    return Region(memory.itemsize_bytes, counts, in_steps(memory.pitches_bytes, placement, region))


def without_points(memory: Region, region: tuple[Subscript, ...]) -> Region:
    """Return memory without the dimensions along which a region is a single index."""
    kept = [d for d, part in enumerate(region) if not isinstance(part, Point)]
    return Region(
        memory.itemsize_bytes,
        tuple(memory.counts[d] for d in kept),
        tuple(memory.pitches_bytes[d] for d in kept),
    )


# How far what is walked moves with the loop around it.


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
