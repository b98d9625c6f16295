"""Shapes that NumPy's functions give, as rules over symbolic extents.

None stands for a shape that is not known, or that NumPy refuses.
"""

from __future__ import annotations

from collections.abc import Sequence

from costdb.expr import Expr, floor_div, num, to_text

Shape = tuple[Expr, ...]
ONE = num(1)


class ShapeConflict(ValueError):
    """Operands whose shapes do not broadcast, as far as symbols tell."""


def count_of(shape: Shape) -> Expr:
    """Return the number of elements of a shape."""
    total = ONE
    for extent in shape:
        total = total * extent
    return total


def broadcast(shapes: Sequence[Shape], *, sure: bool = True) -> Shape:
    """Return the common shape of operands.

    Raises
    ------
    ShapeConflict
        Where extents are not known to agree; unless `sure`, these are taken to do so.
    """
    rank = max(map(len, shapes), default=0)
    found: list[Expr] = []
    for axis in range(-rank, 0):
        longer = [shape[axis] for shape in shapes if len(shape) >= -axis and shape[axis] != ONE]
        if sure and any(extent != longer[0] for extent in longer):
            one, other = longer[0], next(e for e in longer if e != longer[0])
            raise ShapeConflict(
                f"extents {to_text(one)} and {to_text(other)} are not known to agree"
            )
        found.append(longer[0] if longer else ONE)
    return tuple(found)


def reduced(shape: Shape, axis: int | None) -> Shape:
    """Return the shape of a reduction along an axis, or along all."""
    return () if axis is None else (*shape[:axis], *shape[axis + 1 :])


def expanded(shape: Shape, axis: int, extent: Expr = ONE) -> Shape:
    """Return a shape with a dimension put in."""
    return (*shape[:axis], extent, *shape[axis:])


def resized(shape: Shape, axis: int, extent: Expr) -> Shape:
    """Return a shape with another extent of one dimension."""
    return (*shape[:axis], extent, *shape[axis + 1 :])


def product(left: Shape, right: Shape) -> Shape | None:
    """Return the shape of a product of vectors or matrices."""
    if not 1 <= len(left) <= 2 or not 1 <= len(right) <= 2:
        return None
    return (*left[:-1], *(right[1:] if len(right) == 2 else ()))


def concatenated(shapes: Sequence[Shape], axis: int, times: Expr = ONE) -> Shape | None:
    """Return the shape of arrays one behind the other along an axis, all of them so many times."""
    first = shapes[0]
    if any(len(shape) != len(first) for shape in shapes) or not -len(first) <= axis < len(first):
        return None
    axis %= len(first)
    return resized(first, axis, sum((shape[axis] for shape in shapes), num(0)) * times)


def stacked(shapes: Sequence[Shape], axis: int, times: Expr = ONE) -> Shape | None:
    """Return the shape of arrays beside one another along a new axis, all of them so many times."""
    first, rank = shapes[0], len(shapes[0]) + 1
    if any(len(shape) != len(first) for shape in shapes) or not -rank <= axis < rank:
        return None
    return expanded(first, axis % rank, times * len(shapes))


def joined(name: str, shapes: Sequence[Shape], axis: int, times: Expr = ONE) -> Shape | None:
    """Return the shape that ``concatenate``, ``hstack``, ``stack`` and their like give."""
    rank = len(shapes[0])
    match name:
        case "stack":
            return stacked(shapes, axis, times)
        case "vstack" | "row_stack" | "column_stack" if rank == 1:
            return stacked(shapes, int(name == "column_stack"), times)
        case "hstack" | "column_stack":
            axis = min(rank - 1, 1)
        case "vstack" | "row_stack":
            axis = 0
    return concatenated(shapes, axis, times)


def transformed(name: str, shape: Shape, axis: int) -> Shape:
    """Return the shape of a Fourier transform: one of real numbers keeps half of an axis."""
    if "rfft" not in name:
        return shape
    extent = shape[axis]
    half = 2 * (extent - 1) if name.startswith("irfft") else floor_div(extent, num(2)) + 1
    return resized(shape, axis, half)


def moved(name: str, source: int, target: int, rank: int) -> tuple[int, ...]:
    """Return the axes in the order that ``swapaxes``, ``moveaxis`` or ``rollaxis`` gives them."""
    places = list(range(rank))
    if name == "swapaxes":
        places[source], places[target] = places[target], places[source]
        return tuple(places)
    places.remove(source)
    # rollaxis states before which axis, counted while the moved one is still there
    before = target - 1 if name == "rollaxis" and source < target else target
    places.insert(before, source)
    return tuple(places)
