"""What ranks fetch from one another for slices with a step along distributed dimensions.

Reads of one progression (one remainder along each dimension that is stepped through) belong
together. Where ranks own multiples of the step at a time, such reads are like reads of ranges in
an index space that is shorter by the step, and so are their messages. Elsewhere the remainders
change from block to block, and each read counts by itself: what it needs of an owner is what the
range around it would need, divided by the step. Nothing is held of what was fetched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from advisor.analysis.placed.along import Along
from advisor.analysis.placed.operands import Operand
from advisor.analysis.placed.placement import (
    OTHER_PIECES,
    Placement,
    Progression,
    local_step,
    low_of,
)
from advisor.analysis.sizes.facts import Facts, NotPriced
from advisor.analysis.transfers.communication import messages
from advisor.analysis.transfers.requests import OneRead, Reach, requests, weaker_sides
from advisor.distribution import BlockDim, CyclicDim
from advisor.ir.shapes import length_of
from advisor.ir.values import Point, Range, Strided, Subscript, ceil_steps, floor_steps
from costdb.expr import ONE, ZERO, Expr, logical_and
from costdb.process.terms import Branch, Process, Sequential

# Reads with another step than what is computed from them: restriction, prolongation.
#
# ``coarse[i] = fine[2*i]`` reads every other element of a dimension that is twice as long.
# Counted in steps, both lie in one index space. Where the blocks of the longer dimension are
# multiples of the step, blocks of the shorter one begin and end with them, and all that is known
# of ranges holds. Elsewhere the blocks drift apart, by less than one index for each rank.


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


@dataclass(frozen=True, slots=True)
class RelativeRead:
    """A read of an array, relative to what is computed from it.

    Attributes
    ----------
    operand : Operand
    spread : mapping of int to Along or Progression
        What is computed, along each distributed dimension of the array that is read.
    starts : mapping of int to Expr
        First index that is read along each of these, in the index space that is distributed.
    rescaled : tuple of Rescaled
        Those along which it has another step than what is computed; `spread` and `starts` then
        count in steps.
    """

    operand: Operand
    spread: Mapping[int, Along | Progression]
    starts: Mapping[int, Expr]
    rescaled: tuple[Rescaled, ...] = ()

    @property
    def remainders(self) -> tuple[tuple[int, int, Expr], ...]:
        """Dimension, step and remainder of each progression that is read."""
        found = [(one.dimension, one.step, one.rest) for one in self.rescaled]
        others = {one.dimension for one in self.rescaled}
        for dimension, part in enumerate(self.operand.region):
            if isinstance(part, Strided) and dimension not in others:
                start = self.starts.get(dimension, part.start)
                rest = start - floor_steps(start, part.step) * part.step
                found.append((dimension, part.step, rest))
        return tuple(found)

    @property
    def ranges(self) -> dict[int, tuple[Expr, Expr]]:
        """Indices along the dimensions that are not distributed, counted in steps."""
        found: dict[int, tuple[Expr, Expr]] = {}
        for dimension, part in enumerate(self.operand.region):
            if dimension not in self.spread:
                low = low_of(part)
                if isinstance(part, Strided):
                    low = floor_steps(low, part.step)
                found[dimension] = low, low + length_of(part)
        return found

    @property
    def offsets(self) -> dict[int, Expr]:
        """Distance along each distributed dimension."""
        return {d: start - self.spread[d].low for d, start in self.starts.items()}

    def offsets_in_steps(self) -> dict[int, Expr] | None:
        """Return distances where progressions count in steps; None where sizes decide."""
        found: dict[int, Expr] = {}
        for dimension, start in self.starts.items():
            along = self.spread[dimension]
            if isinstance(along, Progression):
                offset = along.offset_of(start)
                if offset is None:
                    return None
                found[dimension] = offset
            else:
                found[dimension] = start - along.low
        return found


def stepped_messages(reads: Sequence[RelativeRead], facts: Facts) -> list[Process]:
    """Return the messages for reads of one array in one statement.

    Exact where blocks are multiples of the step and the reads from a side belong to one
    progression, as far as messages for ranges are; otherwise an upper bound.

    Parameters
    ----------
    reads : sequence of RelativeRead
        With equal `spread` and equal `remainders`.
    facts : Facts

    Raises
    ------
    NotPriced
        Where indices are dealt out in pieces that are no multiple of the step, or as for ranges.
    """
    if reads[0].rescaled:
        return _rescaled(reads, facts)
    if all(offset == ZERO for read in reads for offset in read.offsets.values()):
        return []
    progressions = [p for p in reads[0].spread.values() if isinstance(p, Progression)]
    fits = ONE
    for progression in progressions:
        fits = logical_and(fits, progression.fits)
        if isinstance(progression.dim, CyclicDim) and progression.fits != ONE:
            raise NotPriced(OTHER_PIECES)
    together = None if fits == ZERO else _together(reads, facts)
    if together is None:
        return _one_by_one(reads, facts)
    if fits == ONE:
        return together
    apart = _one_by_one(reads, facts)
    return [Branch(fits, Sequential(tuple(together)), Sequential(tuple(apart)))]


def _rescaled(reads: Sequence[RelativeRead], facts: Facts) -> list[Process]:
    """Return the messages of reads with another step than what is computed.

    Exact as those for ranges are where blocks are multiples of the step, and so lie beside one
    another; an upper bound elsewhere.
    """
    if any(isinstance(along, Progression) for along in reads[0].spread.values()):
        raise NotPriced("slices with a step along two distributed dimensions, in different ways")
    ones = [OneRead(read.offsets, read.ranges) for read in reads]
    spread = reads[0].spread
    fits = ONE
    for one in reads[0].rescaled:
        fits = logical_and(fits, one.fits)

    def sent(wanted: Sequence[OneRead]) -> list[Process]:
        different = [one for place, one in enumerate(wanted) if one not in wanted[:place]]
        reach = replace(_reach(reads[0], spread), reads=tuple(different))
        asked = requests(reach, facts)
        weaker = weaker_sides(asked)
        return [m for request in asked for m in messages(request, reach, facts, weaker)]

    if fits == ONE:
        return sent(ones)
    apart = sent([read for one in ones for read in drifted(one, reads[0].rescaled)])
    if fits == ZERO:
        return apart
    return [Branch(fits, Sequential(tuple(sent(ones))), Sequential(tuple(apart)))]


def _together(reads: Sequence[RelativeRead], facts: Facts) -> list[Process] | None:
    """Return messages where all that is stepped through counts in steps; None if it does not."""
    made: list[OneRead] = []
    for read in reads:
        offsets = read.offsets_in_steps()
        if offsets is None:
            return None
        made.append(OneRead(offsets, read.ranges))
    spread = {
        d: along.compressed if isinstance(along, Progression) else along
        for d, along in reads[0].spread.items()
    }
    reach = replace(_reach(reads[0], spread), reads=tuple(made))
    wanted = requests(reach, facts)
    weaker = weaker_sides(wanted)
    return [sent for request in wanted for sent in messages(request, reach, facts, weaker)]


def _one_by_one(reads: Sequence[RelativeRead], facts: Facts) -> list[Process]:
    """Return an upper bound of the messages, wherever blocks begin."""
    progressions = {d: p for d, p in reads[0].spread.items() if isinstance(p, Progression)}
    hulls = {d: progression.hull for d, progression in progressions.items()}
    reach = replace(
        _reach(reads[0], {**reads[0].spread, **hulls}),
        thinned={d: progression.step for d, progression in progressions.items()},
    )
    different: list[OneRead] = []
    for read in reads:
        one = OneRead(read.offsets, read.ranges)
        if one not in different:
            different.append(one)
    reaches = [replace(reach, reads=(one,)) for one in different]
    wanted = [(request, one) for one in reaches for request in requests(one, facts)]
    weaker = weaker_sides([request for request, _ in wanted])
    return [sent for request, one in wanted for sent in messages(request, one, facts, weaker)]


def _reach(read: RelativeRead, spread: Mapping[int, Along | Progression]) -> Reach:
    operand = read.operand
    ranges = {d: along for d, along in spread.items() if isinstance(along, Along)}
    steps = {
        dimension: local_step(operand.placement, dimension, part)
        for dimension, part in enumerate(operand.region)
        if isinstance(part, Strided)
    }
    return Reach(operand.array, operand.placement, ranges, (), steps=steps)
