"""Element type and shape of a value, by NumPy's rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from advisor.dtypes import Kind, itemsize_of, kind_of
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
    Range,
    Read,
    Reduction,
    Roll,
    Scalar,
    Scan,
    Sort,
    Subscript,
    Transpose,
    Value,
)
from costdb.expr import Expr, num, to_text

COMPARISONS = frozenset({"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"})
PYTHON_INTEGER = "integer literal"
PYTHON_FLOAT = "float literal"
UNKNOWN_DTYPE = "unknown"
ZERO = num(0)
ONE = num(1)


@dataclass(frozen=True, slots=True)
class ArrayType:
    """Element type and extents; a scalar has no extents."""

    dtype: str
    extents: tuple[Expr, ...]


class ShapeConflict(ValueError):
    """Operands whose shapes do not broadcast, as far as symbols tell."""


def region_extents(region: tuple[Subscript, ...]) -> tuple[Expr, ...]:
    """Return the shape of a region: points drop their dimension."""
    return tuple(part.high - part.low for part in region if isinstance(part, Range))


def promote(left: str, right: str) -> str:
    """Return the element type of an operation on two; ``"unknown"`` where one is."""
    if left == right:
        return left
    if UNKNOWN_DTYPE in (left, right):
        return UNKNOWN_DTYPE
    for one, other in ((left, right), (right, left)):
        if one == PYTHON_INTEGER:
            return "int64" if other == PYTHON_FLOAT or kind_of(other) is Kind.BOOLEAN else other
        if one == PYTHON_FLOAT:
            return other if kind_of(other) in (Kind.FLOATING, Kind.COMPLEX) else "float64"
    ranks = {Kind.BOOLEAN: 0, Kind.INTEGER: 1, Kind.FLOATING: 2, Kind.COMPLEX: 3}
    low, high = sorted((left, right), key=lambda name: (ranks[kind_of(name)], itemsize_of(name)))
    if kind_of(low) is kind_of(high):
        mixed_signs = low.startswith("uint") != high.startswith("uint")
        if kind_of(low) is Kind.INTEGER and mixed_signs:
            signed = high if low.startswith("uint") else low
            unsigned = low if signed == high else high
            if itemsize_of(signed) > itemsize_of(unsigned):
                return signed
            width = 2 * itemsize_of(unsigned)
            return f"int{8 * width}" if width <= 8 else "float64"
        return high
    if kind_of(low) is Kind.BOOLEAN:
        return high
    needed = itemsize_of(low) * (2 if kind_of(low) is Kind.INTEGER else 1)
    if kind_of(high) is Kind.COMPLEX:
        return "complex128" if needed > 4 else high
    return "float64" if needed > itemsize_of(high) else high


def _broadcast(left: tuple[Expr, ...], right: tuple[Expr, ...]) -> tuple[Expr, ...]:
    if len(left) < len(right):
        left, right = right, left
    padded = left[: len(left) - len(right)]
    merged = list(padded)
    for one, other in zip(left[len(padded) :], right, strict=True):
        if one == other or other == ONE:
            merged.append(one)
        elif one == ONE:
            merged.append(other)
        else:
            raise ShapeConflict(
                f"extents {to_text(one)} and {to_text(other)} are not known to agree"
            )
    return tuple(merged)


def describe(value: Value, lookup: Callable[[str], ArrayType]) -> ArrayType:
    """Return the element type and shape of a value.

    Parameters
    ----------
    value : Value
    lookup : callable
        Gives the type of a named array.

    Raises
    ------
    ShapeConflict
        Where shapes are not known to broadcast.
    """
    match value:
        case Read(array, region):
            return ArrayType(lookup(array).dtype, region_extents(region))
        case Scalar():
            return ArrayType(value.dtype, ())
        case Fill(_, shape, dtype):
            return ArrayType(dtype, shape)
        case Copy(operand, dtype):
            return ArrayType(dtype, describe(operand, lookup).extents)
        case Elementwise(operation, parts):
            return _describe_elementwise(operation, [describe(part, lookup) for part in parts])
        case Roll() | Flip():
            return describe(value.operand, lookup)
        case PeriodicPad(operand, axis, before, after):
            inner = describe(operand, lookup)
            extents = list(inner.extents)
            extents[axis] = extents[axis] + before + after
            return ArrayType(inner.dtype, tuple(extents))
        case Scan(operand, _, _, dtype):
            return ArrayType(dtype, describe(operand, lookup).extents)
        case Expand(operand, axis):
            inner = describe(operand, lookup)
            extents = list(inner.extents)
            extents.insert(axis, ONE)
            return ArrayType(inner.dtype, tuple(extents))
        case Transpose(operand, axes):
            inner = describe(operand, lookup)
            return ArrayType(inner.dtype, tuple(inner.extents[axis] for axis in axes))
        case MatMul(left, right):
            return _describe_product(describe(left, lookup), describe(right, lookup))
        case Fourier(operand, _, dtype, _):
            return ArrayType(dtype, describe(operand, lookup).extents)
        case Sort():
            return describe(value.operand, lookup)
        case Gather(operand, places):
            return ArrayType(describe(operand, lookup).dtype, describe(places, lookup).extents)
        case Reduction(operand, axis, _, dtype):
            extents = list(describe(operand, lookup).extents)
            if axis is None:
                extents = []
            else:
                del extents[axis]
            return ArrayType(dtype, tuple(extents))


def _describe_product(left: ArrayType, right: ArrayType) -> ArrayType:
    if len(left.extents) != 2 or len(right.extents) != 2:
        raise ShapeConflict("a matrix product of something other than two matrices")
    inner, outer = left.extents[1], right.extents[0]
    if inner != outer:
        raise ShapeConflict(f"a product over {to_text(inner)} and {to_text(outer)} elements")
    dtype = promote(left.dtype, right.dtype)
    return ArrayType(dtype, (left.extents[0], right.extents[1]))


def _describe_elementwise(operation: str, parts: list[ArrayType]) -> ArrayType:
    dtype, extents = parts[0].dtype, parts[0].extents
    for part in parts[1:]:
        dtype = promote(dtype, part.dtype)
        extents = _broadcast(extents, part.extents)
    exact = kind_of_or_none(dtype) in (Kind.INTEGER, Kind.BOOLEAN)
    if operation in COMPARISONS:
        dtype = "bool"
    elif operation == "divide" and dtype == PYTHON_INTEGER:
        dtype = PYTHON_FLOAT
    elif exact and (operation == "divide" or operation in FLOATING_RESULT):
        dtype = "float64"
    return ArrayType(dtype, extents)


FLOATING_RESULT = frozenset({"sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "arctan", "log2"})


def kind_of_or_none(dtype: str) -> Kind | None:
    """Return the kind of a NumPy type name, None for Python literals and unknowns."""
    if dtype in (PYTHON_INTEGER, PYTHON_FLOAT, UNKNOWN_DTYPE):
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
