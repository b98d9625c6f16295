"""Messages that reads of neighbours' elements cost, by the owner-computes rule.

A statement computed where its target lives reads elements at constant offsets from it. Along a
distributed dimension those beyond the edge of the local block come from a neighbour: one
message for each direction, and one for each corner that a diagonal offset needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

from advisor.analysis.placement import (
    Placement,
    is_block,
    local_extent,
    pitches_bytes,
)
from advisor.dtypes import itemsize_of
from advisor.ir.shapes import ArrayType
from advisor.ir.signs import Sign, known_non_negative, sign
from costdb.expr import Expr, conditional, less, less_equal, maximum, minimum, num
from costdb.expr.nodes import Num
from costdb.process.terms import Leaf, Process, SeqLoop
from costdb.work import Message, Region

ZERO = num(0)
ONE = num(1)
GUARD = "once"
"""Index of a loop that runs zero times or once."""


class NotPriced(Exception):
    """Something understood that no rule lowers to work yet, with the reason."""


@dataclass(frozen=True, slots=True)
class Direction:
    """Where a neighbour lies: for each dimension involved, below (-1) or above (+1)."""

    sides: tuple[tuple[int, int], ...]

    @property
    def label(self) -> str:
        """Name of the messages, as a report shows it."""
        if len(self.sides) > 1:
            return "halo messages, corners"
        return f"halo messages, axis {self.sides[0][0]}"


Depths = Mapping[Direction, tuple[Expr, ...]]
"""For each direction, how many layers are needed along each dimension it involves."""


def needed(
    offsets: Iterable[tuple[Expr, ...]], placement: Placement, minima: Mapping[str, int]
) -> dict[Direction, tuple[Expr, ...]]:
    """Return the neighbours' layers that reads at some offsets need.

    Parameters
    ----------
    offsets : iterable of tuple of Expr
        Position of each read relative to the element computed, by dimension.
    placement : Placement
        Of the array that is read.
    minima : mapping of str to int
        Least values of symbols, where they are not 1.
    """
    found: dict[Direction, tuple[Expr, ...]] = {}
    for offset in offsets:
        moved = [
            (dimension, *_split(by, minima))
            for dimension, by in enumerate(offset)
            if placement.is_spread(dimension) and by != ZERO
        ]
        for count in range(1, len(moved) + 1):
            for part in combinations(moved, count):
                direction = Direction(tuple((dimension, side) for dimension, side, _ in part))
                depths = tuple(depth for _, _, depth in part)
                known = found.get(direction)
                found[direction] = depths if known is None else _deeper(known, depths)
    return found


def _split(offset: Expr, minima: Mapping[str, int]) -> tuple[int, Expr]:
    """Return side and depth of an offset."""
    found = sign(offset, minima)
    if found in (Sign.NON_NEGATIVE, Sign.ZERO):
        return 1, offset
    if found in (Sign.NEGATIVE, Sign.NON_POSITIVE):
        return -1, -offset
    raise NotPriced("a shift whose direction depends on its size")


def _deeper(left: tuple[Expr, ...], right: tuple[Expr, ...]) -> tuple[Expr, ...]:
    return tuple(
        one if one == other else maximum(one, other) for one, other in zip(left, right, strict=True)
    )


def covers(held: tuple[Expr, ...], wanted: tuple[Expr, ...]) -> bool:
    """Return whether layers already held are surely deep enough."""
    return all(
        have == want
        or (isinstance(have, Num) and isinstance(want, Num) and have.value >= want.value)
        for have, want in zip(held, wanted, strict=True)
    )


def messages(
    direction: Direction,
    depths: tuple[Expr, ...],
    found: ArrayType,
    placement: Placement,
    minima: Mapping[str, int],
) -> list[Process]:
    """Return the messages that bring the layers of one direction to a rank.

    A shift deeper than a block reaches two owners unless it is a multiple of the block.
    """
    if not all(is_block(placement.dims[dimension]) for dimension, _ in direction.sides):
        raise NotPriced("a shift along a cyclically distributed dimension")
    wanted = {
        dimension: depth for (dimension, _), depth in zip(direction.sides, depths, strict=True)
    }
    near: dict[int, Expr] = {}
    far: dict[int, Expr] = {}
    for dimension, depth in wanted.items():
        block = placement.block(dimension)
        if depth == ONE:
            near[dimension] = ONE
            continue
        near[dimension] = conditional(less_equal(depth, block), depth, block - depth % block)
        far[dimension] = conditional(less_equal(depth, block), ZERO, depth % block)
    made = [_message(direction, near, found, placement)]
    if len(direction.sides) == 1:
        # of a corner only the nearest owner is counted: the others hold a few elements
        for dimension, depth in far.items():
            work = _message(direction, {dimension: depth}, found, placement)
            made.append(_guarded(less(ZERO, depth), work))
    condition = ONE
    for dimension, depth in wanted.items():
        if not known_non_negative(depth - 1, minima):
            condition = condition * less(ZERO, depth)
        ranks = placement.ranks(dimension)
        if not isinstance(ranks, Num):
            condition = condition * less(ONE, ranks)
    if condition != ONE:
        made = [_guarded(condition, work) for work in made]
    return made


def _guarded(condition: Expr, work: Process) -> Process:
    return SeqLoop(GUARD, ONE, condition, work)


def _message(
    direction: Direction, layers: Mapping[int, Expr], found: ArrayType, placement: Placement
) -> Process:
    counts = tuple(
        layers.get(dimension, local_extent(placement, found.extents, dimension))
        for dimension in range(len(found.extents))
    )
    return Leaf(Message(local_region(counts, found, placement), direction.label))


def local_region(counts: tuple[Expr, ...], found: ArrayType, placement: Placement) -> Region:
    """Return a region of one rank's part of an array."""
    return Region(
        itemsize_bytes=itemsize_of(found.dtype),
        counts=counts,
        pitches_bytes=pitches_bytes(placement, found.extents, found.dtype),
    )


def local_count(
    length: Expr, dimension: int, placement: Placement, minima: Mapping[str, int]
) -> Expr:
    """Return how many of `length` consecutive indices the busiest rank owns."""
    if not placement.is_spread(dimension) or length == ONE:
        return length
    block = placement.block(dimension)
    missing = placement.template[dimension] - length
    if missing == ZERO or isinstance(missing, Num):
        # a rank away from the edges owns a full block
        return block
    return minimum(block, length)
