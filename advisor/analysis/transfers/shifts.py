"""What a rank fetches along one distributed dimension when it reads at constant offsets.

A rank that computes a whole block and reads `d` indices below it needs the last ``d`` layers of
what lies below: from the nearest owner, from two when a block is not a divisor of `d`, or, when
offsets follow one another, from all within reach. Layers are counted owner by owner, since what
comes from one owner is one message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from advisor.analysis.placed.along import Along, busiest
from advisor.analysis.placed.operands import local_region
from advisor.analysis.placed.placement import Placement, local_extents
from advisor.analysis.sizes.facts import Facts, NotPriced
from advisor.distribution import CyclicDim
from advisor.ir.shapes import ArrayType
from costdb.expr import (
    ONE,
    ZERO,
    Expr,
    ceil,
    ceil_div,
    equal,
    floor_div,
    less,
    less_equal,
    log2,
    logical_and,
    logical_not,
    maximum,
    minimum,
    num,
    sym,
)
from costdb.process.terms import Leaf, Process, SeqLoop
from costdb.work import Message

# Fourier transforms along a distributed axis without transposing.
#
# With the axis in blocks over ``P`` ranks, the last ``log2 P`` of the ``log2 N`` butterfly steps
# combine elements of different ranks: in each, a rank exchanges its whole part with one other. The
# other steps are local. A transposition sends each part only once, but to all ranks.


def butterflies(axis: int, found: ArrayType, placement: Placement, facts: Facts) -> Process:
    """Return the exchanges of a transform along a distributed axis.

    Exact where the number of ranks is a power of two that divides the extent; otherwise that of
    the next power of two bounds it.

    Raises
    ------
    NotPriced
        Where the axis is dealt out cyclically.
    """
    if isinstance(placement.dims[axis], CyclicDim):
        raise NotPriced("butterflies along a cyclically distributed dimension")
    part = local_region(found, placement, local_extents(placement, found.extents, facts), facts)
    exchange = Leaf(Message(part, f"butterfly exchanges, axis {axis}"))
    return SeqLoop(f"butterfly.axis{axis}", ONE, ceil(log2(placement.ranks(axis))), exchange)


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
    run, stride : Expr or None
        Where layers are not neighbours in their owner's memory: how many are, and the distance
        from one such run to the next, in layers.
    """

    count: Expr
    when: Expr = ONE
    owners: tuple[str, Expr, Expr] | None = None
    run: Expr | None = None
    stride: Expr | None = None


def is_run(depths: Sequence[Expr]) -> bool:
    """Return whether depths are 1, 2, 3 and so on."""
    return all(depth == num(place) for place, depth in enumerate(depths, start=1))


def block_layers(along: Along, side: int, depths: tuple[Expr, ...], index: str) -> list[Layers]:
    """Return what comes over one edge of a block.

    Exact for a rank that computes a whole block; an upper bound for the busiest rank where
    there is none.

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
        return [_only_if(along.several, layers) for layers in common]
    # a part of the dimension may lie within one block, away from its edge or near it
    last = along.high - 1
    crosses = less(floor_div(along.low, along.piece), floor_div(last, along.piece))
    crosses = logical_and(along.several, crosses)
    inside = logical_and(along.several, logical_not(crosses))
    found = [_only_if(crosses, layers) for layers in common]
    found += [_only_if(inside, layers) for layers in _of_one_block(along, side, depths, index)]
    return [layers for layers in found if layers.when != ZERO]


def periodic_layers(along: Along, amount: Expr, extent: Expr) -> list[Layers]:
    """Return what a rank fetches when indices wrap around after `extent`.

    Exact where all blocks are equally large; with a last block that is smaller, for the ranks
    that do not read across the end.
    """
    block = along.piece
    if amount == ONE:
        return [_only_if(along.several, Layers(ONE))]
    amount = amount % extent
    rest = amount % block
    beyond = floor_div(amount, block)
    return [
        Layers(rest, logical_and(less(0, rest), less((beyond + 1) * block, extent))),
        Layers(block - rest, less_equal(block, amount)),
    ]


def cyclic_layers(along: Along, offset: Expr) -> list[Layers]:
    """Return what a rank fetches when pieces are dealt in turn and all indices move by `offset`.

    The piece at ``i`` needs its last indices from one rank and its first from the one before
    (or the other way round). Exact where a rank's share of either is whole pieces.
    """
    assert isinstance(along.dim, CyclicDim)
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
            whole = part == width
            found.append(Layers(count, when, None, None if whole else part, width))
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


def _only_if(test: Expr, layers: Layers) -> Layers:
    return replace(layers, when=logical_and(test, layers.when))


def _is_shift(along: Along, depths: tuple[Expr, ...]) -> bool:
    """Return whether the region leaves out as many indices as the reads reach, but a constant."""
    missing = along.extent - along.length
    return any(along.is_few(missing - depth) for depth in depths)


def _of_full_block(block: Expr, depths: tuple[Expr, ...], index: str) -> list[Layers]:
    deepest = depths[-1]
    if deepest == ONE:
        return [Layers(ONE)]
    rest = deepest % block
    if is_run(depths):
        whole = (index, ONE, floor_div(deepest, block))
        return [Layers(rest, less(0, rest)), Layers(block, owners=whole)]
    if len(depths) == 1:
        return [
            Layers(rest, less(0, rest)),
            Layers(block - rest, less_equal(block, deepest)),
        ]
    owner = sym(index)
    near, far = (owner - 1) * block, owner * block
    count, before = ZERO, ZERO
    for depth in depths:
        start = maximum(depth - block, before, near)
        count = count + maximum(0, minimum(depth, far) - start)
        before = depth
    return [Layers(count, less(0, count), (index, ONE, ceil_div(deepest, block)))]


def deeper_layers(along: Along, held: Expr, depth: Expr, index: str) -> list[Layers]:
    """Return layers ``held + 1`` to `depth` over an edge of a block, owner by owner."""
    block, owner = along.piece, sym(index)
    start = maximum(held, (owner - 1) * block)
    count = minimum(depth, owner * block) - start
    owners = (index, floor_div(held, block) + 1, ceil_div(depth, block))
    return [Layers(count, along.several, owners)]


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
