"""Messages and collectives that bring the elements that a statement reads of other ranks.

There is one message from each owner, for each direction, and for each corner that a diagonal
offset needs. A message is counted where it is received.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import product

from advisor.analysis.halos import Gathered, Halos, OneRead, Reach, Request, Side, requests
from advisor.analysis.owners import Operand, Pairs, called, selected
from advisor.analysis.placement import (
    Along,
    Facts,
    NotPriced,
    Placement,
    busiest,
    local_counts,
    local_extents,
    low_of,
    owners,
    pitches_bytes,
)
from advisor.distribution import BlockDim, CyclicDim
from advisor.ir.dependence import largest, smallest
from advisor.ir.shapes import length_of
from advisor.ir.values import Point, Range, Strided, Subscript, floor_steps, step_of
from advisor.numpy_table import itemsize_of
from costdb.expr import (
    ONE,
    ZERO,
    Expr,
    ceil_div,
    equal,
    floor_div,
    less,
    less_equal,
    logical_and,
    logical_not,
    maximum,
    minimum,
    num,
)
from costdb.records import dataclass, replace
from costdb.work import (
    NOTHING,
    Branch,
    Collective,
    CollectiveKind,
    Leaf,
    Message,
    Process,
    Region,
    SeqLoop,
)

# How many layers come from which owner when a rank reads beyond its part of one dimension.
#
# A block that is read at constant offsets needs layers of its neighbours, and of farther ones where
# blocks are thinner than a read reaches.


@dataclass(frozen=True, slots=True)
class Layers:
    """Layers that come from one owner.

    Attributes
    ----------
    count : Expr
    when : Expr
        1 where there are any, else 0.
    owners : tuple of (str, Expr, Expr) or None
        An index and its bounds, where there is such a message for each owner in a range.
    """

    count: Expr
    when: Expr = ONE
    owners: tuple[str, Expr, Expr] | None = None

    def only_if(self, test: Expr) -> Layers:
        """Return the same where a test holds."""
        return replace(self, when=logical_and(test, self.when))


def block_layers(along: Along, side: int, depths: tuple[Expr, ...], index: str) -> list[Layers]:
    """Return what comes over one edge of a block.

    Exact for a rank that computes a whole block, where reads at several distances are no farther
    apart than it is long; an upper bound for the busiest rank elsewhere.

    Parameters
    ----------
    along : Along
        What is computed.
    side : int
        -1 for owners of lower indices, +1 for higher ones.
    depths : tuple of Expr
        Distances of the reads, ascending.
    index : str
        Name for the index of sums over owners.
    """
    block, deepest = along.piece, depths[-1]
    rest = deepest % block
    if along.length == ONE and len(depths) == 1:
        # a row at an edge: its neighbour may be another rank's
        here, there = (floor_div(at, block) for at in (along.low, along.low + side * deepest))
        found = [Layers(ONE, logical_not(equal(here, there)))]
    elif deepest == ONE:
        found = [Layers(ONE)]
    elif len(depths) > 1:
        whole = (index, ONE, floor_div(deepest, block))
        found = [Layers(rest, less(0, rest)), Layers(block, owners=whole)]
    else:
        found = [Layers(rest, less(0, rest)), Layers(block - rest, less_equal(block, deepest))]
    return [layers.only_if(along.several) for layers in found]


def periodic_layers(along: Along, amount: Expr, extent: Expr) -> list[Layers]:
    """Return what a rank fetches when indices wrap around after `extent`.

    Exact where all blocks are equally large; with a last block that is smaller, for the ranks
    that do not read across the end.
    """
    block = along.piece
    if amount == ONE:
        return [Layers(ONE, along.several)]
    amount = amount % extent
    rest, beyond = amount % block, floor_div(amount, block)
    return [
        Layers(rest, logical_and(less(0, rest), less((beyond + 1) * block, extent))),
        Layers(block - rest, less_equal(block, amount)),
    ]


def cyclic_layers(along: Along, offset: Expr) -> list[Layers]:
    """Return what a rank fetches when pieces are dealt in turn and all indices move by `offset`.

    The piece at ``i`` needs its last indices from one rank and its first from the one before
    (or the other way round). Exact where a rank's share of either is whole pieces.
    """
    width, ranks = along.piece, along.ranks
    # sizes and indices are whole numbers, so pieces of one element leave no rest
    moved, rest = (offset, ZERO) if width == ONE else (floor_div(offset, width), offset % width)
    found: list[Layers] = []
    for part, first, owner in ((width - rest, ZERO, moved), (rest, width - rest, moved + 1)):
        if part == ZERO:
            continue
        remote = logical_not(equal(owner % ranks, 0))
        count = _share(along, first, part)
        # an empty part of a piece has no share: what is counted divides by its length
        when = logical_and(less(0, part), logical_and(remote, less(0, count)))
        if when != ZERO:
            found.append(Layers(count, when))
    return found


def _share(along: Along, first: Expr, part: Expr) -> Expr:
    """Return how many indices the busiest rank has among some places of every piece."""
    width = along.piece
    if part == width:
        return busiest(along.low, along.length, width, along.ranks)

    def before(index: Expr) -> Expr:
        inside = maximum(0, minimum(index % width - first, part))
        return floor_div(index, width) * part + inside

    low = before(along.low)
    return busiest(low, before(along.high) - low, part, along.ranks)


# --- Messages that bring neighbours' elements -------------------------------------------------


def fetch(name: str | None, reach: Reach, facts: Facts, halos: Halos) -> list[Process]:
    """Return the messages for what is read of one array and not held, and hold what they bring.

    Parameters
    ----------
    name : str or None
        None for an array that only one statement reads.
    reach : Reach
    facts : Facts
    halos : Halos

    Raises
    ------
    NotPriced
        Where owners cannot be told in closed form.
    """
    made: list[Process] = []
    for request in requests(reach, facts):
        if not halos.has(name, request, facts):
            sent = _messages(request, reach, facts)
            halos.hold(name, request, sent)
            made += sent
    return made


def _messages(request: Request, reach: Reach, facts: Facts) -> list[Process]:
    """Return the messages that answer a request."""
    counts, condition = _across(request, facts)
    made: list[Process] = []
    for chosen in product(*(_layers(side, request, reach) for side in request.sides)):
        by_side = {s.dimension: layers for s, layers in zip(request.sides, chosen, strict=True)}
        layered = {dimension: layers.count for dimension, layers in by_side.items()}
        region = _region({**counts, **layered}, reach, facts)
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


def _layers(side: Side, request: Request, reach: Reach) -> list[Layers]:
    along = reach.spread[side.dimension]
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
    return block_layers(along, side.sign, side.depths, f"owner.axis{side.dimension}")


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


def _region(counts: Mapping[int, Expr], reach: Reach, facts: Facts) -> Region:
    """Return where the elements of a message lie in their owner's memory."""
    itemsize = itemsize_of(reach.array.dtype)
    extents = local_extents(reach.placement, reach.array.extents, facts)
    pitches = pitches_bytes(extents, reach.placement.order, itemsize)
    return Region(
        itemsize,
        tuple(counts[d] for d in range(len(pitches))),
        tuple(pitch * reach.steps.get(d, ONE) for d, pitch in enumerate(pitches)),
    )


# What brings the operands of an array statement to where it is computed.
#
# A read along a distributed dimension lies some offset from what is computed. Where both have a
# step, indices count in steps: that is an index space that is shorter by the step. Blocks are taken
# to be multiples of it; where they are not, a rank may have one index more.
#
# Restriction and prolongation (``coarse[i] = fine[2*i]``) read with another step than they compute.
# Counted in steps, both lie in one index space.


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
        if across or all(shift.offset == ZERO for shift in shifts.values()):
            continue
        reach = _reach(operand, shifts)
        key: list[Hashable] = [operand.name or id(operand), *sorted(reach.spread.items())]
        # each progression that is read has messages of its own
        key += [reach.progressions]
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
    offset : Expr
        How far away the read is.
    start : Expr
        First index of a progression.
    """

    along: Along
    offset: Expr
    start: Expr = ZERO


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
    """Return how a read lies that has the step of what is computed."""
    start = low_of(part) + source.origin[own]
    if not isinstance(computed, Strided):
        along = placement.along(target, computed)
        return _Shift(along, start - along.low)
    along = placement.progression(target, computed)
    return _Shift(along, floor_steps(start, computed.step) - along.low, start)


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
            longer, along = source.progression(own, part), placement.along(target, computed)
            shorter = placement.template[target]
            first, start = longer.low, low_of(part) + source.origin[own]
        case Range(), Strided():
            longer = along = placement.progression(target, computed)
            shorter, start = source.template[own], ZERO
            first = low_of(part) + source.origin[own]
        case _:
            raise NotPriced("slices with different steps along a distributed dimension")
    if not isinstance(source.dims[own], BlockDim):
        raise NotPriced("slices with different steps along a dimension that is dealt out")
    if longer.extent != shorter or source.mesh != placement.mesh:
        raise NotPriced(
            "slices with different steps of dimensions whose extents differ by another factor"
        )
    return _Shift(along, first - along.low, start)


def _reach(operand: Operand, shifts: dict[int, _Shift]) -> Reach:
    """Return what one operand reads, with the indices of progressions counted in steps."""
    ranges: dict[int, tuple[Expr, Expr]] = {}
    steps: dict[int, Expr] = {}
    progressions: list[tuple[int, int, Expr]] = []
    for dimension, part in enumerate(operand.region):
        low, step = low_of(part), step_of(part)
        if step != 1:
            start = shifts[dimension].start if dimension in shifts else low
            progressions.append((dimension, step, start - floor_steps(start, step) * step))
            steps[dimension] = num(step)
            low = floor_steps(low, step)
        if dimension not in shifts:
            ranges[dimension] = low, low + length_of(part)
    return Reach(
        operand.array,
        operand.placement,
        {dimension: shift.along for dimension, shift in shifts.items()},
        (OneRead({d: shift.offset for d, shift in shifts.items()}, ranges),),
        steps=steps,
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
            at, along = (
                placement.origin[dimension] + part.at,
                target.hull(users[0], region[users[0]]),
            )
            if along.length == ONE and along.low == at:
                # its owner alone computes with it
                return NOTHING
            ranks = owners(minimum(at, along.low), maximum(at + 1, along.high), along)
        return collective(CollectiveKind.BROADCAST, ranks)
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
