"""How every so many indices of a distributed dimension are shared out over ranks.

Where ranks own whole multiples of the step at a time, indices of one progression are shared out
as consecutive ones are in pieces shorter by that factor: index ``i`` counts as ``i // step``,
whatever its remainder, and all that is known of ranges holds of progressions. Elsewhere the
remainders change from block to block, and what a block has of a progression is bounded by what
it has of the range around it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from advisor.analysis.placed.along import Along
from advisor.analysis.sizes.facts import Facts, NotPriced
from advisor.distribution import AxisMap, CyclicDim
from advisor.ir.steps import ceil_steps, floor_steps, residue
from costdb.expr import Expr, ceil_div, equal, floor_div, gcd, num
from costdb.expr.nodes import Num

ZERO = num(0)
ONE = num(1)
OTHER_PIECES = "a slice with a step along a dimension dealt out in pieces that are no multiple"


@dataclass(frozen=True, slots=True)
class Progression:
    """Every `step`-th index from `low` on, below `stop`, of a dimension that is distributed.

    Attributes
    ----------
    low, stop : Expr
        In the index space that is distributed.
    step : int
        At least 2.
    extent, ranks, dim
        As for :class:`~advisor.analysis.placed.along.Along`.
    """

    low: Expr
    stop: Expr
    step: int
    extent: Expr
    ranks: Expr
    dim: AxisMap

    @property
    def length(self) -> Expr:
        """Number of indices."""
        return ceil_steps(self.stop - self.low, self.step)

    @property
    def hull(self) -> Along:
        """The range from the first index to the last, or up to `stop` if few indices are beyond."""
        wide = self._wide
        return wide if wide.is_whole or wide.nearly_whole else self._narrow

    @property
    def _wide(self) -> Along:
        return Along(self.low, self.stop, self.extent, self.ranks, self.dim)

    @property
    def _narrow(self) -> Along:
        return replace(self._wide, high=self.low + (self.length - 1) * self.step + 1)

    @property
    def fits(self) -> Expr:
        """1 where ranks own multiples of the step at a time, else 0."""
        piece = self.hull.piece
        if residue(piece, self.step) is not None:
            return num(residue(piece, self.step) == 0)
        return equal(piece % self.step, 0)

    @property
    def compressed(self) -> Along:
        """The indices as a range over pieces that are shorter by the step.

        Only where the step `fits`. A range that nearly ends with the dimension may count one
        index too many at its end.

        Raises
        ------
        NotPriced
            Where a piece that is dealt out is no multiple of the step.
        """
        extent = ceil_steps(self.extent, self.step)
        low = floor_steps(self.low, self.step)
        high = low + self.length
        beyond = self.extent - self.stop
        if isinstance(beyond, Num) and beyond.value >= 0:
            high = extent - floor_steps(beyond, self.step)
        dim = self.dim
        if isinstance(dim, CyclicDim):
            if dim.k % self.step:
                raise NotPriced(OTHER_PIECES)
            high, dim = low + self.length, CyclicDim(dim.axes, dim.k // self.step)
        return Along(low, high, extent, self.ranks, dim)

    def offset_of(self, start: Expr) -> Expr | None:
        """Return how far a progression from `start` on lies from this one when compressed.

        None where that depends on sizes.
        """
        if residue(start, self.step) is None or residue(self.low, self.step) is None:
            return None
        return floor_steps(start, self.step) - floor_steps(self.low, self.step)

    def count(self, facts: Facts) -> Expr:
        """Return how many of the indices the rank that has most of them owns.

        Exact where blocks are a multiple of the step and where pieces of one index are dealt
        out, apart from what :meth:`Along.count` says; else at most one more.

        Raises
        ------
        NotPriced
            Where a piece of several indices that is dealt out is no multiple of the step.
        """
        if not isinstance(self.dim, CyclicDim):
            around = self._wide if self._wide.has_full_block else self._narrow
            return ceil_steps(around.count(facts), self.step)
        if self.dim.k == 1:
            # the owners of a progression are every so many ranks, in turn
            return ceil_div(self.length * gcd(self.step, self.ranks), self.ranks)
        return self.compressed.count(facts)

    @property
    def local_step(self) -> Expr:
        """How far apart in its owner's memory two indices are that follow one another there."""
        if isinstance(self.dim, CyclicDim) and self.dim.k == 1:
            return floor_div(self.step, gcd(self.step, self.ranks))
        return num(self.step)
