"""Messages that bring neighbours' elements.

There is one message from each owner, for each direction, and for each corner that a diagonal
offset needs. A message is counted where it is received.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from advisor.analysis.facts import Facts, NotPriced
from advisor.analysis.placed.along import Along, busiest
from advisor.analysis.placed.placement import local_extents, pitches_bytes
from advisor.analysis.transfers.halos import Halos, Reach, Request, Side, requests, weaker_sides
from advisor.distribution import CyclicDim
from advisor.dtypes import itemsize_of
from advisor.ir.signs import largest, smallest
from advisor.ir.values import ceil_steps
from costdb.expr import (
    ONE,
    ZERO,
    Expr,
    equal,
    floor_div,
    less,
    less_equal,
    logical_and,
    logical_not,
    maximum,
    minimum,
)
from costdb.records import dataclass, replace
from costdb.work import NOTHING, Branch, Leaf, Message, Process, Region, SeqLoop

# How many layers come from which owner when a rank reads beyond its part of one dimension.
#
# A block that is read at constant offsets needs layers of its neighbours, and of farther ones where
# blocks are thinner than a read reaches. A part of the dimension may lie within one block, away
# from its edges.


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
    common = _of_full_block(along.piece, depths, index)
    alone = along.length == ONE and len(depths) == 1
    if not alone and (along.nearly_whole or _is_shift(along, depths)):
        return [layers.only_if(along.several) for layers in common]
    # a part of the dimension may lie within one block, away from its edge or near it
    last = along.high - 1
    crosses = less(floor_div(along.low, along.piece), floor_div(last, along.piece))
    crosses = logical_and(along.several, crosses)
    inside = logical_and(along.several, logical_not(crosses))
    found = [layers.only_if(crosses) for layers in common]
    found += [layers.only_if(inside) for layers in _of_one_block(along, side, depths, index)]
    return [layers for layers in found if layers.when != ZERO]


def _is_shift(along: Along, depths: tuple[Expr, ...]) -> bool:
    """Return whether the region leaves out as many indices as the reads reach, but a constant."""
    missing = along.extent - along.length
    return any(along.is_few(missing - depth) for depth in depths)


def _of_full_block(block: Expr, depths: tuple[Expr, ...], index: str) -> list[Layers]:
    deepest = depths[-1]
    if deepest == ONE:
        return [Layers(ONE)]
    rest = deepest % block
    if len(depths) > 1:
        whole = (index, ONE, floor_div(deepest, block))
        return [Layers(rest, less(0, rest)), Layers(block, owners=whole)]
    return [Layers(rest, less(0, rest)), Layers(block - rest, less_equal(block, deepest))]


def _of_one_block(along: Along, side: int, depths: tuple[Expr, ...], index: str) -> list[Layers]:
    """Return what a region within one block needs from beyond its edge."""
    block, last, depth = along.piece, along.high - 1, depths[-1]
    room = along.low % block if side < 0 else block - 1 - last % block
    if along.length == ONE and depth == ONE:
        # one index needs the one beside it, which is elsewhere if this is at the edge
        return [Layers(ONE, equal(room, 0))]
    fetched = minimum(along.length + depth - depths[0], depth - room)
    if fetched == ZERO:
        return []
    start = along.low - depth if side < 0 else last + depth + 1 - fetched
    first = minimum(fetched, block - start % block)
    found = [Layers(first, less(0, fetched))]
    rest = fetched - first
    if len(depths) == 1:
        # no more than a block, so that there are two owners at most
        return found if first == ONE else [*found, Layers(rest, less(first, fetched))]
    found.append(Layers(block, less_equal(block, rest), (index, ONE, floor_div(rest, block))))
    found.append(Layers(rest % block, less(0, rest % block)))
    return found


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
    wanted = requests(reach, facts)
    weaker = weaker_sides(wanted)
    for request in wanted:
        if not halos.has(name, request, facts):
            sent = _messages(request, reach, facts, weaker)
            halos.hold(name, request, sent)
            made += sent
    return made


def _messages(
    request: Request, reach: Reach, facts: Facts, weaker: frozenset[tuple[int, int]]
) -> list[Process]:
    """Return the messages that answer a request; `weaker` sides count from three ranks on."""
    counts, condition = _across(request, facts)
    for dimension, _ in weaker & set(request.direction):
        condition = logical_and(condition, less(2, reach.spread[dimension].ranks))
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
        tuple(ceil_steps(counts[d], reach.thinned.get(d, 1)) for d in range(len(pitches))),
        tuple(pitch * reach.steps.get(d, ONE) for d, pitch in enumerate(pitches)),
    )
