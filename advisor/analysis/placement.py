"""How an array, or a part of one, lies on the ranks that own it.

Arrays are aligned with a template, the index space that is distributed: element ``i`` of an
array sits at ``i + origin`` of its template. An array made of shifted slices of another keeps
that array's template, so that its elements stay with the ranks that compute them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache

from advisor.distribution import AxisMap, CyclicDim, MeshSpec, StorageOrder
from advisor.ir.dependence import Sign, non_negative_within, sign
from advisor.ir.kernel import DeclaredArray
from advisor.ir.shapes import length_of
from advisor.ir.statements import Bind, Loop, ScalarBind, Statement, Store
from advisor.ir.values import (
    Point,
    Range,
    Strided,
    Subscript,
    bounds_in,
    ceil_steps,
    floor_steps,
    reads,
    step_of,
)
from costdb.expr import (
    ONE,
    ZERO,
    Expr,
    ceil_div,
    conditional,
    floor_div,
    less,
    maximum,
    minimum,
    num,
    sym,
)
from costdb.expr.nodes import Add, Num, Sym
from costdb.records import dataclass, only, replace

# --- facts ----------------------------------------------------------------------------------------
# What is known of sizes while a kernel is lowered: bounds of symbols, and what follows.


# What subscripts tell of sizes: ``u[-2]`` is an element only where there are two.


def least_sizes(statements: tuple[Statement, ...]) -> dict[str, int]:
    """Return the least values of sizes for which single indices lie inside their arrays.

    A kernel raises for smaller ones, so that what it costs then is nobody's question. Statements
    that may not run say nothing; what loops hold is taken to run.
    """
    found: dict[str, int] = {}
    for part in only(Point, _subscripts(statements)):
        known = _least(part.at)
        if known is not None and known[1] > found.get(known[0], 1):
            found[known[0]] = known[1]
    return found


def _least(index: Expr) -> tuple[str, int] | None:
    """Return for an index such as ``N - 2`` the size and its least value."""
    match index:
        case Add((Sym(name),), int(constant)) if constant < 0 and "." not in name:
            return name, -constant
    return None


def _subscripts(statements: tuple[Statement, ...]) -> Iterator[Subscript]:
    for statement in statements:
        match statement:
            case Loop():
                yield from _subscripts(statement.body)
            case Store():
                yield from statement.region
                for read in reads(statement.value):
                    yield from read.region
            case Bind() | ScalarBind():
                for read in reads(statement.value):
                    yield from read.region


class NotPriced(Exception):
    """Something understood that no rule lowers to work yet, with the reason."""


class Turning(NotPriced):
    """A shift whose direction depends on its size."""

    def __init__(self, shift: Expr) -> None:
        super().__init__("a shift whose direction depends on its size")
        self.shift = shift


class Bounds:
    """Bounds of symbols at one point of a kernel; equal ones have equal consequences.

    Attributes
    ----------
    minima : mapping of str to int
        Least values of symbols, where they are not 1.
    maxima : mapping of str to Expr
        Greatest values of the indices of the loops around, outermost first.
    """

    __slots__ = ("_hash", "_key", "maxima", "minima")

    def __init__(self, minima: Mapping[str, int], maxima: Mapping[str, Expr]) -> None:
        self.minima = minima
        self.maxima = maxima
        self._key = tuple(minima.items()), tuple(maxima.items())
        self._hash = hash(self._key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Bounds) and self._key == other._key)

    def non_negative(self, expr: Expr) -> bool:
        """Return whether an expression is surely at least 0."""
        return _non_negative(expr, self)


class Facts:
    """Bounds of symbols while a kernel is gone through; every size is at least 1 by itself."""

    def __init__(self, bounds: Bounds | None = None) -> None:
        self.bounds = bounds or Bounds({}, {})

    @property
    def minima(self) -> Mapping[str, int]:
        """Least values of symbols, where they are not 1."""
        return self.bounds.minima

    @property
    def maxima(self) -> Mapping[str, Expr]:
        """Greatest values of the indices of the loops around, outermost first."""
        return self.bounds.maxima

    @contextmanager
    def within(self, index: str, least: int, greatest: Expr) -> Iterator[None]:
        """Know the bounds of a loop's index for as long as its body is looked at."""
        outside = self.bounds
        self.bounds = Bounds({**outside.minima, index: least}, {**outside.maxima, index: greatest})
        try:
            yield
        finally:
            self.bounds = outside

    def sign(self, expr: Expr) -> Sign:
        """Return the sign of an expression, as far as it is known."""
        found = sign(expr, self.minima)
        if found is Sign.UNKNOWN and self.maxima:
            if self.non_negative(expr):
                return Sign.NON_NEGATIVE
            if self.non_negative(-expr):
                return Sign.NON_POSITIVE
        return found

    def non_negative(self, expr: Expr) -> bool:
        """Return whether an expression is surely at least 0."""
        return _non_negative(expr, self.bounds)

    def ascending(self, values: Iterable[Expr]) -> tuple[Expr, ...] | None:
        """Return values in ascending order, None where their order is not known."""
        ordered: list[Expr] = []
        for value in values:
            place = len(ordered)
            while place and not self.non_negative(value - ordered[place - 1]):
                if not self.non_negative(ordered[place - 1] - value):
                    return None
                place -= 1
            ordered.insert(place, value)
        return tuple(ordered)


@lru_cache(maxsize=4096)
def _non_negative(expr: Expr, bounds: Bounds) -> bool:
    return non_negative_within(expr, bounds.minima, bounds.maxima)


# --- placement ------------------------------------------------------------------------------------


# How a region lies along one distributed dimension, and how much of it the busiest rank owns.


# How many indices of a range the rank has that has most of them.


def largest_part(low: Expr, length: Expr, piece: Expr) -> Expr:
    """Return the most of `length` indices from `low` on that lie in one piece."""
    if low == ZERO:
        return minimum(length, piece)
    head = minimum(length, piece - low % piece)
    return maximum(head, minimum(piece, length - head))


def busiest(low: Expr, length: Expr, piece: Expr, ranks: Expr) -> Expr:
    """Return the most of `length` indices from `low` on that one of `ranks` owns in turn.

    Every rank owns one piece of each whole round; of what is left, a rank owns a piece, or
    what there is of one.
    """
    if piece == ONE:
        return ceil_div(length, ranks)
    around = piece * ranks
    return floor_div(length, around) * piece + largest_part(low, length % around, piece)


def _length(low: Expr, high: Expr, bounds: Bounds) -> Expr:
    length = high - low
    return length if bounds.non_negative(length) else maximum(0, length)


INTERIOR_RANKS = 3
"""Ranks along a dimension from which on some rank has neighbours on both sides."""


@dataclass(frozen=True, slots=True)
class Along:
    """Indices ``low <= i < high`` of a dimension that is distributed.

    Attributes
    ----------
    low, high : Expr
        In the index space that is distributed. What lies outside it (a rim of wrapped copies)
        belongs to the owner of the nearest index inside.
    extent : Expr
        Of that index space.
    ranks : Expr
        Number of ranks it is spread over.
    dim : AxisMap
        Block or cyclic.
    """

    low: Expr
    high: Expr
    extent: Expr
    ranks: Expr
    dim: AxisMap

    @property
    def piece(self) -> Expr:
        """Consecutive indices that a rank owns at a time."""
        if isinstance(self.dim, CyclicDim):
            return num(self.dim.k)
        return _block(self.extent, self.ranks)

    @property
    def length(self) -> Expr:
        """Number of indices."""
        return self.high - self.low

    @property
    def is_whole(self) -> bool:
        """Whether these are all indices of the distributed space."""
        return self.low == ZERO and self.high == self.extent

    @property
    def nearly_whole(self) -> bool:
        """Whether only a constant number of indices is missing."""
        return self.is_few(self.extent - self.length)

    @property
    def has_full_block(self) -> bool:
        """Whether some rank surely has a whole block of the indices, as far as they are few."""
        has_interior = isinstance(self.ranks, Num) and self.ranks.value >= INTERIOR_RANKS
        return self.is_whole or (self.nearly_whole and has_interior)

    def is_few(self, indices: Expr) -> bool:
        """Return whether some indices are a constant number, and fewer than a rank owns at once.

        Where all sizes have values, every number is a constant; the values then decide.
        """
        if not isinstance(indices, Num):
            return False
        piece = self.piece
        return not isinstance(piece, Num) or indices.value < piece.value

    @property
    def several(self) -> Expr:
        """1 where more than one rank owns indices of the dimension, else 0."""
        return ONE if isinstance(self.ranks, Num) and self.ranks != ONE else less(ONE, self.ranks)

    def count(self, facts: Facts) -> Expr:
        """Return how many of the indices the rank that has most of them owns.

        Exact, except for regions that leave out a constant number of indices of a dimension
        over three ranks or more: they count as having some rank away from both edges, which
        is an upper bound where the blocks are as small as that constant.
        """
        return _count(self, facts.bounds)


@lru_cache(maxsize=1024)
def _block(extent: Expr, ranks: Expr) -> Expr:
    return ceil_div(extent, ranks)


@lru_cache(maxsize=4096)
def _count(along: Along, bounds: Bounds) -> Expr:
    before, after = -along.low, along.high - along.extent
    if _surely_positive(before, bounds) or _surely_positive(after, bounds):
        return _with_rim(along, before, after, bounds)
    if along.length == ONE:
        return ONE
    piece, ranks = along.piece, along.ranks
    if isinstance(along.dim, CyclicDim):
        length = _length(along.low, along.high, bounds)
        most = busiest(along.low, length, piece, ranks)
        # one rank alone has all of them
        return most if isinstance(ranks, Num) else conditional(along.several, most, length)
    if along.has_full_block:
        return piece
    return largest_part(along.low, _length(along.low, along.high, bounds), piece)


def _with_rim(along: Along, before: Expr, after: Expr, bounds: Bounds) -> Expr:
    """Count where the ranks at the edges hold a rim besides their own part."""
    if not (bounds.non_negative(before) and bounds.non_negative(after)):
        raise NotPriced("an array that reaches beyond one edge of what is distributed only")
    parts = [along.piece + before]
    if after != ZERO:
        last_start = (ceil_div(along.extent, along.piece) - 1) * along.piece
        parts.append(along.high - last_start)
    return conditional(along.several, maximum(*parts), along.length)


def _surely_positive(expr: Expr, bounds: Bounds) -> bool:
    return expr != ZERO and bounds.non_negative(expr)


def owners(low: Expr, high: Expr, region: Along) -> Expr:
    """Return how many ranks own some of ``low <= i < high``, which is not empty."""
    pieces = floor_div(high - 1, region.piece) - floor_div(low, region.piece) + 1
    return minimum(region.ranks, pieces) if isinstance(region.dim, CyclicDim) else pieces


@dataclass(frozen=True, slots=True)
class Placement:
    """Layout of an array over ranks and in each rank's memory.

    Attributes
    ----------
    template : tuple of Expr
        Extents of the index space that is distributed.
    origin : tuple of Expr
        Template coordinates of the array's first element.
    dims : tuple of AxisMap
        Distribution of each dimension.
    mesh : MeshSpec
    order : {"C", "F"}
        Storage order.
    """

    template: tuple[Expr, ...]
    origin: tuple[Expr, ...]
    dims: tuple[AxisMap, ...]
    mesh: MeshSpec
    order: StorageOrder

    def ranks(self, dimension: int) -> Expr:
        """Return the number of ranks that a dimension is spread over."""
        return ranks_of(self.mesh, self.dims[dimension].axes)

    def is_spread(self, dimension: int) -> bool:
        """Return whether more than one rank may own parts of a dimension."""
        return self.ranks(dimension) != ONE

    def progression(self, dimension: int, part: Strided) -> Along:
        """Return how a slice with a step lies along a distributed dimension, counted in steps.

        Where ranks own whole multiples of the step at a time, indices of one progression are shared
        out as consecutive ones are in pieces shorter by that factor: index ``i`` counts as
        ``i // step``, whatever its remainder. Other blocks are taken to be such.

        Raises
        ------
        NotPriced
            Where a piece that is dealt out is no multiple of the step.
        """
        step, dim = part.step, self.dims[dimension]
        extent = ceil_steps(self.template[dimension], step)
        low = floor_steps(self.origin[dimension] + part.start, step)
        high = low + part.count
        beyond = self.template[dimension] - self.origin[dimension] - part.stop
        if isinstance(dim, CyclicDim):
            if dim.k % step:
                raise NotPriced("a slice with a step of pieces dealt out that are no multiple")
            dim = CyclicDim(dim.axes, dim.k // step)
        elif isinstance(beyond, Num) and beyond.value >= 0:
            # nearly to the end: it may count one index too many
            high = extent - floor_steps(beyond, step)
        return Along(low, high, extent, self.ranks(dimension), dim)

    def hull(self, dimension: int, part: Subscript) -> Along:
        """Return how what lies between the first and the last index of a subscript does."""
        if isinstance(part, Strided):
            part = Range(part.start, part.last + 1)
        return self.along(dimension, part)

    def along(self, dimension: int, part: Range | Point) -> Along:
        """Return how a subscript of an array placed here lies along a distributed dimension."""
        low = self.origin[dimension] + low_of(part)
        return Along(
            low,
            low + length_of(part),
            self.template[dimension],
            self.ranks(dimension),
            self.dims[dimension],
        )

    def along_as(self, dimension: int, other: Placement, its_dimension: int) -> bool:
        """Return whether equal template coordinates of two dimensions are owned by equal ranks."""
        return (self.template[dimension], self.dims[dimension], self.mesh) == (
            other.template[its_dimension],
            other.dims[its_dimension],
            other.mesh,
        )

    def matches(self, other: Placement) -> bool:
        """Return whether equal template coordinates are owned by equal ranks."""
        return (self.template, self.dims, self.mesh) == (other.template, other.dims, other.mesh)


NOWHERE = Placement((), (), (), MeshSpec(()), "C")
"""Of a number, which every rank has."""


@lru_cache(maxsize=1024)
def ranks_of(mesh: MeshSpec, axes: tuple[str, ...]) -> Expr:
    """Return the number of ranks along some mesh axes together."""
    extents = dict(mesh.axes)
    product = ONE
    for axis in axes:
        extent = extents[axis]
        product = product * (num(extent) if isinstance(extent, int) else sym(extent))
    return product


def declared_placement(array: DeclaredArray) -> Placement:
    """Return the placement that a declaration states."""
    spec = array.spec
    origin = tuple(ZERO for _ in array.extents)
    return Placement(array.extents, origin, spec.dims, spec.mesh, spec.order)


def is_spread_in_steps(source: Placement, region: tuple[Subscript, ...]) -> bool:
    """Return whether a region has a slice with a step along a distributed dimension."""
    return any(isinstance(part, Strided) and source.is_spread(d) for d, part in enumerate(region))


def region_placement(source: Placement, region: tuple[Subscript, ...]) -> Placement:
    """Return where a region of an array lives, as an array of its own.

    What is made of every so many elements of a distributed dimension is cut into blocks of its
    own, which lie beside those of the dimension where these are multiples of the step.

    Raises
    ------
    NotPriced
        Where its elements are not neighbours of one another along a dimension that is dealt out.
    """
    if any(
        isinstance(part, Strided) and source.is_spread(d) and isinstance(source.dims[d], CyclicDim)
        for d, part in enumerate(region)
    ):
        raise NotPriced("an array of its own out of a slice with a step of a dealt out dimension")
    kept = [(d, part) for d, part in enumerate(region) if not isinstance(part, Point)]
    places = [_place(source, d, part) for d, part in kept]
    return Placement(
        template=tuple(template for template, _ in places),
        origin=tuple(origin for _, origin in places),
        dims=tuple(source.dims[d] for d, _ in kept),
        mesh=source.mesh,
        order=source.order,
    )


def _place(source: Placement, dimension: int, part: Range | Strided) -> tuple[Expr, Expr]:
    """Return the extent of what is distributed, and where in it a slice begins."""
    template, origin = source.template[dimension], source.origin[dimension]
    if not isinstance(part, Strided):
        return template, origin + part.low
    if source.is_spread(dimension):
        return ceil_steps(template, part.step), floor_steps(origin + part.start, part.step)
    # along a dimension that is not distributed, elements that are apart may count as neighbours
    return length_of(part), ZERO


def low_of(part: Subscript) -> Expr:
    """Return the first index that a subscript selects."""
    return bounds_in(part)[0]


def in_steps(pitches: tuple[Expr, ...], region: tuple[Subscript, ...]) -> tuple[Expr, ...]:
    """Return how far neighbours in a region lie apart, from how far those in its array do."""
    if not any(isinstance(part, Strided) for part in region):
        return pitches
    return tuple(pitch * step_of(part) for pitch, part in zip(pitches, region, strict=True))


def local_count(placement: Placement, dimension: int, part: Subscript, facts: Facts) -> Expr:
    """Return how many of the indices that a subscript selects the busiest rank owns."""
    return _local_count(placement, dimension, part, facts.bounds)


@lru_cache(maxsize=4096)
def _local_count(placement: Placement, dimension: int, part: Subscript, bounds: Bounds) -> Expr:
    # variants of a kernel ask the same of the arrays that they leave alone
    facts = Facts(bounds)
    if placement.is_spread(dimension):
        if isinstance(part, Strided):
            return placement.progression(dimension, part).count(facts)
        return placement.along(dimension, part).count(facts)
    count = length_of(part)
    return count if facts.non_negative(count) else maximum(0, count)


def local_counts(
    placement: Placement, region: tuple[Subscript, ...], facts: Facts
) -> tuple[Expr, ...]:
    """Return how much of a region the busiest rank owns, along each dimension."""
    return tuple(local_count(placement, d, part, facts) for d, part in enumerate(region))


def transposed(placement: Placement, one: int, other: int) -> Placement:
    """Return a placement after a transposition: two dimensions have each other's distribution."""
    dims = list(placement.dims)
    dims[one], dims[other] = dims[other], dims[one]
    return replace(placement, dims=tuple(dims))


def local_extents(
    placement: Placement, extents: tuple[Expr, ...], facts: Facts
) -> tuple[Expr, ...]:
    """Return the shape of the largest part of an array that a rank holds."""
    return local_counts(placement, tuple(Range(ZERO, extent) for extent in extents), facts)


@lru_cache(maxsize=1024)
def pitches_bytes(
    extents: tuple[Expr, ...], order: StorageOrder, itemsize_bytes: int
) -> tuple[Expr, ...]:
    """Return the distance in memory between neighbours along each dimension of a dense array."""
    step: Expr = num(itemsize_bytes)
    steps: dict[int, Expr] = {}
    dimensions = range(len(extents))
    for dimension in reversed(dimensions) if order == "C" else dimensions:
        steps[dimension] = step
        step = step * extents[dimension]
    return tuple(steps[dimension] for dimension in dimensions)
