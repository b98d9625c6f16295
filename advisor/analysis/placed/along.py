"""How a region lies along one distributed dimension, and how much of it the busiest rank owns."""

from __future__ import annotations

from functools import lru_cache

from advisor.analysis.facts import Bounds, Facts, NotPriced
from advisor.distribution import AxisMap, CyclicDim
from costdb.expr import (
    ONE,
    ZERO,
    Expr,
    ceil_div,
    conditional,
    floor_div,
    free_symbols,
    less,
    maximum,
    minimum,
    num,
)
from costdb.expr.nodes import Num
from costdb.records import dataclass

# How many indices of a range the rank has that has most of them.
#
# A range with one end that a loop moves and one that it does not, as eliminations work on, is
# counted from the fixed end. No remainder of the moving end is then needed, and sums over the loop
# have closed forms.


def in_blocks(low: Expr, high: Expr, piece: Expr, bounds: Bounds) -> Expr:
    """Return the most indices of ``low <= i < high`` that lie in one of consecutive blocks.

    Parameters
    ----------
    low, high : Expr
    piece : Expr
        Length of a block, at least 1; the first begins at 0.
    bounds : Bounds
    """
    length = _length(low, high, bounds)
    if _moves(low, bounds) and not _moves(high, bounds):
        # the blocks that end below `high`, and what is left of `high` above the last of them
        last = floor_div(high, piece) * piece
        return minimum(piece, maximum(last - low, minimum(high - last, length)))
    if _moves(high, bounds) and low != ZERO and not _moves(low, bounds):
        first = ceil_div(low, piece) * piece
        return minimum(piece, maximum(high - first, minimum(first - low, length)))
    return largest_part(low, length, piece)


def dealt(low: Expr, high: Expr, piece: Expr, ranks: Expr, bounds: Bounds) -> Expr:
    """Return the most indices of ``low <= i < high`` that one of `ranks` owns in turn.

    Parameters
    ----------
    low, high : Expr
    piece : Expr
        Indices that are dealt at a time, at least 1.
    ranks : Expr
    bounds : Bounds
    """
    length = _length(low, high, bounds)
    if piece == ONE:
        return ceil_div(length, ranks)
    if _moves(low, bounds) and not _moves(high, bounds):
        return _from_end(length, (high - 1) % piece + 1, piece, ranks, bounds)
    if _moves(high, bounds) and not _moves(low, bounds):
        return _from_end(length, piece - low % piece, piece, ranks, bounds)
    return busiest(low, length, piece, ranks)


def largest_part(low: Expr, length: Expr, piece: Expr) -> Expr:
    """Return the most of `length` indices from `low` on that lie in one piece."""
    if low == ZERO:
        return minimum(length, piece)
    head = minimum(length, piece - low % piece)
    return maximum(head, minimum(piece, length - head))


def busiest(low: Expr, length: Expr, piece: Expr, ranks: Expr) -> Expr:
    """Return the most of `length` indices from `low` on that one of `ranks` owns in turn.

    Every rank owns one piece of each whole round; of what is left, a rank owns a piece, or
    what there is of one.
    """
    if piece == ONE:
        return ceil_div(length, ranks)
    around = piece * ranks
    return floor_div(length, around) * piece + largest_part(low, length % around, piece)


def _from_end(length: Expr, begun: Expr, piece: Expr, ranks: Expr, bounds: Bounds) -> Expr:
    """Count pieces dealt from the end of a range whose first piece has `begun` indices.

    With that piece taken for whole, its owner has a piece of each round and lacks what was
    not there; the owner of the next piece lacks nothing, but comes one piece later.
    """
    lacking = piece - begun
    around = piece * ranks
    place = length + lacking
    rounds, rest = floor_div(place, around) * piece, place % around
    first = minimum(rest, piece) - lacking
    second = minimum(maximum(rest - piece, 0), piece)
    most = rounds + maximum(first, second)
    # a single rank has no other after it
    return most if bounds.non_negative(ranks - 2) else minimum(length, most)


def _length(low: Expr, high: Expr, bounds: Bounds) -> Expr:
    length = high - low
    return length if bounds.non_negative(length) else maximum(0, length)


def _moves(expr: Expr, bounds: Bounds) -> bool:
    return not bounds.maxima.keys().isdisjoint(free_symbols(expr))


INTERIOR_RANKS = 3
"""Ranks along a dimension from which on some rank has neighbours on both sides."""


@dataclass(frozen=True, slots=True)
class Along:
    """Indices ``low <= i < high`` of a dimension that is distributed.

    Attributes
    ----------
    low, high : Expr
        In the index space that is distributed. What lies outside it (a rim of wrapped copies)
        belongs to the owner of the nearest index inside.
    extent : Expr
        Of that index space.
    ranks : Expr
        Number of ranks it is spread over.
    dim : AxisMap
        Block or cyclic.
    """

    low: Expr
    high: Expr
    extent: Expr
    ranks: Expr
    dim: AxisMap

    @property
    def piece(self) -> Expr:
        """Consecutive indices that a rank owns at a time."""
        if isinstance(self.dim, CyclicDim):
            return num(self.dim.k)
        return _block(self.extent, self.ranks)

    @property
    def length(self) -> Expr:
        """Number of indices."""
        return self.high - self.low

    @property
    def is_whole(self) -> bool:
        """Whether these are all indices of the distributed space."""
        return self.low == ZERO and self.high == self.extent

    @property
    def nearly_whole(self) -> bool:
        """Whether only a constant number of indices is missing."""
        return self.is_few(self.extent - self.length)

    @property
    def has_full_block(self) -> bool:
        """Whether some rank surely has a whole block of the indices, as far as they are few."""
        has_interior = isinstance(self.ranks, Num) and self.ranks.value >= INTERIOR_RANKS
        return self.is_whole or (self.nearly_whole and has_interior)

    def is_few(self, indices: Expr) -> bool:
        """Return whether some indices are a constant number, and fewer than a rank owns at once.

        Where all sizes have values, every number is a constant; the values then decide.
        """
        if not isinstance(indices, Num):
            return False
        piece = self.piece
        return not isinstance(piece, Num) or indices.value < piece.value

    @property
    def several(self) -> Expr:
        """1 where more than one rank owns indices of the dimension, else 0."""
        return ONE if isinstance(self.ranks, Num) and self.ranks != ONE else less(ONE, self.ranks)

    def count(self, facts: Facts) -> Expr:
        """Return how many of the indices the rank that has most of them owns.

        Exact, except for regions that leave out a constant number of indices of a dimension
        over three ranks or more: they count as having some rank away from both edges, which
        is an upper bound where the blocks are as small as that constant.
        """
        return _count(self, facts.bounds)


@lru_cache(maxsize=1024)
def _block(extent: Expr, ranks: Expr) -> Expr:
    return ceil_div(extent, ranks)


@lru_cache(maxsize=4096)
def _count(along: Along, bounds: Bounds) -> Expr:
    before, after = -along.low, along.high - along.extent
    if _surely_positive(before, bounds) or _surely_positive(after, bounds):
        return _with_rim(along, before, after, bounds)
    if along.length == ONE:
        return ONE
    piece, ranks = along.piece, along.ranks
    if isinstance(along.dim, CyclicDim):
        return dealt(along.low, along.high, piece, ranks, bounds)
    if along.has_full_block:
        return piece
    return in_blocks(along.low, along.high, piece, bounds)


def _with_rim(along: Along, before: Expr, after: Expr, bounds: Bounds) -> Expr:
    """Count where the ranks at the edges hold a rim besides their own part."""
    if not (bounds.non_negative(before) and bounds.non_negative(after)):
        raise NotPriced("an array that reaches beyond one edge of what is distributed only")
    parts = [along.piece + before]
    if after != ZERO:
        last_start = (ceil_div(along.extent, along.piece) - 1) * along.piece
        parts.append(along.high - last_start)
    return conditional(along.several, maximum(*parts), along.length)


def _surely_positive(expr: Expr, bounds: Bounds) -> bool:
    return expr != ZERO and bounds.non_negative(expr)


# How many ranks take part when one of them sends what others compute with: where the computed
# region is dealt out like the array that is read, only the owners of the region need what is sent.


def taking_part(at: Expr, region: Along, facts: Facts) -> Expr:
    """Return how many ranks own index `at` or some of a region, that owner included.

    Exact where `at` lies within the region or next to it; otherwise at most one more.

    Parameters
    ----------
    at : Expr
        In the index space that is distributed.
    region : Along
        What is computed, in the same space.
    facts : Facts
    """
    if region.length == ONE and region.low == at:
        return ONE
    low, high = region.low, region.high
    if not facts.non_negative(at - low):
        low = at if facts.non_negative(low - at) else minimum(low, at)
    if not facts.non_negative(high - at - 1):
        high = at + 1 if facts.non_negative(at + 1 - high) else maximum(high, at + 1)
    together = owners(low, high, region)
    gap_below, gap_above = region.low - at - 1, at - region.high
    if (low, high) == (region.low, region.high) or ZERO in (gap_below, gap_above):
        return together
    apart = owners(region.low, region.high, region) + 1
    if not facts.non_negative(region.length - 1):
        apart = conditional(less(0, region.length), apart, ONE)
    return minimum(together, apart)


def owners(low: Expr, high: Expr, region: Along) -> Expr:
    """Return how many ranks own some of ``low <= i < high``, which is not empty."""
    pieces = floor_div(high - 1, region.piece) - floor_div(low, region.piece) + 1
    return minimum(region.ranks, pieces) if isinstance(region.dim, CyclicDim) else pieces
