"""Reads across distributed dimensions: broadcasts, gathers and transpositions.

An element is computed where its target lives. When an operand is spread over ranks along a
dimension in which the target is not, every rank needs all of what is read: one index is broadcast
by its owner, a range is gathered from all. When the target is spread over the same ranks along
another dimension, each rank needs only its share of every piece: a transposition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from advisor.analysis.placed.along import ONE
from advisor.analysis.placed.participants import taking_part
from advisor.analysis.placed.placement import (
    Placement,
    in_steps,
    local_count,
    local_extents,
    pitches_bytes,
)
from advisor.analysis.sizes.facts import Facts, NotPriced
from advisor.dtypes import itemsize_of
from advisor.ir.shapes import ArrayType, length_of
from advisor.ir.values import Point, Strided, Subscript, region_symbols
from costdb.expr import Expr, ceil_div
from costdb.process.terms import NOTHING, Leaf, Process
from costdb.work import Collective, CollectiveKind, Region

Going = Mapping[int, int | None]
"""For each dimension of an operand, the dimension of the target that it goes with."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """Elements that a rank got by a collective, and holds until their array is written.

    Attributes
    ----------
    dimension : int
        The distributed dimension that the collective ran along.
    region : tuple of Subscript
    going : tuple of (int, int or None)
    """

    dimension: int
    region: tuple[Subscript, ...]
    going: tuple[tuple[int, int | None], ...]

    @property
    def symbols(self) -> frozenset[str]:
        """Every size symbol that the region depends on."""
        return region_symbols(self.region)


@dataclass(frozen=True, slots=True)
class Source:
    """A region of an array that is read.

    Attributes
    ----------
    array : ArrayType
        The array behind the region.
    placement : Placement
        Of that array.
    region : tuple of Subscript
    going : mapping of int to int or None
    """

    array: ArrayType
    placement: Placement
    region: tuple[Subscript, ...]
    going: Going


def exchange(
    source: Source,
    dimension: int,
    target: Placement,
    region: tuple[Subscript, ...],
    facts: Facts,
) -> Process:
    """Return the collective that brings what is read along one distributed dimension.

    Parameters
    ----------
    source : Source
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
    placement = source.placement
    ranks = placement.ranks(dimension)
    counts = [local_count(placement, own, part, facts) for own, part in enumerate(source.region)]
    axes = placement.dims[dimension].axes
    goes_to = source.going.get(dimension)
    users = [
        t for t, dim in enumerate(target.dims) if set(dim.axes) & set(axes) and target.is_spread(t)
    ]
    part = source.region[dimension]
    if isinstance(part, Point):
        if len(users) == 1 and placement.along_as(dimension, target, users[0]):
            at = placement.origin[dimension] + part.at
            ranks = taking_part(at, target.hull(users[0], region[users[0]]), facts)
        if ranks == ONE:
            return NOTHING
        return _collective(CollectiveKind.BROADCAST, ranks, source, counts, dimension, facts)
    if goes_to is not None and goes_to in users:
        if isinstance(part, Strided) or isinstance(region[goes_to], Strided):
            raise NotPriced("a slice with a step that is dealt out otherwise than its target")
        if placement.template[dimension] != target.template[goes_to]:
            raise NotPriced("an array is dealt out otherwise than what is computed from it")
        # dealt out otherwise along the same dimension: all exchange with all
        counts[dimension] = ceil_div(counts[dimension], ranks)
        return _collective(CollectiveKind.ALLTOALL, ranks, source, counts, dimension, facts)
    if goes_to is not None and target.is_spread(goes_to):
        raise NotPriced("an array is spread over other ranks than what is computed from it")
    if not users:
        return _collective(CollectiveKind.ALLGATHER, ranks, source, counts, dimension, facts)
    partners = [own for own, t in source.going.items() if t in users]
    if not partners:
        # what the target's owners differ in does not tell their shares of this operand apart
        return _collective(CollectiveKind.ALLGATHER, ranks, source, counts, dimension, facts)
    if len(users) != 1 or target.dims[users[0]].axes != axes:
        raise NotPriced("an array is spread over other ranks than what is computed from it")
    other = partners[0]
    if placement.is_spread(other):
        raise NotPriced("a transposition of two distributed dimensions")
    if isinstance(source.region[other], Strided) or isinstance(region[users[0]], Strided):
        raise NotPriced("a transposition of a slice with a step")
    counts[other] = ceil_div(length_of(source.region[other]), ranks)
    return _collective(CollectiveKind.ALLTOALL, ranks, source, counts, dimension, facts)


_LABELS = {
    CollectiveKind.BROADCAST: "broadcast",
    CollectiveKind.ALLGATHER: "all-gather",
    CollectiveKind.ALLTOALL: "transposition (all-to-all)",
}


def _collective(
    kind: CollectiveKind,
    ranks: Expr,
    source: Source,
    counts: Sequence[Expr],
    dimension: int,
    facts: Facts,
) -> Process:
    itemsize = itemsize_of(source.array.dtype)
    extents = local_extents(source.placement, source.array.extents, facts)
    dense = pitches_bytes(extents, source.placement.order, itemsize)
    pitches = in_steps(dense, source.placement, source.region)
    region = Region(itemsize, tuple(counts) or (ONE,), pitches or (ONE * itemsize,))
    return Leaf(Collective(kind, ranks, region, f"{_LABELS[kind]}, axis {dimension}"))
