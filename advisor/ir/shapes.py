"""Element type and shape of a value, by NumPy's rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

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
    Range,
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
    length,
)
from advisor.numpy_table import (
    PYTHON_COMPLEX,
    PYTHON_FLOAT,
    PYTHON_INTEGER,
    UNKNOWN_DTYPE,
    Kind,
    broadcast,
    expanded,
    kind_of,
    promote,
    reduced,
    result_dtype,
)
from advisor.numpy_table import ShapeConflict as ShapeConflict
from costdb.expr import ONE, ZERO, Expr, to_text
from costdb.expr.nodes import Num
from costdb.records import dataclass


@dataclass(frozen=True, slots=True)
class ArrayType:
    """Element type and extents; a scalar has no extents."""

    dtype: str
    extents: tuple[Expr, ...]


def region_extents(region: tuple[Subscript, ...]) -> tuple[Expr, ...]:
    """Return the shape of a region: points drop their dimension."""
    return tuple(length_of(part) for part in region if not isinstance(part, Point))


def length_of(part: Subscript) -> Expr:
    """Return how many indices a subscript selects."""
    return ONE if isinstance(part, Point) else length(part)


Known = dict[int, tuple[Value, ArrayType]]
"""Types of values that were asked for before, by what the values are."""


def describe(
    value: Value, lookup: Callable[[str], ArrayType], known: Known | None = None
) -> ArrayType:
    """Return the element type and shape of a value; of parts that it shares, once.

    Parameters
    ----------
    value : Value
    lookup : callable
        Gives the type of a named array.
    known : Known, optional
        What was found with the same `lookup`.

    Raises
    ------
    ShapeConflict
        Where shapes are not known to broadcast.
    """
    kept: Known = {} if known is None else known

    def of(part: Value) -> ArrayType:
        found = kept.get(id(part))
        if found is None:
            found = kept[id(part)] = part, _described(part, lookup, of)
        return found[1]

    return of(value)


def _described(
    value: Value, lookup: Callable[[str], ArrayType], of: Callable[[Value], ArrayType]
) -> ArrayType:
    match value:
        case Read(array, region):
            return ArrayType(lookup(array).dtype, region_extents(region))
        case Scalar():
            return ArrayType(value.dtype, ())
        case Fill(_, shape, dtype):
            return ArrayType(dtype, shape)
        case Elementwise(operation, parts):
            return _describe_elementwise(operation, [of(part) for part in parts])
        case Roll() | Flip() | Sort():
            return of(value.operand)
        case Copy() | Scan() | Fourier():
            return ArrayType(value.dtype, of(value.operand).extents)
        case PeriodicPad(operand, axis, before, after):
            inner = of(operand)
            extents = list(inner.extents)
            extents[axis] = extents[axis] + before + after
            return ArrayType(inner.dtype, tuple(extents))
        case Windows(operand, axis, length_):
            inner = of(operand)
            extents = list(inner.extents)
            extents[axis] = extents[axis] - length_ + 1
            return ArrayType(inner.dtype, (*extents, length_))
        case Along():
            return of(value.computed)
        case Expand(operand, axis):
            inner = of(operand)
            return ArrayType(inner.dtype, expanded(inner.extents, axis))
        case Transpose(operand, axes):
            inner = of(operand)
            return ArrayType(inner.dtype, tuple(inner.extents[axis] for axis in axes))
        case MatMul(left, right):
            return _describe_product(of(left), of(right))
        case Gather(operand):
            table = of(operand)
            places = [of(one).extents for one in value.all_places]
            return ArrayType(table.dtype, (*broadcast(places), *table.extents[len(places) :]))
        case Chosen(operand, mask, count):
            inner, chooses = of(operand), of(mask).extents
            return ArrayType(inner.dtype, (count, *inner.extents[len(chooses) :]))
        case Called(_, _, shape, dtype):
            return ArrayType(dtype, shape)
        case Part(operand, region):
            return ArrayType(of(operand).dtype, region_extents(region))
        case Tally(_, _, extent, dtype):
            return ArrayType(dtype, (extent,))
        case Reduction(operand, axis, _, dtype):
            return ArrayType(dtype, reduced(of(operand).extents, axis))


Made = TypeVar("Made")


def agreed(attempt: Callable[[Mapping[Expr, Expr]], Made]) -> Made:
    """Return what an attempt gives once extents that are not known to agree are taken to do so.

    A program that runs has operands that fit. The attempt is given what stands for extents.

    Raises
    ------
    ShapeConflict
        About anything but extents.
    """
    alike: dict[Expr, Expr] = {}
    while True:
        try:
            return attempt(alike)
        except ShapeConflict as conflict:
            if not conflict.extents:
                raise
            kept, other = conflict.extents
            if isinstance(other, Num):
                # a number may be the extent of several axes
                kept, other = other, kept
            if other in alike:
                raise
            alike = {one: kept if now == other else now for one, now in alike.items()}
            alike[other] = kept


def _describe_product(left: ArrayType, right: ArrayType) -> ArrayType:
    if len(left.extents) < 2 or len(right.extents) < 2:
        raise ShapeConflict("a matrix product of something other than two matrices")
    inner, outer = left.extents[-1], right.extents[-2]
    if inner != outer:
        text = f"a product over {to_text(inner)} and {to_text(outer)} elements"
        raise ShapeConflict(text, inner, outer)
    dtype = promote(left.dtype, right.dtype)
    stacks = broadcast([left.extents[:-2], right.extents[:-2]])
    return ArrayType(dtype, (*stacks, left.extents[-2], right.extents[-1]))


def _describe_elementwise(operation: str, parts: list[ArrayType]) -> ArrayType:
    extents = broadcast([part.extents for part in parts])
    # a condition chooses between operands, it is none of them
    chosen = parts[1:] if operation == "where" else parts
    dtype = result_dtype(operation, tuple([part.dtype for part in chosen]))
    if dtype is None:
        raise ShapeConflict(f"`{operation}` of element types that NumPy or its releases differ on")
    return ArrayType(dtype, extents)


def kind_of_or_none(dtype: str) -> Kind | None:
    """Return the kind of a NumPy type name, None for Python literals and unknowns."""
    if dtype in (PYTHON_INTEGER, PYTHON_FLOAT, PYTHON_COMPLEX, UNKNOWN_DTYPE):
        return None
    return kind_of(dtype)


def is_whole(region: tuple[Subscript, ...], extents: tuple[Expr, ...]) -> bool:
    """Return whether a region is the whole array."""
    return len(region) == len(extents) and all(
        isinstance(part, Range) and part.low == ZERO and part.high == extent
        for part, extent in zip(region, extents, strict=True)
    )


def whole(extents: tuple[Expr, ...]) -> tuple[Subscript, ...]:
    """Return the region that is the whole array."""
    return tuple(Range(ZERO, extent) for extent in extents)
