"""What ranks need of one another for a read, direction by direction, and what they hold already.

A statement computed where its target lives reads elements at constant offsets from it. Along a
distributed dimension those beyond the edge of the local block come from a neighbour, and those
at a diagonal offset from the neighbour across the corner as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from advisor.analysis.placed.along import Along
from advisor.analysis.placed.placement import Placement
from advisor.analysis.sizes.facts import Facts, Turning
from advisor.analysis.transfers.shifts import is_run
from advisor.distribution import CyclicDim
from advisor.ir.shapes import ArrayType
from advisor.ir.signs import Sign, largest, smallest
from costdb.expr import ONE, ZERO, Expr, less

Interval = tuple[Expr, Expr]


@dataclass(frozen=True, slots=True)
class OneRead:
    """One read of an array, relative to the element that is computed from it.

    Attributes
    ----------
    offsets : mapping of int to Expr
        Distance along each distributed dimension of the array that is read.
    ranges : mapping of int to (Expr, Expr)
        Indices read along each of the other dimensions, half open.
    """

    offsets: Mapping[int, Expr]
    ranges: Mapping[int, Interval]


@dataclass(frozen=True, slots=True)
class Reach:
    """What one statement reads of one array.

    Attributes
    ----------
    array : ArrayType
    placement : Placement
        Of the array that is read.
    spread : mapping of int to Along
        What is computed, along each distributed dimension of the array that is read.
    reads : tuple of OneRead
    wraps_after : Expr or None
        Extent after which indices start again from the other end, for periodic shifts.
    steps : mapping of int to Expr
        Distance in their owner's memory between neighbours among the indices that are read,
        where it is not 1.
    thinned : mapping of int to int
        Dimensions along which, of so many indices that follow one another, one is needed.
    """

    array: ArrayType
    placement: Placement
    spread: Mapping[int, Along]
    reads: tuple[OneRead, ...]
    wraps_after: Expr | None = None
    steps: Mapping[int, Expr] = field(default_factory=dict)
    thinned: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Side:
    """Layers beyond one edge of a block.

    Attributes
    ----------
    dimension, sign : int
        Which dimension, and -1 for lower or +1 for higher indices.
    depths : tuple of Expr
        Distances of the reads, ascending.
    """

    dimension: int
    sign: int
    depths: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """Elements that a rank needs from the owners in one direction.

    Attributes
    ----------
    sides : tuple of Side
        The dimensions in which the owners lie elsewhere.
    across : tuple of (int, tuple of Expr)
        For each other distributed dimension, the offsets at which own indices are read.
    ranges : tuple of (int, Expr, Expr)
        For each dimension that is not distributed, the indices read.
    regions : tuple of (int, Along)
        For each distributed dimension, what is computed.
    wraps_after : Expr or None
    """

    sides: tuple[Side, ...]
    across: tuple[tuple[int, tuple[Expr, ...]], ...]
    ranges: tuple[tuple[int, Expr, Expr], ...]
    regions: tuple[tuple[int, Along], ...]
    wraps_after: Expr | None

    @property
    def direction(self) -> tuple[tuple[int, int], ...]:
        """Dimensions and signs of the sides."""
        return tuple((side.dimension, side.sign) for side in self.sides)

    @property
    def label(self) -> str:
        """Name of the messages, as a report shows it."""
        if len(self.sides) > 1:
            return "halo messages, corners"
        return f"halo messages, axis {self.sides[0].dimension}"


def requests(reach: Reach, facts: Facts) -> list[Request]:
    """Return what a statement needs of one array from other ranks, by direction.

    Raises
    ------
    NotPriced
        Where the direction of a shift depends on sizes, or no closed form is known.
    """
    moves = [_moves(read, facts) for read in reach.reads]
    directions: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for place, moved in enumerate(moves):
        for count in range(1, len(moved) + 1):
            for part in combinations(moved, count):
                directions.setdefault(tuple((d, s) for d, s, _ in part), []).append(place)
    found: list[Request] = []
    for direction, places in directions.items():
        contributions = [(dict(_depths(moves[p])), reach.reads[p]) for p in places]
        found += _merged(reach, direction, contributions, facts)
    return found


def _moves(read: OneRead, facts: Facts) -> list[tuple[int, int, Expr]]:
    moved: list[tuple[int, int, Expr]] = []
    for dimension, offset in sorted(read.offsets.items()):
        match facts.sign(offset):
            case Sign.ZERO:
                continue
            case Sign.NON_NEGATIVE:
                moved.append((dimension, 1, offset))
            case Sign.NEGATIVE | Sign.NON_POSITIVE:
                moved.append((dimension, -1, -offset))
            case Sign.UNKNOWN:
                raise Turning(offset)
    return moved


def _depths(moved: list[tuple[int, int, Expr]]) -> Iterator[tuple[int, Expr]]:
    return ((dimension, depth) for dimension, _, depth in moved)


def _merged(
    reach: Reach,
    direction: tuple[tuple[int, int], ...],
    contributions: list[tuple[dict[int, Expr], OneRead]],
    facts: Facts,
) -> list[Request]:
    """Return the union of what several reads need from one direction.

    Exact where their depths and their offsets across combine freely, as those of the usual
    stencils do; otherwise the smallest request with free combinations that holds them all.
    """
    inside = [dimension for dimension, _ in direction]
    others = [dimension for dimension in reach.spread if dimension not in inside]
    ordered: list[tuple[Expr, ...]] = []
    for dimension in inside:
        known = facts.ascending(dict.fromkeys(depths[dimension] for depths, _ in contributions))
        if known is None or (len(known) > 1 and reach.wraps_after is not None):
            # in an order that is not known, each is fetched by itself
            return [
                request
                for one in contributions
                for request in _merged(reach, direction, [one], facts)
            ]
        ordered.append(known)
    across = tuple(
        (dimension, tuple(dict.fromkeys(read.offsets[dimension] for _, read in contributions)))
        for dimension in others
    )
    ranges = tuple(
        (
            dimension,
            smallest([read.ranges[dimension][0] for _, read in contributions], facts.minima),
            largest([read.ranges[dimension][1] for _, read in contributions], facts.minima),
        )
        for dimension in contributions[0][1].ranges
    )
    sides = tuple(
        Side(dimension, sign, depths)
        for (dimension, sign), depths in zip(direction, ordered, strict=True)
    )
    regions = tuple(sorted(reach.spread.items()))
    return [Request(sides, across, ranges, regions, reach.wraps_after)]


def lacking(held: Request, wanted: Request, facts: Facts) -> Expr:
    """Return when a rank lacks what it needs although `held` was fetched: 1, 0 or a test."""
    if not _alike(held, wanted, facts):
        return ONE
    have = [side.depths for side in held.sides]
    want = [side.depths for side in wanted.sides]
    if all(set(w) <= set(h) or (is_run(h) and w[-1] in h) for h, w in zip(have, want, strict=True)):
        return ZERO
    deepest = have[0][-1]
    if len(held.sides) > 1 or not facts.non_negative(deepest - want[0][-1]):
        return ONE
    along = dict(wanted.regions)[wanted.sides[0].dimension]
    # one read at a distance within a block brings all layers in between
    return ONE if isinstance(along.dim, CyclicDim) else less(along.piece, deepest)


def missing_layers(held: Request, wanted: Request, facts: Facts) -> tuple[Expr, Expr] | None:
    """Return the depth held and the depth needed where only farther layers are missing."""
    if len(wanted.sides) != 1 or wanted.wraps_after is not None:
        return None
    have, want = held.sides[0].depths, wanted.sides[0].depths
    if not (_alike(held, wanted, facts) and is_run(have)):
        return None
    if not is_run(want) and (len(want) > 1 or want[0] != have[-1] + 1):
        return None
    return have[-1], want[-1]


def _alike(held: Request, wanted: Request, facts: Facts) -> bool:
    # what wrapped around serves reads that do not; the reverse would lack the far end
    if held.direction != wanted.direction or wanted.wraps_after not in (None, held.wraps_after):
        return False
    across = dict(wanted.across)
    return (
        # where own indices are read in place, those read at an offset are among them
        all(
            ZERO in offsets or set(across[dimension]) <= set(offsets)
            for dimension, offsets in held.across
        )
        and all(
            one == other or one.nearly_whole
            for (_, one), (_, other) in zip(held.regions, wanted.regions, strict=True)
        )
        and all(
            facts.non_negative(low - held_low) and facts.non_negative(held_high - high)
            for (_, held_low, held_high), (_, low, high) in zip(
                held.ranges, wanted.ranges, strict=True
            )
        )
    )


def weaker_sides(found: list[Request]) -> frozenset[tuple[int, int]]:
    """Return the sides that do not count on two ranks, where either has one neighbour only.

    All that comes from one side, corners included, must be matched by as much from the other.
    """
    weaker: set[tuple[int, int]] = set()
    for dimension in {side.dimension for request in found for side in request.sides}:
        above = [request for request in found if (dimension, 1) in request.direction]
        below = [request for request in found if (dimension, -1) in request.direction]
        if not above or not below:
            continue
        if not all(dict(one.regions)[dimension].nearly_whole for one in (*above, *below)):
            # what lies within one block may need one side only
            continue
        if all(any(_outweighs(b, a, dimension) for b in below) for a in above):
            weaker.add((dimension, 1))
        elif all(any(_outweighs(a, b, dimension) for a in above) for b in below):
            weaker.add((dimension, -1))
    return frozenset(weaker)


def _outweighs(strong: Request, weak: Request, dimension: int) -> bool:
    """Return whether one request, from the other side of a dimension, is at least as large."""
    if strong.wraps_after is not None or weak.wraps_after is not None:
        return False
    mine = {side.dimension: side for side in strong.sides}
    for side in weak.sides:
        own = mine.pop(side.dimension, None)
        if own is None:
            return False
        deeper = is_run(own.depths) and is_run(side.depths) and len(own.depths) > len(side.depths)
        if own.depths != side.depths and not (deeper and side.dimension == dimension):
            return False
        if own.sign != side.sign and side.dimension != dimension:
            return False
    across = [{d: frozenset(offsets) for d, offsets in r.across} for r in (strong, weak)]
    return not mine and across[0] == across[1] and strong.ranges == weak.ranges
