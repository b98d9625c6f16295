"""Reads across distributed dimensions: broadcasts, gathers and transpositions.

An element is computed where its target lives. When an operand is spread over ranks along a
dimension in which the target is not, every rank needs all of what is read: one index is broadcast
by its owner, a range is gathered from all. When the target is spread over the same ranks along
another dimension, each rank needs only its share of every piece: a transposition.
"""

from __future__ import annotations

from collections.abc import Mapping

from advisor.analysis.facts import Facts, NotPriced
from advisor.analysis.placed.along import taking_part
from advisor.analysis.placed.operands import Operand, selected
from advisor.analysis.placed.placement import Placement, local_counts
from advisor.ir.shapes import length_of
from advisor.ir.values import Point, Strided, Subscript
from costdb.expr import ONE, Expr, ceil_div
from costdb.process.terms import NOTHING, Leaf, Process
from costdb.work import Collective, CollectiveKind

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
            at = placement.origin[dimension] + part.at
            ranks = taking_part(at, target.hull(users[0], region[users[0]]), facts)
        return NOTHING if ranks == ONE else collective(CollectiveKind.BROADCAST, ranks)
    if goes_to is not None and goes_to in users:
        if isinstance(part, Strided) or isinstance(region[goes_to], Strided):
            raise NotPriced("a slice with a step that is dealt out otherwise than its target")
        if placement.template[dimension] != target.template[goes_to]:
            raise NotPriced("an array is dealt out otherwise than what is computed from it")
        # dealt out otherwise along the same dimension: all exchange with all
        counts[dimension] = ceil_div(counts[dimension], ranks)
        return collective(CollectiveKind.ALLTOALL, ranks)
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
