"""Messages that answer requests for neighbours' elements.

There is one message from each owner, for each direction, and for each corner that a diagonal
offset needs. A message is counted where it is received.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from advisor.analysis.placed.participants import taking_part
from advisor.analysis.placed.placement import (
    Placement,
    in_steps,
    local_count,
    local_extents,
    pitches_bytes,
)
from advisor.analysis.sizes.facts import Facts, NotPriced
from advisor.analysis.transfers.requests import Reach, Request, Side
from advisor.analysis.transfers.shifts import (
    Layers,
    block_layers,
    cyclic_layers,
    deeper_layers,
    periodic_layers,
)
from advisor.distribution import CyclicDim
from advisor.dtypes import itemsize_of
from advisor.ir.rebuilt import symbols
from advisor.ir.shapes import ArrayType, length_of
from advisor.ir.signs import largest, smallest
from advisor.ir.values import Point, Strided, Subscript, ceil_steps
from costdb.expr import ONE, ZERO, Expr, ceil_div, less, logical_and, maximum, minimum
from costdb.process.terms import NOTHING, Branch, Leaf, Process, SeqLoop
from costdb.work import Collective, CollectiveKind, Message, Region

# Reads across distributed dimensions: broadcasts, gathers and transpositions.
#
# An element is computed where its target lives. When an operand is spread over ranks along a
# dimension in which the target is not, every rank needs all of what is read: one index is broadcast
# by its owner, a range is gathered from all. When the target is spread over the same ranks along
# another dimension, each rank needs only its share of every piece: a transposition.

Going = Mapping[int, int | None]
"""For each dimension of an operand, the dimension of the target that it goes with."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """Elements that a rank got by a collective, and holds until their array is written.

    Attributes
    ----------
    dimension : int
        The distributed dimension that the collective ran along.
    region : tuple of Subscript
    going : tuple of (int, int or None)
    """

    dimension: int
    region: tuple[Subscript, ...]
    going: tuple[tuple[int, int | None], ...]

    @property
    def symbols(self) -> frozenset[str]:
        """Every size symbol that the region depends on."""
        return symbols(self.region)


@dataclass(frozen=True, slots=True)
class Source:
    """A region of an array that is read.

    Attributes
    ----------
    array : ArrayType
        The array behind the region.
    placement : Placement
        Of that array.
    region : tuple of Subscript
    going : mapping of int to int or None
    """

    array: ArrayType
    placement: Placement
    region: tuple[Subscript, ...]
    going: Going


def exchange(
    source: Source,
    dimension: int,
    target: Placement,
    region: tuple[Subscript, ...],
    facts: Facts,
) -> Process:
    """Return the collective that brings what is read along one distributed dimension.

    Parameters
    ----------
    source : Source
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
    placement = source.placement
    ranks = placement.ranks(dimension)
    counts = [local_count(placement, own, part, facts) for own, part in enumerate(source.region)]
    axes = placement.dims[dimension].axes
    goes_to = source.going.get(dimension)
    users = [
        t for t, dim in enumerate(target.dims) if set(dim.axes) & set(axes) and target.is_spread(t)
    ]
    part = source.region[dimension]
    if isinstance(part, Point):
        if len(users) == 1 and placement.along_as(dimension, target, users[0]):
            at = placement.origin[dimension] + part.at
            ranks = taking_part(at, target.hull(users[0], region[users[0]]), facts)
        if ranks == ONE:
            return NOTHING
        return _collective(CollectiveKind.BROADCAST, ranks, source, counts, dimension, facts)
    if goes_to is not None and goes_to in users:
        if isinstance(part, Strided) or isinstance(region[goes_to], Strided):
            raise NotPriced("a slice with a step that is dealt out otherwise than its target")
        if placement.template[dimension] != target.template[goes_to]:
            raise NotPriced("an array is dealt out otherwise than what is computed from it")
        # dealt out otherwise along the same dimension: all exchange with all
        counts[dimension] = ceil_div(counts[dimension], ranks)
        return _collective(CollectiveKind.ALLTOALL, ranks, source, counts, dimension, facts)
    if goes_to is not None and target.is_spread(goes_to):
        raise NotPriced("an array is spread over other ranks than what is computed from it")
    if not users:
        return _collective(CollectiveKind.ALLGATHER, ranks, source, counts, dimension, facts)
    partners = [own for own, t in source.going.items() if t in users]
    if not partners:
        # what the target's owners differ in does not tell their shares of this operand apart
        return _collective(CollectiveKind.ALLGATHER, ranks, source, counts, dimension, facts)
    if len(users) != 1 or target.dims[users[0]].axes != axes:
        raise NotPriced("an array is spread over other ranks than what is computed from it")
    other = partners[0]
    if placement.is_spread(other):
        raise NotPriced("a transposition of two distributed dimensions")
    if isinstance(source.region[other], Strided) or isinstance(region[users[0]], Strided):
        raise NotPriced("a transposition of a slice with a step")
    counts[other] = ceil_div(length_of(source.region[other]), ranks)
    return _collective(CollectiveKind.ALLTOALL, ranks, source, counts, dimension, facts)


_LABELS = {
    CollectiveKind.BROADCAST: "broadcast",
    CollectiveKind.ALLGATHER: "all-gather",
    CollectiveKind.ALLTOALL: "transposition (all-to-all)",
}


def _collective(
    kind: CollectiveKind,
    ranks: Expr,
    source: Source,
    counts: Sequence[Expr],
    dimension: int,
    facts: Facts,
) -> Process:
    itemsize = itemsize_of(source.array.dtype)
    extents = local_extents(source.placement, source.array.extents, facts)
    dense = pitches_bytes(extents, source.placement.order, itemsize)
    pitches = in_steps(dense, source.placement, source.region)
    region = Region(itemsize, tuple(counts) or (ONE,), pitches or (ONE * itemsize,))
    return Leaf(Collective(kind, ranks, region, f"{_LABELS[kind]}, axis {dimension}"))


def messages(
    request: Request,
    reach: Reach,
    facts: Facts,
    weaker: frozenset[tuple[int, int]] = frozenset(),
    held: tuple[Expr, Expr] | None = None,
    needed: Expr = ONE,
) -> list[Process]:
    """Return the messages that answer a request.

    Parameters
    ----------
    request : Request
    reach : Reach
        Where it comes from.
    facts : Facts
    weaker : frozenset of (int, int)
        Sides that count from three ranks on.
    held : (Expr, Expr), optional
        Depths between which layers are missing, if the nearer ones are held.
    needed : Expr
        1 where the elements are not held yet, else 0.
    """
    options = [_layers(side, request, reach, held) for side in request.sides]
    counts, condition = _across(request, facts)
    condition = logical_and(needed, condition)
    regions = dict(request.regions)
    for place in weaker & set(request.direction):
        condition = logical_and(condition, less(2, regions[place[0]].ranks))
    made: list[Process] = []
    for chosen in product(*options):
        region = _region(request, counts, chosen, reach, facts)
        sent: Process = Leaf(Message(region, request.label))
        when = condition
        for layers in chosen:
            if layers.owners is None:
                when = logical_and(when, layers.when)
            else:
                sent = SeqLoop(*layers.owners, _only_if(layers.when, sent))
        if when != ZERO:
            made.append(_only_if(when, sent))
    return made


def _only_if(test: Expr, sent: Process) -> Process:
    return sent if test == ONE else Branch(test, sent, NOTHING)


def _layers(
    side: Side, request: Request, reach: Reach, held: tuple[Expr, Expr] | None
) -> list[Layers]:
    along = reach.spread[side.dimension]
    index = f"owner.axis{side.dimension}"
    if isinstance(along.dim, CyclicDim):
        shifted = [offset for _, offsets in request.across for offset in offsets if offset != ZERO]
        if len(request.sides) > 1 or shifted:
            raise NotPriced("a diagonal shift along a cyclically distributed dimension")
        if request.wraps_after is not None:
            raise NotPriced("a periodic shift along a cyclically distributed dimension")
        found = (cyclic_layers(along, depth * side.sign) for depth in side.depths)
        return [layers for each in found for layers in each]
    if request.wraps_after is not None:
        return periodic_layers(along, side.depths[0], request.wraps_after)
    if held is not None:
        return deeper_layers(along, *held, index)
    return block_layers(along, side.sign, side.depths, index)


def _across(request: Request, facts: Facts) -> tuple[dict[int, Expr], Expr]:
    """Return how much is read along the dimensions without a side, and when there is any."""
    counts = {dimension: high - low for dimension, low, high in request.ranges}
    regions = dict(request.regions)
    condition = ONE
    for dimension, offsets in request.across:
        along = regions[dimension]
        own = along.count(facts)
        if offsets != (ZERO,):
            if isinstance(along.dim, CyclicDim):
                raise NotPriced("a diagonal shift along a cyclically distributed dimension")
            own = _own_part(own, along.piece, offsets, facts)
            if ZERO not in offsets:
                condition = logical_and(condition, less(0, own))
        counts[dimension] = own
    return counts, condition


def _own_part(count: Expr, piece: Expr, offsets: tuple[Expr, ...], facts: Facts) -> Expr:
    """Return how much of a block is read within it, at some offsets from what is computed."""
    whole = count == piece
    if ZERO in offsets and whole:
        return piece
    parts: list[Expr] = []
    for sign in (1, -1):
        depths = [offset * sign for offset in offsets if facts.non_negative(offset * sign)]
        if not depths or depths == [ZERO]:
            continue
        nearest = smallest(depths, facts.minima)
        left = maximum(0, piece - nearest)
        if not whole:
            left = minimum(left, count + largest(depths, facts.minima) - nearest)
        parts.append(left)
    return parts[0] if len(parts) == 1 else minimum(piece, parts[0] + parts[1])


def _region(
    request: Request,
    across: Mapping[int, Expr],
    chosen: tuple[Layers, ...],
    reach: Reach,
    facts: Facts,
) -> Region:
    itemsize = itemsize_of(reach.array.dtype)
    extents = local_extents(reach.placement, reach.array.extents, facts)
    pitches = pitches_bytes(extents, reach.placement.order, itemsize)
    if reach.steps:
        pitches = tuple(pitch * reach.steps.get(d, ONE) for d, pitch in enumerate(pitches))
    by_side = {side.dimension: layers for side, layers in zip(request.sides, chosen, strict=True)}
    counts: list[Expr] = []
    steps: list[Expr] = []
    for dimension, pitch in enumerate(pitches):
        layers = by_side.get(dimension)
        thinned = reach.thinned.get(dimension, 1)
        if layers is None:
            counts.append(ceil_steps(across[dimension], thinned))
            steps.append(pitch)
        elif layers.stride is None or layers.run is None:
            counts.append(ceil_steps(layers.count, thinned))
            steps.append(pitch)
        else:
            counts.append(layers.count if layers.run == ONE else ceil_div(layers.count, layers.run))
            steps.append(pitch * layers.stride)
            if layers.run != ONE:
                counts.append(layers.run)
                steps.append(pitch)
    return Region(itemsize, tuple(counts), tuple(steps))
