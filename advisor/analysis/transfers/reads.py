"""What brings the operands of an array statement to where it is computed.

A read along a distributed dimension lies some offset from what is computed. Where both have a step
and ranks own multiples of it at a time, indices count in steps: that is an index space that is
shorter by the step. Elsewhere remainders change from block to block, and what is needed of an owner
is what the range around it would need, divided by the step.

Restriction and prolongation (``coarse[i] = fine[2*i]``) read with another step than they compute.
Counted in steps, both lie in one index space; where blocks of the longer array are no multiples of
the step, those of the two drift apart, by less than one index for each rank.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import product

from advisor.analysis.facts import Facts, NotPriced
from advisor.analysis.placed.along import Along, taking_part
from advisor.analysis.placed.operands import Operand, Pairs, called, selected
from advisor.analysis.placed.placement import (
    OTHER_PIECES,
    Placement,
    local_counts,
    local_step,
    low_of,
)
from advisor.analysis.transfers.halos import Gathered, Halos, OneRead, Reach
from advisor.analysis.transfers.messages import fetch
from advisor.distribution import BlockDim, CyclicDim
from advisor.ir.shapes import length_of
from advisor.ir.values import Point, Range, Strided, Subscript, ceil_steps, floor_steps, step_of
from costdb.expr import ONE, ZERO, Expr, ceil_div
from costdb.records import dataclass, replace
from costdb.work import NOTHING, Collective, CollectiveKind, Leaf, Process


def fetched(
    operands: list[tuple[Operand, Pairs]],
    region: tuple[Subscript, ...],
    placement: Placement,
    facts: Facts,
    halos: Halos,
) -> list[Process]:
    """Return what brings operands to where a region is computed."""
    made: list[Process] = []
    reaches: dict[Hashable, tuple[str | None, Reach]] = {}
    for operand, pairs in operands:
        shifts, across = _shifts(operand, pairs, region, placement)
        for dimension in across:
            what = Gathered(dimension, operand.region, tuple(sorted(pairs)))
            work = exchange(operand, dict(pairs), dimension, placement, region, facts)
            if not halos.has(operand.name, what, facts):
                halos.hold(operand.name, what, [work])
                made.append(work)
        if across or all(shift.offsets == (ZERO,) for shift in shifts.values()):
            continue
        reach = _reach(operand, shifts)
        key: list[Hashable] = [operand.name or id(operand), *sorted(reach.spread.items())]
        # where remainders change from block to block, each read counts by itself
        key += [reach.progressions]
        key += [shift.offsets for shift in shifts.values() if reach.thinned]
        known = reaches[tuple(key)][1].reads if tuple(key) in reaches else ()
        reads = (*known, *(read for read in reach.reads if read not in known))
        reaches[tuple(key)] = operand.name, replace(reach, reads=reads)
    for name, reach in reaches.values():
        made += fetch(name, reach, facts, halos)
    return made


@dataclass(frozen=True, slots=True)
class _Shift:
    """How a read lies along one distributed dimension, relative to what is computed from it.

    Attributes
    ----------
    along : Along
        What is computed.
    offsets : tuple of Expr
        How far away the read is; of several, it may be any.
    start : Expr
        First index of a progression.
    thinned : int
        The step, where `along` is the range around a progression.
    """

    along: Along
    offsets: tuple[Expr, ...]
    start: Expr = ZERO
    thinned: int = 1


def _shifts(
    operand: Operand, pairs: Pairs, region: tuple[Subscript, ...], placement: Placement
) -> tuple[dict[int, _Shift], list[int]]:
    """Return how an operand lies relative to what is computed, and dimensions that lie across it.

    Raises
    ------
    NotPriced
        Where the distributions of the two relate in a way that is not followed.
    """
    source = operand.placement
    shifts: dict[int, _Shift] = {}
    across: list[int] = []
    for own, target in pairs:
        if not source.is_spread(own):
            continue
        if target is None or source.dims[own] != placement.dims[target]:
            across.append(own)
            continue
        part, computed = operand.region[own], region[target]
        alike = step_of(part) == step_of(computed)
        if alike and not source.along_as(own, placement, target):
            raise NotPriced(
                f"{called(operand)} is distributed otherwise than the array computed from it"
            )
        if length_of(part) != length_of(computed):
            raise NotPriced(f"{called(operand)} is read across its distributed dimensions")
        of = _shift if alike else _rescaled
        shifts[own] = of(source, own, part, placement, target, computed)
    return shifts, across


def _shift(
    source: Placement,
    own: int,
    part: Subscript,
    placement: Placement,
    target: int,
    computed: Subscript,
) -> _Shift:
    """Return how a read lies that has the step of what is computed.

    Blocks whose length is not known are taken to be multiples of the step.
    """
    start = low_of(part) + source.origin[own]
    if not isinstance(computed, Strided):
        along = placement.along(target, computed)
        return _Shift(along, (start - along.low,))
    progression = placement.progression(target, computed)
    offset = progression.offset_of(start)
    if offset is not None and progression.fits != ZERO:
        return _Shift(progression.compressed, (offset,), start)
    return _Shift(progression.hull, (start - progression.low,), start, progression.step)


def _rescaled(
    source: Placement,
    own: int,
    part: Subscript,
    placement: Placement,
    target: int,
    computed: Subscript,
) -> _Shift:
    """Return how a read lies that has another step than what is computed."""
    match part, computed:
        case Strided(), Range():
            longer = source.progression(own, part)
            shorter, along = placement.template[target], placement.along(target, computed)
            first, drift = floor_steps(longer.low, longer.step), along.ranks
            start = longer.low
        case Range(), Strided():
            longer = placement.progression(target, computed)
            shorter, along = source.template[own], longer.compressed
            first, drift = low_of(part) + source.origin[own], -along.ranks
            start = ZERO
        case _:
            raise NotPriced("slices with different steps along a distributed dimension")
    if not isinstance(source.dims[own], BlockDim):
        raise NotPriced("slices with different steps along a dimension that is dealt out")
    if ceil_steps(longer.extent, longer.step) != shorter or source.mesh != placement.mesh:
        raise NotPriced(
            "slices with different steps of dimensions whose extents differ by another factor"
        )
    offset = first - along.low
    apart = longer.fits == ZERO
    return _Shift(along, (offset, offset + drift) if apart else (offset,), start)


def _reach(operand: Operand, shifts: dict[int, _Shift]) -> Reach:
    """Return what one operand reads, with the indices of progressions counted in steps.

    Raises
    ------
    NotPriced
        Where a piece that is dealt out is no multiple of the step.
    """
    if any(s.thinned != 1 and isinstance(s.along.dim, CyclicDim) for s in shifts.values()):
        raise NotPriced(OTHER_PIECES)
    ranges: dict[int, tuple[Expr, Expr]] = {}
    steps: dict[int, Expr] = {}
    progressions: list[tuple[int, int, Expr]] = []
    for dimension, part in enumerate(operand.region):
        low, step = low_of(part), step_of(part)
        if step != 1:
            start = shifts[dimension].start if dimension in shifts else low
            progressions.append((dimension, step, start - floor_steps(start, step) * step))
            steps[dimension] = local_step(operand.placement, dimension, part)
            low = floor_steps(low, step)
        if dimension not in shifts:
            ranges[dimension] = low, low + length_of(part)
    offsets = product(*(shift.offsets for shift in shifts.values()))
    return Reach(
        operand.array,
        operand.placement,
        {dimension: shift.along for dimension, shift in shifts.items()},
        tuple(OneRead(dict(zip(shifts, each, strict=True)), ranges) for each in offsets),
        steps=steps,
        thinned={d: shift.thinned for d, shift in shifts.items() if shift.thinned != 1},
        progressions=tuple(progressions),
    )


# Reads across distributed dimensions: broadcasts, gathers and transpositions.
#
# An element is computed where its target lives. When an operand is spread over ranks along a
# dimension in which the target is not, every rank needs all of what is read: one index is
# broadcast by its owner, a range is gathered from all. When the target is spread over the same
# ranks along another dimension, each rank needs only its share of every piece: a transposition.

_LABELS = {
    CollectiveKind.BROADCAST: "broadcast",
    CollectiveKind.ALLGATHER: "all-gather",
    CollectiveKind.ALLTOALL: "transposition (all-to-all)",
}


def exchange(
    source: Operand,
    going: Mapping[int, int | None],
    dimension: int,
    target: Placement,
    region: tuple[Subscript, ...],
    facts: Facts,
) -> Process:
    """Return the collective that brings what is read along one distributed dimension.

    Parameters
    ----------
    source : Operand
    going : mapping of int to int or None
        For each dimension of the source, the dimension of the target that it goes with.
    dimension : int
        Of the source, spread over several ranks.
    target : Placement
        Of what is computed.
    region : tuple of Subscript
        What is computed.
    facts : Facts

    Raises
    ------
    NotPriced
        Where the two distributions relate in a way that no single collective serves.
    """
    placement, part = source.placement, source.region[dimension]
    ranks = placement.ranks(dimension)
    counts = list(local_counts(placement, source.region, facts))
    axes = placement.dims[dimension].axes
    goes_to = going.get(dimension)
    users = [
        t for t, dim in enumerate(target.dims) if set(dim.axes) & set(axes) and target.is_spread(t)
    ]

    def collective(kind: CollectiveKind, ranks: Expr) -> Process:
        memory = selected(source.array, placement, source.region, tuple(counts), facts)
        return Leaf(Collective(kind, ranks, memory, f"{_LABELS[kind]}, axis {dimension}"))

    if isinstance(part, Point):
        if len(users) == 1 and placement.along_as(dimension, target, users[0]):
            at = placement.origin[dimension] + part.at
            ranks = taking_part(at, target.hull(users[0], region[users[0]]), facts)
        return NOTHING if ranks == ONE else collective(CollectiveKind.BROADCAST, ranks)
    if goes_to is not None and goes_to in users:
        if isinstance(part, Strided) or isinstance(region[goes_to], Strided):
            raise NotPriced("a slice with a step that is dealt out otherwise than its target")
        if placement.template[dimension] != target.template[goes_to]:
            raise NotPriced("an array is dealt out otherwise than what is computed from it")
        # dealt out otherwise along the same dimension: all exchange with all
        counts[dimension] = ceil_div(counts[dimension], ranks)
        return collective(CollectiveKind.ALLTOALL, ranks)
    if goes_to is not None and target.is_spread(goes_to):
        raise NotPriced("an array is spread over other ranks than what is computed from it")
    partners = [own for own, t in going.items() if t in users]
    if not partners:
        # what the target's owners differ in does not tell their shares of this operand apart
        return collective(CollectiveKind.ALLGATHER, ranks)
    if len(users) != 1 or target.dims[users[0]].axes != axes:
        raise NotPriced("an array is spread over other ranks than what is computed from it")
    other = partners[0]
    if placement.is_spread(other):
        raise NotPriced("a transposition of two distributed dimensions")
    if isinstance(source.region[other], Strided) or isinstance(region[users[0]], Strided):
        raise NotPriced("a transposition of a slice with a step")
    counts[other] = ceil_div(length_of(source.region[other]), ranks)
    return collective(CollectiveKind.ALLTOALL, ranks)
