"""How many layers come from which owner when a rank reads beyond its part of one dimension.

A block that is read at constant offsets needs layers of its neighbours, and of farther ones where
blocks are thinner than a read reaches. A part of the dimension may lie within one block, away from
its edges.
"""

from __future__ import annotations

from advisor.analysis.placed.along import Along, busiest
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
