"""Which neighbours' elements ranks hold, and what must be requested of their owners for a read.

The elements that a rank reads beyond its own block are requested direction by direction: a side of
each dimension, and each corner that a diagonal offset needs. What was fetched stays valid until its
array is written: after a branch only what both sides leave, after a loop that may not run only what
was held before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations

from advisor.analysis.placement import Along, Facts, Placement, Turning
from advisor.ir.dependence import Sign, largest, smallest
from advisor.ir.kernel import symbols
from advisor.ir.shapes import ArrayType
from advisor.ir.values import Subscript
from costdb.expr import ZERO, Expr
from costdb.records import dataclass, field
from costdb.work import Process


@dataclass(frozen=True, slots=True)
class OneRead:
    """One read of an array, relative to the element that is computed from it.

    Attributes
    ----------
    offsets : mapping of int to Expr
        Distance along each distributed dimension.
    ranges : mapping of int to (Expr, Expr)
        Indices read along each of the other dimensions, half open.
    """

    offsets: Mapping[int, Expr]
    ranges: Mapping[int, tuple[Expr, Expr]]


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
    progressions : tuple of (int, int, Expr)
        Dimension, step and remainder of the slices with a step.
    """

    array: ArrayType
    placement: Placement
    spread: Mapping[int, Along]
    reads: tuple[OneRead, ...]
    wraps_after: Expr | None = None
    steps: Mapping[int, Expr] = field(default_factory=dict)
    progressions: tuple[tuple[int, int, Expr], ...] = ()


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
    wraps_after, progressions
        As for :class:`Reach`.
    """

    sides: tuple[Side, ...]
    across: tuple[tuple[int, tuple[Expr, ...]], ...]
    ranges: tuple[tuple[int, Expr, Expr], ...]
    regions: tuple[tuple[int, Along], ...]
    wraps_after: Expr | None
    progressions: tuple[tuple[int, int, Expr], ...]

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


@dataclass(frozen=True, slots=True)
class Gathered:
    """Elements that a rank got by a collective, and holds until their array is written.

    Attributes
    ----------
    dimension : int
        The distributed dimension that the collective ran along.
    region : tuple of Subscript
    going : tuple of (int, int or None)
        For each dimension of the array, the dimension of the target that it goes with.
    """

    dimension: int
    region: tuple[Subscript, ...]
    going: tuple[tuple[int, int | None], ...]


Held = dict[str, tuple[Request | Gathered, ...]]


@dataclass(frozen=True, slots=True)
class Fetch:
    """A request that was answered, and the messages for it.

    Attributes
    ----------
    name : str
        The array.
    request : Request or Gathered
    sent : tuple of Process
    symbols : frozenset of str
        What the request and the conditions around it depend on.
    """

    name: str
    request: Request | Gathered
    sent: tuple[Process, ...]
    symbols: frozenset[str]


@dataclass(slots=True)
class Halos:
    """What is held at one point of a kernel.

    Attributes
    ----------
    held : dict of str to tuple of Request or Gathered
    fetched : list of Fetch
        Since the list was last emptied, in order; fetches that may not happen are left out.
    certain : bool
        False inside a branch.
    """

    held: Held = field(default_factory=dict)
    fetched: list[Fetch] = field(default_factory=list)
    certain: bool = True

    def has(self, name: str | None, wanted: Request | Gathered, facts: Facts) -> bool:
        """Return whether what a read needs is held already."""
        kept = self.held.get(name, ()) if name is not None else ()
        if isinstance(wanted, Gathered):
            return wanted in kept
        return any(isinstance(held, Request) and _serves(held, wanted, facts) for held in kept)

    def hold(self, name: str | None, what: Request | Gathered, sent: list[Process]) -> None:
        """Hold what messages bring; of an array without a name nothing is asked again."""
        if name is None:
            return
        self.held[name] = (*self.held.get(name, ()), what)
        if self.certain:
            self.fetched.append(Fetch(name, what, tuple(sent), symbols(what)))

    def forget(self, names: Iterable[str]) -> None:
        """Hold nothing of some arrays any more."""
        for name in names:
            self.held.pop(name, None)

    def exchange(self, names: frozenset[str]) -> None:
        """Follow two arrays that exchange their names."""
        one, other = sorted(names)
        first, second = self.held.pop(one, ()), self.held.pop(other, ())
        self.held.update({name: kept for name, kept in ((one, second), (other, first)) if kept})

    def forget_symbol(self, symbol: str) -> None:
        """Hold nothing whose place depends on an index that is going to change."""
        for name, kept in list(self.held.items()):
            self.held[name] = tuple(one for one in kept if symbol not in symbols(one))


def common(one: Held, other: Held) -> Held:
    """Return what is held in both of two states."""
    return {
        name: tuple(request for request in kept if request in other[name])
        for name, kept in one.items()
        if name in other
    }


def requests(reach: Reach, facts: Facts) -> list[Request]:
    """Return what a statement needs of one array from other ranks, by direction.

    Reads from one direction are taken together: of their elements each is sent once.

    Raises
    ------
    Turning
        Where a distance is neither surely positive nor surely negative.
    """
    directions: dict[tuple[tuple[int, int], ...], list[tuple[dict[int, Expr], OneRead]]] = {}
    for read in reach.reads:
        moved = _moves(read, facts)
        depths = {dimension: depth for dimension, _, depth in moved}
        for count in range(1, len(moved) + 1):
            for part in combinations(moved, count):
                direction = tuple((dimension, sign) for dimension, sign, _ in part)
                directions.setdefault(direction, []).append((depths, read))
    return [
        request
        for direction, contributions in directions.items()
        for request in _merged(reach, direction, contributions, facts)
    ]


def _moves(read: OneRead, facts: Facts) -> list[tuple[int, int, Expr]]:
    """Return the dimensions along which a read is moved, each with its direction and depth."""
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


def _merged(
    reach: Reach,
    direction: tuple[tuple[int, int], ...],
    contributions: list[tuple[dict[int, Expr], OneRead]],
    facts: Facts,
) -> list[Request]:
    """Return the union of what several reads need from one direction.

    Depths whose order is not known, and periodic ones, stay requests of their own.
    """
    sides: list[Side] = []
    for dimension, sign in direction:
        known = facts.ascending(dict.fromkeys(depths[dimension] for depths, _ in contributions))
        if known is None or (len(known) > 1 and reach.wraps_after is not None):
            return [
                request
                for one in contributions
                for request in _merged(reach, direction, [one], facts)
            ]
        sides.append(Side(dimension, sign, known))
    reads = [read for _, read in contributions]
    inside = dict(direction)
    return [
        Request(
            tuple(sides),
            tuple(
                (dimension, tuple(dict.fromkeys(read.offsets[dimension] for read in reads)))
                for dimension in reach.spread
                if dimension not in inside
            ),
            tuple(
                (
                    dimension,
                    smallest([read.ranges[dimension][0] for read in reads], facts.minima),
                    largest([read.ranges[dimension][1] for read in reads], facts.minima),
                )
                for dimension in reads[0].ranges
            ),
            tuple(sorted(reach.spread.items())),
            reach.wraps_after,
            reach.progressions,
        )
    ]


def _serves(held: Request, wanted: Request, facts: Facts) -> bool:
    """Return whether what a request brought is all that another one asks for.

    Several layers are held without gaps, and so is what a single read at a distance brings where
    blocks are deeper than that.
    """
    # what wrapped around serves reads that do not; the reverse would lack the far end
    if held.direction != wanted.direction or wanted.wraps_after not in (None, held.wraps_after):
        return False
    if held.progressions != wanted.progressions:
        return False
    regions = dict(held.regions)
    for have, want in zip(held.sides, wanted.sides, strict=True):
        if set(want.depths) <= set(have.depths):
            continue
        gapless = len(have.depths) > 1 or regions[have.dimension].nearly_whole
        deep_enough = facts.non_negative(have.depths[-1] - want.depths[-1])
        if not (gapless and deep_enough and len(held.sides) == 1):
            return False
    across = dict(wanted.across)
    return (
        # where all of a block is read in place, what is read at an offset is among it
        all(
            (ZERO in offsets and regions[dimension].nearly_whole)
            or set(across[dimension]) <= set(offsets)
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
