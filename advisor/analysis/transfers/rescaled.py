"""Reads with another step than what is computed from them: restriction, prolongation.

``coarse[i] = fine[2*i]`` reads every other element of a dimension that is twice as long. Counted in
steps, both lie in one index space. Where the blocks of the longer dimension are multiples of the
step, blocks of the shorter one begin and end with them, and all that is known of ranges holds.
Elsewhere the blocks drift apart, by less than one index for each rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from advisor.analysis.placed.along import Along
from advisor.analysis.placed.placement import Placement, low_of
from advisor.analysis.sizes.facts import NotPriced
from advisor.analysis.transfers.requests import OneRead
from advisor.distribution import BlockDim
from advisor.ir.steps import ceil_steps, floor_steps
from advisor.ir.values import Point, Range, Strided, Subscript
from costdb.expr import Expr, num

ZERO = num(0)


@dataclass(frozen=True, slots=True)
class Rescaled:
    """A dimension along which a read has another step than what is computed from it.

    Attributes
    ----------
    dimension : int
        Of the array that is read.
    step : int
        Of the longer of both.
    rest : Expr
        What is left of the first index that is read after whole steps.
    fits : Expr
        1 where blocks of the longer one are multiples of the step, else 0.
    drift : Expr
        The most indices, counted in steps, by which blocks lie apart elsewhere; negative where
        what is read lies at lower indices.
    """

    dimension: int
    step: int
    rest: Expr
    fits: Expr
    drift: Expr


def in_steps_of(
    source: Placement,
    own: int,
    part: Subscript,
    placement: Placement,
    target: int,
    computed: Subscript,
) -> tuple[Along, Expr, Rescaled]:
    """Return what is computed and the first index that is read, both counted in steps.

    Parameters
    ----------
    source : Placement
        Of the array that is read.
    own : int
        Its dimension.
    part : Subscript
        What is read along it.
    placement, target, computed
        The same of what is computed.

    Raises
    ------
    NotPriced
        Where both have a step, or blocks of the two have nothing to do with one another.
    """
    match part, computed:
        case Strided(), Range():
            longer = source.progression(own, part)
            shorter, along = placement.template[target], placement.along(target, computed)
            start, drift = floor_steps(longer.low, longer.step), along.ranks
            rest = longer.low - start * longer.step
        case Range(), Strided():
            longer = placement.progression(target, computed)
            shorter, along = source.template[own], longer.compressed
            start, drift = low_of(part) + source.origin[own], -along.ranks
            rest = ZERO
        case _:
            raise NotPriced("slices with different steps along a distributed dimension")
    if isinstance(part, Point) or not isinstance(source.dims[own], BlockDim):
        raise NotPriced("slices with different steps along a dimension that is dealt out")
    if ceil_steps(longer.extent, longer.step) != shorter or source.mesh != placement.mesh:
        raise NotPriced(
            "slices with different steps of dimensions whose extents differ by another factor"
        )
    return along, start, Rescaled(own, longer.step, rest, longer.fits, drift)


def drifted(read: OneRead, rescaled: Sequence[Rescaled]) -> Iterator[OneRead]:
    """Yield a read as near and as far away as it may be where blocks drift apart."""
    for far in product((False, True), repeat=len(rescaled)):
        offsets = dict(read.offsets)
        for one, apart in zip(rescaled, far, strict=True):
            if apart:
                offsets[one.dimension] = offsets[one.dimension] + one.drift
        yield OneRead(offsets, read.ranges)
