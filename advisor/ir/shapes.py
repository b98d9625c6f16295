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
    length,
)
from costdb.expr import Expr, num, to_text

COMPARISONS = frozenset({"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"})
TESTS = frozenset(
    {"isnan", "isfinite", "isinf", "logical_not", "logical_and", "logical_or", "logical_xor"}
)
"""Operations besides comparisons whose results are truth values."""
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
    return tuple(length_of(part) for part in region if not isinstance(part, Point))


def length_of(part: Subscript) -> Expr:
    """Return how many indices a subscript selects."""
    return ONE if isinstance(part, Point) else length(part)


def promote(left: str, right: str) -> str:
    """Return the element type of an operation on two; ``"unknown"`` where one is."""
    if left == right:
        return left
    if UNKNOWN_DTYPE in (left, right):
        return UNKNOWN_DTYPE
    for one, other in ((left, right), (right, left)):
        if one == PYTHON_FLOAT:
            floating = kind_of_or_none(other) in (Kind.FLOATING, Kind.COMPLEX)
            weak = other == PYTHON_INTEGER
            return PYTHON_FLOAT if weak else other if floating else "float64"
    for one, other in ((left, right), (right, left)):
        if one == PYTHON_INTEGER:
            return "int64" if kind_of(other) is Kind.BOOLEAN else other
    ranks = {Kind.BOOLEAN: 0, Kind.INTEGER: 1, Kind.FLOATING: 2, Kind.COMPLEX: 3}
    low, high = sorted((left, right), key=lambda name: (ranks[kind_of(name)], itemsize_of(name)))
    if kind_of(low) is kind_of(high):
        return _promoted_integers(low, high) if kind_of(low) is Kind.INTEGER else high
    if kind_of(low) is Kind.BOOLEAN:
        return high
    # the parts of a complex number are half as wide as the whole
    parts = 2 if kind_of(high) is Kind.COMPLEX else 1
    width = max(_exact_width(low), itemsize_of(high) // parts)
    return f"{'complex' if parts == 2 else 'float'}{8 * parts * width}"


def _promoted_integers(low: str, high: str) -> str:
    if low.startswith("uint") == high.startswith("uint"):
        return high
    signed, unsigned = (high, low) if low.startswith("uint") else (low, high)
    if itemsize_of(signed) > itemsize_of(unsigned):
        return signed
    width = 2 * itemsize_of(unsigned)
    return f"int{8 * width}" if width <= 8 else "float64"


def _exact_width(dtype: str) -> int:
    """Return the bytes of the floating-point type that NumPy takes for integers of a type."""
    if kind_of(dtype) is Kind.FLOATING:
        return itemsize_of(dtype)
    return min(2 * itemsize_of(dtype), 8)


def strong(dtype: str) -> str:
    """Return the type of NumPy's number that is made of a Python one; others stay."""
    return {PYTHON_INTEGER: "int64", PYTHON_FLOAT: "float64"}.get(dtype, dtype)


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
        case Tally(_, _, extent, dtype):
            return ArrayType(dtype, (extent,))
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
    extents = parts[0].extents
    for part in parts[1:]:
        extents = _broadcast(extents, part.extents)
    # a condition chooses between operands, it is none of them
    chosen = parts[1:] if operation == "where" else parts
    dtypes = [part.dtype for part in chosen]
    whole = {kind_of_or_none(found) for found in dtypes} <= {Kind.INTEGER, Kind.BOOLEAN}
    if operation in _FLOATING_RESULT and whole:
        # there is no version for whole numbers: each operand becomes a floating-point one
        dtypes = [_result(operation, found) for found in dtypes]
    dtype = dtypes[0]
    for other in dtypes[1:]:
        dtype = promote(dtype, other)
    return ArrayType(_result(operation, dtype), extents)


_FLOATING_RESULT = frozenset(
    {
        *("sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "hypot"),
        *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh", "tanh"),
    }
)
_ROUNDING = frozenset({"floor", "ceil", "rint", "trunc"})
# these have no version for booleans, and use the one for the narrowest integers
_NO_BOOLEANS = frozenset(
    {"floor_divide", "remainder", "power", "square", "left_shift", "right_shift", "conjugate"}
)


def _result(operation: str, dtype: str) -> str:
    """Return the element type of an operation on operands of one type."""
    if operation in COMPARISONS or operation in TESTS:
        return "bool"
    if operation == "where" or operation in _FLOATING_RESULT:
        dtype = strong(dtype)
    kind = kind_of_or_none(dtype)
    if operation in _ROUNDING and kind in (Kind.INTEGER, Kind.BOOLEAN):
        raise ShapeConflict(f"`{operation}` of whole numbers, whose type depends on the release")
    if operation == "divide":
        if dtype == PYTHON_INTEGER:
            return PYTHON_FLOAT
        return "float64" if kind in (Kind.INTEGER, Kind.BOOLEAN) else dtype
    if operation in _FLOATING_RESULT and kind in (Kind.INTEGER, Kind.BOOLEAN):
        return f"float{8 * (2 if kind is Kind.BOOLEAN else _exact_width(dtype))}"
    if operation in _NO_BOOLEANS and kind is Kind.BOOLEAN:
        return "int8"
    if operation == "absolute" and kind is Kind.COMPLEX:
        return f"float{4 * itemsize_of(dtype)}"
    return dtype


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
