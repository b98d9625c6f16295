"""Where the elements of arrays and values are computed, and where operands lie beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from advisor.analysis.placement import (
    Facts,
    Placement,
    declared_placement,
    in_steps,
    is_spread_in_steps,
    local_extents,
    low_of,
    pitches_bytes,
    region_placement,
)
from advisor.distribution import MeshSpec, NotDistributed
from advisor.ir.dependence import slope_of
from advisor.ir.kernel import Kernel
from advisor.ir.shapes import ArrayType, length_of
from advisor.ir.statements import Bind, Statement, Store, walk
from advisor.ir.values import (
    Along,
    Called,
    Chosen,
    Copy,
    Elementwise,
    Expand,
    Fill,
    Flip,
    Fourier,
    Gather,
    MatMul,
    Part,
    PeriodicPad,
    Point,
    Read,
    Reduction,
    Roll,
    Scalar,
    Scan,
    Sort,
    Subscript,
    Tally,
    Transpose,
    Value,
    Windows,
    bounds_in,
)
from advisor.numpy_table import itemsize_of, strong
from costdb.expr import ONE, ZERO, Expr, maximum
from costdb.expr.nodes import Num
from costdb.records import dataclass, replace
from costdb.work import Region

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
            if found is None or len(found.template) != len(kernel.extents(bind.name)):
                # what has all of its axes is not placed yet, or nothing
                left.append(bind)
            else:
                placed[bind.name] = found
        if len(left) == len(pending):
            # an array of constants has no operands to follow
            guess = _guessed(left, statements, kernel, placed)
            if guess is None and all(map(is_local, placed.values())):
                # where nothing is distributed, neither is what the kernel makes
                guess = {bind.name: local(kernel.extents(bind.name)) for bind in left}
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


def is_local(placement: Placement) -> bool:
    """Tell whether every rank has all of an array."""
    return all(isinstance(axis, NotDistributed) for axis in placement.dims)


def local(extents: tuple[Expr, ...]) -> Placement:
    """Return the placement of an array that every rank has whole."""
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
        case Scalar() | Fill() | Tally() | Called():
            return []
        case Chosen(operand, mask, count):
            shown = [len(mask.shape)] if isinstance(mask, Fill | Called) else []
            masks = shown or [len(found.template) for found in of(mask)]
            return [
                local((count, *found.template[masks[0] :]))
                for found in of(operand)
                if masks and is_local(found)
            ]
        case Elementwise(_, parts):
            return [found for part in parts for found in of(part)]
        case Copy() | Roll() | Scan() | Flip() | Fourier() | Sort():
            return of(value.operand)
        case Gather(operand):
            rest = [found.template[len(value.all_places) :] for found in of(operand)]
            places = [found for one in value.all_places for found in of(one)]
            if not any(rest):
                return places
            return [
                local((*found.template, *axes))
                for found in places
                for axes in rest
                if is_local(found)
            ]
        case Part(operand, region):
            # a row says nothing of the other axes
            return [
                region_placement(f, region) for f in of(operand) if len(f.template) == len(region)
            ]
        case Along():
            return of(value.computed)
        case Windows(operand, axis, length):
            alone = [found for found in of(operand) if not found.is_spread(axis)]
            last = [_with_axis(found, len(found.template)) for found in alone]
            return [replace(one, template=_windowed(one.template, axis, length)) for one in last]
        case Expand(operand, axis):
            return [_with_axis(found, axis) for found in of(operand)]
        case Transpose(operand, axes):
            # one that is stretched along an axis says nothing of that
            return [picked(f, axes) for f in of(operand) if len(f.template) == len(axes)]
        case MatMul(left, right):
            # what is stretched over either axis says nothing of that
            owners = [found for found in of(right) if len(found.template) > 1]
            return [_of_product(rows, columns) for rows in of(left) for columns in owners]
        case PeriodicPad(operand, axis, before, _):
            return [
                replace(found, origin=_moved(found.origin, axis, -before)) for found in of(operand)
            ]
        case Reduction(operand, axis, _, _):
            if axis is None:
                return []
            return [
                picked(found, tuple(d for d in range(len(found.template)) if d != axis))
                for found in of(operand)
            ]


def _windowed(extents: tuple[Expr, ...], axis: int, length: Expr) -> tuple[Expr, ...]:
    """Return the extents of windows, of which each is as long as that."""
    return (*extents[:axis], extents[axis] - length + 1, *extents[axis + 1 : -1], length)


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


def picked(source: Placement, axes: Sequence[int]) -> Placement:
    """Return a placement with some of its dimensions, in another order."""
    return replace(
        source,
        template=tuple(source.template[axis] for axis in axes),
        origin=tuple(source.origin[axis] for axis in axes),
        dims=tuple(source.dims[axis] for axis in axes),
    )


def _of_product(rows: Placement, columns: Placement) -> Placement:
    """Return where a product lives: with the rows of the one and the columns of the other."""
    dim = columns.dims[-1]
    taken = {axis for own in rows.dims[:-1] for axis in own.axes}
    if set(dim.axes) & taken or columns.mesh != rows.mesh:
        # one rank cannot own by both; the rows decide
        dim = NotDistributed()
    return replace(
        rows,
        template=(*rows.template[:-1], columns.template[-1]),
        origin=(*rows.origin[:-1], columns.origin[-1]),
        dims=(*rows.dims[:-1], dim),
    )


def _moved(origin: tuple[Expr, ...], axis: int, by: Expr) -> tuple[Expr, ...]:
    return tuple(at + by if position == axis else at for position, at in enumerate(origin))


# Operands of array statements: which dimensions go together, and the memory that they lie in.


@dataclass(frozen=True, slots=True)
class Operand:
    """A region of an array that a statement reads.

    Attributes
    ----------
    name : str or None
        None for an array that has no name.
    array : ArrayType
        The array behind the region.
    placement : Placement
        Of that array.
    region : tuple of Subscript
    view : tuple of (int or None), optional
        Dimensions of the array in the order in which the operand shows them, None for new ones;
        by default those that `region` keeps, as they are.
    part : Region, optional
        Where one rank's elements lie, if `array` is but the type of a part of a larger one.
    """

    name: str | None
    array: ArrayType
    placement: Placement
    region: tuple[Subscript, ...]
    view: tuple[int | None, ...] | None = None
    part: Region | None = None


Pairs = list[tuple[int, int | None]]


def pairs_of(operand: Operand, region: tuple[Subscript, ...]) -> Pairs:
    """Return, for each dimension of an operand, the dimension of the target it goes with.

    Where both single out indices of the same dimensions, those go together; otherwise the
    dimensions that are left go together from the last one backwards, as NumPy broadcasts.
    """
    view, points = operand.view, [isinstance(one, Point) for one in operand.region]
    if view is None and points == [isinstance(other, Point) for other in region]:
        return [(dimension, dimension) for dimension in range(len(points))]
    kept = view if view is not None else [own for own, point in enumerate(points) if not point]
    targets = [dimension for dimension, one in enumerate(region) if not isinstance(one, Point)]
    shown = zip(reversed(kept), reversed(targets), strict=False)
    going = {own: target for own, target in shown if own is not None}
    return [(own, going.get(own)) for own in range(len(points))]


def stretched(operand: Operand, region: tuple[Subscript, ...]) -> Operand:
    """Return an operand whose ranges of one index that meet longer ones are single indices.

    ``x[k:k + 1, :]`` beside whole columns is repeated along them, as ``x[k, :]`` is.
    """
    alone = {
        own
        for own, target in pairs_of(operand, region)
        if target is not None
        and not isinstance(operand.region[own], Point)
        and length_of(operand.region[own]) == ONE
        and length_of(region[target]) != ONE
    }
    if not alone:
        return operand
    kept = [own for own, one in enumerate(operand.region) if not isinstance(one, Point)]
    shown = operand.view if operand.view is not None else tuple(kept)
    return replace(
        operand,
        region=tuple(
            Point(low_of(one)) if own in alone else one for own, one in enumerate(operand.region)
        ),
        view=tuple(None if own in alone else own for own in shown),
    )


def called(operand: Operand) -> str:
    """Return how a message names an operand."""
    return "an intermediate array" if operand.name is None else f"`{operand.name}`"


def local_region(
    found: ArrayType, placement: Placement, counts: tuple[Expr, ...], facts: Facts
) -> Region:
    """Return so many neighbours along each dimension of one rank's part of an array."""
    itemsize = itemsize_of(strong(found.dtype))
    extents = local_extents(placement, found.extents, facts)
    return Region(itemsize, counts, pitches_bytes(extents, placement.order, itemsize))


def held(operand: Operand, facts: Facts) -> Region:
    """Return where all that one rank has of an operand's array lies."""
    if operand.part is not None:
        return operand.part
    counts = local_extents(operand.placement, operand.array.extents, facts)
    return local_region(operand.array, operand.placement, counts, facts)


def selected(
    found: ArrayType,
    placement: Placement,
    region: tuple[Subscript, ...],
    counts: tuple[Expr, ...],
    facts: Facts,
) -> Region:
    """Return what one rank has of a region of an array, `counts` of its indices."""
    memory = local_region(found, placement, counts, facts)
    return Region(memory.itemsize_bytes, counts, in_steps(memory.pitches_bytes, region))


def without_points(memory: Region, region: tuple[Subscript, ...]) -> Region:
    """Return memory without the dimensions along which a region is a single index."""
    kept = [d for d, part in enumerate(region) if not isinstance(part, Point)]
    return Region(
        memory.itemsize_bytes,
        tuple(memory.counts[d] for d in kept),
        tuple(memory.pitches_bytes[d] for d in kept),
    )


# How far what is walked moves with the loop around it.


def traversed(
    operand: Operand, region: tuple[Subscript, ...], counts: tuple[Expr, ...], facts: Facts
) -> Region:
    """Return the memory that an operand's elements are loaded from, one for each computed."""
    itemsize = itemsize_of(operand.array.dtype)
    extents = local_extents(operand.placement, operand.array.extents, facts)
    dense = pitches_bytes(extents, operand.placement.order, itemsize)
    if operand.part is not None:
        dense = operand.part.pitches_bytes
    pitches = in_steps(dense, operand.region)
    steps = [ZERO] * len(region)
    for own, target in pairs_of(operand, region):
        part = operand.region[own]
        if target is not None and not isinstance(part, Point) and length_of(part) != ONE:
            steps[target] = pitches[own]
    return Region(itemsize, counts, tuple(steps))


def advance(
    name: str,
    found: ArrayType,
    placement: Placement,
    region: tuple[Subscript, ...],
    others: list[tuple[str, tuple[Subscript, ...]]],
    facts: Facts,
) -> Expr | None:
    """Return how far a region of a named array moves with the innermost loop around.

    One that follows another of `others` at the same pace finds what that one brought.
    """
    index = next(reversed(tuple(facts.maxima)), None)
    if index is None:
        return None
    extents = local_extents(placement, found.extents, facts)
    pitches = pitches_bytes(extents, placement.order, itemsize_of(found.dtype))
    pace = _shift_of(region, pitches, index)
    if pace is None or pace == ZERO:
        return None
    for other, its in others:
        if other == name and its != region and _shift_of(its, pitches, index) == pace:
            ahead = ZERO
            for one, own, pitch in zip(its, region, pitches, strict=True):
                ahead = ahead + (low_of(one) - low_of(own)) * pitch
            if facts.non_negative(ahead * pace):
                return ZERO
    return length_of_step(pace, facts)


def length_of_step(pace: Expr, facts: Facts) -> Expr:
    """Return how far a step goes, up or down in memory: what loops that run backwards move by."""
    if facts.non_negative(pace):
        return pace
    return -pace if facts.non_negative(-pace) else maximum(pace, -pace)


def _shift_of(region: tuple[Subscript, ...], pitches: tuple[Expr, ...], index: str) -> Expr | None:
    """Return how far a region moves at each step of an index, None where it changes its shape."""
    total = ZERO
    for part, pitch in zip(region, pitches, strict=True):
        slopes = {slope_of(end, index) for end in bounds_in(part)}
        if len(slopes) > 1 or None in slopes:
            return None
        total = total + (slopes.pop() or 0) * pitch
    return total
