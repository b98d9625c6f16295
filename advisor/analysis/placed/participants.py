"""How many ranks take part when one of them sends what others compute with.

Where the computed region is dealt out like the array that is read, only the owners of the region
need what is sent: as a region shrinks in blocks, ever fewer do.
"""

from __future__ import annotations

from advisor.analysis.placed.along import Along
from advisor.analysis.sizes.facts import Facts
from advisor.distribution import CyclicDim
from costdb.expr import ONE, ZERO, Expr, conditional, floor_div, less, maximum, minimum


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
