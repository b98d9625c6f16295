"""Where every array of a kernel lives: declared, or inferred for the arrays it makes.

Arrays are aligned with a template, the index space that is distributed: element ``i`` of an
array sits at ``i + origin`` of its template. An array made of shifted slices of another keeps
that array's template, so that its elements stay with the ranks that compute them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from advisor.distribution import AxisMap, BlockDim, MeshSpec, NotDistributed, StorageOrder
from advisor.dtypes import itemsize_of
from advisor.ir.kernel import DeclaredArray, Kernel
from advisor.ir.statements import Bind, walk
from advisor.ir.values import (
    Copy,
    Elementwise,
    Fill,
    Flip,
    PeriodicPad,
    Point,
    Range,
    Read,
    Reduction,
    Roll,
    Scalar,
    Scan,
    Value,
)
from costdb.expr import Expr, ceil_div, num, sym
from costdb.expr.nodes import Num

ZERO = num(0)
ONE = num(1)


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

    def block(self, dimension: int) -> Expr:
        """Return the largest extent of a dimension that one rank owns."""
        if self.ranks(dimension) == ONE:
            return self.template[dimension]
        return ceil_div(self.template[dimension], self.ranks(dimension))

    def is_spread(self, dimension: int) -> bool:
        """Return whether more than one rank may own parts of a dimension."""
        return self.ranks(dimension) != ONE

    def matches(self, other: Placement) -> bool:
        """Return whether equal template coordinates are owned by equal ranks."""
        return (self.template, self.dims, self.mesh) == (other.template, other.dims, other.mesh)


class Unplaced(Exception):
    """The distribution of an array is not known."""

    def __init__(self, name: str) -> None:
        super().__init__(f"nothing says how `{name}` is distributed")


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
    pending: list[Bind] = []
    for statement in walk(kernel.body):
        if not isinstance(statement, Bind) or statement.name in placed:
            continue
        found = _inferred(statement.value, placed)
        if found is not None:
            placed[statement.name] = found
        else:
            pending.append(statement)
    for statement in pending:
        # an array of constants has no operands to follow: it lives like its equals in shape
        if statement.name not in placed:
            like = _same_shape(kernel.extents(statement.name), placed)
            if like is not None:
                placed[statement.name] = like
    return placed


def _same_shape(extents: tuple[Expr, ...], placed: Mapping[str, Placement]) -> Placement | None:
    for placement in placed.values():
        if placement.template == extents:
            return replace(placement, origin=tuple(ZERO for _ in extents))
    return None


def _inferred(value: Value, placed: Mapping[str, Placement]) -> Placement | None:
    candidates = _candidates(value, placed)
    if not candidates:
        return None
    most = max(len(candidate.template) for candidate in candidates)
    same = [c for c in candidates if len(c.template) == most and c.matches(candidates[0])]
    if not same:
        return None
    return min(same, key=lambda candidate: _total_distance(candidate, same))


def _total_distance(candidate: Placement, others: list[Placement]) -> float:
    total = 0.0
    for other in others:
        for own, theirs in zip(candidate.origin, other.origin, strict=True):
            gap = own - theirs
            total += abs(float(gap.value)) if isinstance(gap, Num) else 1.0
    return total


def _candidates(value: Value, placed: Mapping[str, Placement]) -> list[Placement]:
    """Return the placements that the operands of a value suggest for its result."""
    match value:
        case Read(array, region):
            source = placed.get(array)
            return [] if source is None else [_of_region(source, region)]
        case Scalar() | Fill():
            return []
        case Elementwise(_, parts):
            return [found for part in parts for found in _candidates(part, placed)]
        case Copy() | Roll() | Scan() | Flip():
            return _candidates(value.operand, placed)
        case PeriodicPad(operand, axis, before, _):
            return [
                replace(found, origin=_moved(found.origin, axis, -before))
                for found in _candidates(operand, placed)
            ]
        case Reduction(operand, axis, _, _):
            if axis is None:
                return []
            return [_without(found, axis) for found in _candidates(operand, placed)]


def _moved(origin: tuple[Expr, ...], axis: int, by: Expr) -> tuple[Expr, ...]:
    return tuple(at + by if position == axis else at for position, at in enumerate(origin))


def _of_region(source: Placement, region: tuple[Range | Point, ...]) -> Placement:
    kept = [d for d, part in enumerate(region) if isinstance(part, Range)]
    return Placement(
        template=tuple(source.template[d] for d in kept),
        origin=tuple(source.origin[d] + low_of(region[d]) for d in kept),
        dims=tuple(source.dims[d] for d in kept),
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


def low_of(part: Range | Point) -> Expr:
    """Return the first index that a subscript selects."""
    return part.low if isinstance(part, Range) else part.at


def length_of(part: Range | Point) -> Expr:
    """Return how many indices a subscript selects."""
    return part.high - part.low if isinstance(part, Range) else ONE


def pitches_bytes(placement: Placement, extents: tuple[Expr, ...], dtype: str) -> tuple[Expr, ...]:
    """Return the distance in a rank's memory between neighbours along each dimension.

    Parameters
    ----------
    placement : Placement
    extents : tuple of Expr
        Extents of the array itself, which a dimension that is not distributed keeps.
    dtype : str
    """
    step: Expr = num(itemsize_of(dtype))
    steps: dict[int, Expr] = {}
    dimensions = range(len(extents))
    for dimension in reversed(dimensions) if placement.order == "C" else dimensions:
        steps[dimension] = step
        step = step * local_extent(placement, extents, dimension)
    return tuple(steps[dimension] for dimension in dimensions)


def local_extent(placement: Placement, extents: tuple[Expr, ...], dimension: int) -> Expr:
    """Return how far one rank's part of an array reaches along a dimension, at most."""
    if placement.is_spread(dimension):
        return placement.block(dimension)
    return extents[dimension]


def is_block(dim: AxisMap) -> bool:
    """Return whether neighbouring indices mostly live on the same rank."""
    return isinstance(dim, BlockDim | NotDistributed)
