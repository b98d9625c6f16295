"""Where the elements of a kernel's arrays and values are computed: by the owners of others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from advisor.analysis.placed.placement import (
    Placement,
    declared_placement,
    is_spread_in_steps,
    low_of,
    region_placement,
)
from advisor.distribution import MeshSpec, NotDistributed
from advisor.ir.kernel import Kernel
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
    Read,
    Reduction,
    Roll,
    Scalar,
    Scan,
    Sort,
    Tally,
    Transpose,
    Value,
)
from costdb.expr import ONE, ZERO, Expr
from costdb.expr.nodes import Num

_Part = TypeVar("_Part")


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
            if guess is None and all(map(_is_whole, placed.values())):
                # where nothing is distributed, neither is what the kernel makes
                guess = {bind.name: _whole(kernel.extents(bind.name)) for bind in left}
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


def _is_whole(placement: Placement) -> bool:
    """Tell whether every rank has all of an array."""
    return all(isinstance(axis, NotDistributed) for axis in placement.dims)


def _whole(extents: tuple[Expr, ...]) -> Placement:
    origin = tuple(ZERO for _ in extents)
    return Placement(extents, origin, tuple(NotDistributed() for _ in extents), MeshSpec(()), "C")


def value_placement(value: Value, placed: Mapping[str, Placement]) -> Placement | None:
    """Return where the elements of a value are computed, None where nothing says it.

    Among operands at different offsets, the result lies in their middle, so that it reaches
    equally far to both sides. One as long as what is distributed lies on the whole of it.
    """
    # slices with a step have blocks of their own, which what lies beside them may not fit
    candidates = _candidates(value, placed) or _candidates(value, placed, stepped=True)
    if not candidates:
        return None
    most = max(len(candidate.template) for candidate in candidates)
    first = next(c for c in candidates if len(c.template) == most)
    same = [c for c in candidates if len(c.template) == most and c.matches(first)]
    lengths = _lengths(value)
    rooms = [first.template[d] - lengths[d] if len(lengths) == most else None for d in range(most)]
    origin = tuple(
        _middle([candidate.origin[dimension] for candidate in same], room)
        for dimension, room in enumerate(rooms)
    )
    return replace(first, origin=origin)


def _lengths(value: Value) -> tuple[Expr, ...]:
    """Return the extents of elementwise arithmetic on parts of arrays; none of anything else."""
    match value:
        case Read(_, region):
            return tuple(length_of(part) for part in region if not isinstance(part, Point))
        case Elementwise(_, parts):
            return max(map(_lengths, parts), key=len, default=())
        case Copy(operand, _):
            return _lengths(operand)
        case _:
            return ()


def _middle(origins: list[Expr], room: Expr | None) -> Expr:
    """Return the origin from which all are nearest; of several, the one in the middle.

    `room` is how much shorter the result is than what is distributed, where that is known: of
    several origins one is taken from which the result does not reach beyond its edges.
    """
    if room == ZERO:
        return ZERO
    base = origins[0]
    gaps = [origin - base for origin in origins]
    known = sorted(int(gap.value) for gap in gaps if isinstance(gap, Num))
    if len(known) < len(gaps):
        # distances that depend on sizes cannot be compared
        return max(dict.fromkeys(origins), key=origins.count)
    low, high = known[(len(known) - 1) // 2], known[len(known) // 2]
    middle = (low + high) // 2
    if isinstance(base, Num) and isinstance(room, Num) and room.value >= 0:
        inside = min(max(middle, -int(base.value)), int(room.value) - int(base.value))
        middle = min(max(inside, low), high)
    return base + middle


def _candidates(
    value: Value, placed: Mapping[str, Placement], *, stepped: bool = False
) -> list[Placement]:
    """Return the placements that the operands of a value suggest for its result.

    Slices with a step along a distributed dimension suggest some only where `stepped`.
    """

    def of(operand: Value) -> list[Placement]:
        return _candidates(operand, placed, stepped=stepped)

    match value:
        case Read(array, region):
            source = placed.get(array)
            if source is None or (is_spread_in_steps(source, region) and not stepped):
                return []
            return [region_placement(source, region)]
        case Scalar() | Fill() | Tally():
            return []
        case Elementwise(_, parts):
            return [found for part in parts for found in of(part)]
        case Copy() | Roll() | Scan() | Flip() | Fourier() | Sort():
            return of(value.operand)
        case Gather():
            return of(value.places)
        case Expand(operand, axis):
            return [_with_axis(found, axis) for found in of(operand)]
        case Transpose(operand, axes):
            return [_picked(found, axes) for found in of(operand)]
        case MatMul(left, right):
            return [_of_product(rows, columns) for rows in of(left) for columns in of(right)]
        case PeriodicPad(operand, axis, before, _):
            return [
                replace(found, origin=_moved(found.origin, axis, -before)) for found in of(operand)
            ]
        case Reduction(operand, axis, _, _):
            if axis is None:
                return []
            return [_without(found, axis) for found in of(operand)]


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
    taken = {axis for own in rows.dims[:-1] for axis in own.axes}
    if set(dim.axes) & taken or columns.mesh != rows.mesh:
        # one rank cannot own by both; the rows decide
        dim = NotDistributed()
    return replace(
        rows,
        template=(*rows.template[:-1], columns.template[1]),
        origin=(*rows.origin[:-1], columns.origin[1]),
        dims=(*rows.dims[:-1], dim),
    )


def _moved(origin: tuple[Expr, ...], axis: int, by: Expr) -> tuple[Expr, ...]:
    return tuple(at + by if position == axis else at for position, at in enumerate(origin))


def _without(source: Placement, axis: int) -> Placement:
    kept = [d for d in range(len(source.template)) if d != axis]
    return Placement(
        tuple(source.template[d] for d in kept),
        tuple(source.origin[d] for d in kept),
        tuple(source.dims[d] for d in kept),
        source.mesh,
        source.order,
    )
