"""Where every array of a kernel lives: declared, or inferred for the arrays it makes.

Arrays are aligned with a template, the index space that is distributed: element ``i`` of an
array sits at ``i + origin`` of its template. An array made of shifted slices of another keeps
that array's template, so that its elements stay with the ranks that compute them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

from advisor.analysis.along import Along
from advisor.analysis.facts import Bounds, Facts, NotPriced
from advisor.analysis.progressions import Progression
from advisor.distribution import AxisMap, MeshSpec, NotDistributed, StorageOrder
from advisor.ir.kernel import DeclaredArray, Kernel
from advisor.ir.shapes import length_of
from advisor.ir.statements import Bind, Statement, Store, walk
from advisor.ir.values import (
    Copy,
    Elementwise,
    Expand,
    Fill,
    Flip,
    Fourier,
    Gather,
    MatMul,
    PeriodicPad,
    Point,
    Range,
    Read,
    Reduction,
    Roll,
    Scalar,
    Scan,
    Sort,
    Strided,
    Subscript,
    Tally,
    Transpose,
    Value,
    bounds_in,
)
from costdb.expr import Expr, maximum, num, sym
from costdb.expr.nodes import Num

ZERO = num(0)
ONE = num(1)
_Part = TypeVar("_Part")


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

    def progression(self, dimension: int, part: Strided) -> Progression:
        """Return how a slice with a step lies along a distributed dimension."""
        origin = self.origin[dimension]
        return Progression(
            origin + part.start,
            origin + part.stop,
            part.step,
            self.template[dimension],
            self.ranks(dimension),
            self.dims[dimension],
        )

    def hull(self, dimension: int, part: Subscript) -> Along:
        """Return how what lies between the first and the last index of a subscript does."""
        if isinstance(part, Strided):
            return self.progression(dimension, part).hull
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


def place(kernel: Kernel) -> dict[str, Placement]:
    """Return the placement of every array of a kernel whose placement is known."""
    placed = {name: declared_placement(array) for name, array in kernel.arrays.items()}
    statements = tuple(walk(kernel.body))
    pending = [s for s in statements if isinstance(s, Bind) and s.name not in placed]
    while pending:
        left: list[Bind] = []
        for bind in pending:
            found = value_placement(bind.value, placed)
            if bind.name in placed:
                continue
            if found is None:
                left.append(bind)
            else:
                placed[bind.name] = found
        if len(left) == len(pending):
            # an array of constants has no operands to follow
            guess = _guessed(left, statements, kernel, placed)
            if guess is None:
                break
            placed.update(guess)
        pending = left
    return placed


def _guessed(
    pending: list[Bind],
    statements: tuple[Statement, ...],
    kernel: Kernel,
    placed: Mapping[str, Placement],
) -> dict[str, Placement] | None:
    """Return a placement for one array: like its equals in shape, or like what is stored in it."""
    for bind in pending:
        extents = kernel.extents(bind.name)
        for placement in placed.values():
            if placement.template == extents:
                return {bind.name: replace(placement, origin=tuple(ZERO for _ in extents))}
    for bind in pending:
        for statement in statements:
            if not isinstance(statement, Store) or statement.array != bind.name:
                continue
            found = value_placement(statement.value, placed)
            if found is None or len(found.template) != len(statement.region):
                continue
            if is_spread_in_steps(found, statement.region):
                continue
            origin = tuple(
                at - low_of(part) for at, part in zip(found.origin, statement.region, strict=True)
            )
            return {bind.name: replace(found, origin=origin)}
    return None


def value_placement(value: Value, placed: Mapping[str, Placement]) -> Placement | None:
    """Return where the elements of a value are computed, None where nothing says it.

    Among operands at different offsets, the result lies in their middle, so that it reaches
    equally far to both sides.
    """
    candidates = _candidates(value, placed)
    if not candidates:
        return None
    most = max(len(candidate.template) for candidate in candidates)
    first = next(c for c in candidates if len(c.template) == most)
    same = [c for c in candidates if len(c.template) == most and c.matches(first)]
    origin = tuple(
        _middle([candidate.origin[dimension] for candidate in same]) for dimension in range(most)
    )
    return replace(first, origin=origin)


def _middle(origins: list[Expr]) -> Expr:
    """Return the origin from which all are nearest; of several, the one in the middle."""
    base = origins[0]
    gaps = [origin - base for origin in origins]
    known = sorted(int(gap.value) for gap in gaps if isinstance(gap, Num))
    if len(known) < len(gaps):
        # distances that depend on sizes cannot be compared
        return max(dict.fromkeys(origins), key=origins.count)
    low, high = known[(len(known) - 1) // 2], known[len(known) // 2]
    return base + (low + high) // 2


def _candidates(value: Value, placed: Mapping[str, Placement]) -> list[Placement]:
    """Return the placements that the operands of a value suggest for its result."""
    match value:
        case Read(array, region):
            source = placed.get(array)
            if source is None or is_spread_in_steps(source, region):
                return []
            return [region_placement(source, region)]
        case Scalar() | Fill() | Tally():
            return []
        case Elementwise(_, parts):
            return [found for part in parts for found in _candidates(part, placed)]
        case Copy() | Roll() | Scan() | Flip() | Fourier() | Sort():
            return _candidates(value.operand, placed)
        case Gather():
            return _candidates(value.places, placed)
        case Expand(operand, axis):
            return [_with_axis(found, axis) for found in _candidates(operand, placed)]
        case Transpose(operand, axes):
            return [_picked(found, axes) for found in _candidates(operand, placed)]
        case MatMul(left, right):
            return [
                _of_product(rows, columns)
                for rows in _candidates(left, placed)
                for columns in _candidates(right, placed)
            ]
        case PeriodicPad(operand, axis, before, _):
            return [
                replace(found, origin=_moved(found.origin, axis, -before))
                for found in _candidates(operand, placed)
            ]
        case Reduction(operand, axis, _, _):
            if axis is None:
                return []
            return [_without(found, axis) for found in _candidates(operand, placed)]


def _with_axis(source: Placement, axis: int) -> Placement:
    """Return a placement with a dimension of length 1 put in."""

    def inserted(parts: tuple[_Part, ...], part: _Part) -> tuple[_Part, ...]:
        return (*parts[:axis], part, *parts[axis:])

    return replace(
        source,
        template=inserted(source.template, ONE),
        origin=inserted(source.origin, ZERO),
        dims=inserted(source.dims, NotDistributed()),
    )


def _picked(source: Placement, axes: tuple[int, ...]) -> Placement:
    """Return a placement with its dimensions in another order."""
    return replace(
        source,
        template=tuple(source.template[axis] for axis in axes),
        origin=tuple(source.origin[axis] for axis in axes),
        dims=tuple(source.dims[axis] for axis in axes),
    )


def _of_product(rows: Placement, columns: Placement) -> Placement:
    """Return where a product lives: with the rows of the one and the columns of the other."""
    dim = columns.dims[1]
    if set(dim.axes) & set(rows.dims[0].axes) or columns.mesh != rows.mesh:
        # one rank cannot own by both; the rows decide
        dim = NotDistributed()
    return replace(
        rows,
        template=(rows.template[0], columns.template[1]),
        origin=(rows.origin[0], columns.origin[1]),
        dims=(rows.dims[0], dim),
    )


def _moved(origin: tuple[Expr, ...], axis: int, by: Expr) -> tuple[Expr, ...]:
    return tuple(at + by if position == axis else at for position, at in enumerate(origin))


def is_spread_in_steps(source: Placement, region: tuple[Subscript, ...]) -> bool:
    """Return whether a region has a slice with a step along a distributed dimension."""
    return any(isinstance(part, Strided) and source.is_spread(d) for d, part in enumerate(region))


def region_placement(source: Placement, region: tuple[Subscript, ...]) -> Placement:
    """Return where a region of an array lives, as an array of its own.

    Raises
    ------
    NotPriced
        Where its elements are not neighbours of one another along a distributed dimension.
    """
    if is_spread_in_steps(source, region):
        raise NotPriced("an array of its own out of a slice with a step of a distributed dimension")
    kept = [(d, part) for d, part in enumerate(region) if not isinstance(part, Point)]
    # along a dimension that is not distributed, elements that are apart may count as neighbours
    stepped = {d for d, part in kept if isinstance(part, Strided)}
    return Placement(
        template=tuple(length_of(part) if d in stepped else source.template[d] for d, part in kept),
        origin=tuple(ZERO if d in stepped else source.origin[d] + low_of(part) for d, part in kept),
        dims=tuple(source.dims[d] for d, _ in kept),
        mesh=source.mesh,
        order=source.order,
    )


def _without(source: Placement, axis: int) -> Placement:
    kept = [d for d in range(len(source.template)) if d != axis]
    return Placement(
        tuple(source.template[d] for d in kept),
        tuple(source.origin[d] for d in kept),
        tuple(source.dims[d] for d in kept),
        source.mesh,
        source.order,
    )


def low_of(part: Subscript) -> Expr:
    """Return the first index that a subscript selects."""
    return bounds_in(part)[0]


def local_step(placement: Placement, dimension: int, part: Subscript) -> Expr:
    """Return how many elements lie between those that a subscript selects, in a rank's memory."""
    if not isinstance(part, Strided):
        return ONE
    if placement.is_spread(dimension):
        return placement.progression(dimension, part).local_step
    return num(part.step)


def in_steps(
    pitches: tuple[Expr, ...], placement: Placement, region: tuple[Subscript, ...]
) -> tuple[Expr, ...]:
    """Return how far neighbours in a region lie apart, from how far those in its array do."""
    if not any(isinstance(part, Strided) for part in region):
        return pitches
    steps = (local_step(placement, dimension, part) for dimension, part in enumerate(region))
    return tuple(pitch * step for pitch, step in zip(pitches, steps, strict=True))


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


def local_extents(
    placement: Placement, extents: tuple[Expr, ...], facts: Facts
) -> tuple[Expr, ...]:
    """Return the shape of the largest part of an array that a rank holds."""
    return tuple(
        local_count(placement, dimension, Range(ZERO, extent), facts)
        for dimension, extent in enumerate(extents)
    )


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
