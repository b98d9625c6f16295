"""How a region lies along one distributed dimension, and how much of it the busiest rank owns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from advisor.analysis.placed.busiest import dealt, in_blocks
from advisor.analysis.sizes.facts import Bounds, Facts, NotPriced
from advisor.distribution import AxisMap, CyclicDim
from costdb.expr import Expr, ceil_div, conditional, less, maximum, num
from costdb.expr.nodes import Num

ZERO = num(0)
ONE = num(1)
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
