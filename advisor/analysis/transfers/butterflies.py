"""Fourier transforms along a distributed axis without transposing.

With the axis in blocks over ``P`` ranks, the last ``log2 P`` of the ``log2 N`` butterfly steps
combine elements of different ranks: in each, a rank exchanges its whole part with one other. The
other steps are local. A transposition sends each part only once, but to all ranks.
"""

from __future__ import annotations

from advisor.analysis.placed.along import ONE
from advisor.analysis.placed.operands import local_region
from advisor.analysis.placed.placement import Placement, local_extents
from advisor.analysis.sizes.facts import Facts, NotPriced
from advisor.distribution import CyclicDim
from advisor.ir.shapes import ArrayType
from costdb.expr import ceil, log2
from costdb.process.terms import Leaf, Process, SeqLoop
from costdb.work import Message


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
