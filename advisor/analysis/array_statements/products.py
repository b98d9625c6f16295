"""The calls of a matrix product: the library computes one of an array with itself by half."""

from __future__ import annotations

from advisor.analysis.array_statements.calls import dense
from advisor.analysis.placed.operands import Operand
from advisor.analysis.placed.placement import pitches_bytes
from advisor.dtypes import itemsize_of
from costdb.expr import Expr
from costdb.work import ArrayCall, ArrayOperation, Region, Visit

_OF_LIBRARY = ("float32", "float64", "complex64", "complex128")


def is_of_itself(left: Operand, right: Operand) -> bool:
    """Return whether a product is that of an array, which every rank has, and its transpose."""
    if left.name is None or left.name != right.name or left.region != right.region:
        return False
    if left.view is None or right.view is None or left.view != right.view[::-1]:
        return False
    spread = any(left.placement.is_spread(axis) for axis in range(len(left.array.extents)))
    return len(left.view) == 2 and not spread and left.array.dtype in _OF_LIBRARY


def product_calls(
    dtype: str, shape: tuple[Expr, Expr], depth: Expr, factors: tuple[Visit, ...]
) -> tuple[ArrayCall, ...]:
    """Return the call of a product with so many rows and columns, over so many terms each."""
    result = Visit(dense(shape, dtype))
    elements = shape[0] * shape[1]
    return (
        ArrayCall(
            ArrayOperation.MATMUL, dtype, elements, result, factors, fresh=True, length=depth
        ),
    )


def half_product_calls(
    dtype: str, rows: Expr, depth: Expr, factors: tuple[Visit, ...]
) -> tuple[ArrayCall, ...]:
    """Return the calls of a symmetric product: one half is computed, the other copied from it.

    NumPy sees by address and strides that one factor is the other one transposed.
    """
    (computed,) = product_calls(dtype, (rows, rows), depth / 2, factors)
    item, half = itemsize_of(dtype), rows / 2
    down, across = pitches_bytes((rows, rows), "C", item)
    copied = ArrayCall(
        ArrayOperation.TRANSPOSE,
        dtype,
        rows * half,
        Visit(Region(item, (half, rows), (down, across))),
        (Visit(Region(item, (half, rows), (across, down))),),
    )
    return computed, copied
