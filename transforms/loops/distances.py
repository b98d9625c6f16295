"""Squared distances of all pairs by a product of matrices.

The sum of ``(x - y)**2`` over the last axis is ``x @ x + y @ y - 2 * x @ y``. Of all pairs that is
one product, where the differences are an array of three axes. Rows of one array have none with
themselves, where rounding would leave some.
"""

from __future__ import annotations

from advisor.ir.kernel import Kernel, Node
from advisor.ir.shapes import kind_of_or_none
from advisor.ir.values import (
    Elementwise,
    Expand,
    MatMul,
    Reduction,
    Scalar,
    Transpose,
    Value,
    reads,
)
from advisor.numpy_table import PYTHON_INTEGER, Kind
from transforms.kit.kernels import mapped, type_of

CONDITION = (
    "squares are subtracted, so results agree to the rounding of the squares, not of the"
    " distances, and where elements are finite"
)


def squared_or_multiplied(terms: Value) -> tuple[Value, ...]:
    """Return the factors of a product of two values; nothing where there is none."""
    match terms:
        case Elementwise("multiply", sides):
            return sides
        case Elementwise("square", (side,)) | Elementwise("power", (side, Scalar("2"))):
            return (side, side)
    return ()


def by_product(value: Value, kernel: Kernel) -> Value | None:
    """Return squared distances of all pairs of rows by a product; None of anything else."""
    match value:
        case Reduction(terms, axis, "add", dtype, fused=False):
            sides = squared_or_multiplied(terms)
        case _:
            return None
    match sides:
        case (Elementwise("subtract", (one, other)), same) if same == sides[0]:
            pass
        case _:
            return None
    found = type_of(value, kernel)
    rank = len(type_of(terms, kernel).extents)
    rows, columns = _vectors(one, other, kernel) or _vectors(other, one, kernel) or (None, None)
    if rows is None or columns is None or rank != 3 or axis != 2:
        return None
    if not {one.array for one in reads(rows)}.isdisjoint(one.array for one in reads(columns)):
        # of each row with itself no rounding may be left
        return None
    types = {type_of(side, kernel).dtype for side in (rows, columns)}
    if len({type_of(side, kernel).extents[1] for side in (rows, columns)}) > 1:
        return None
    if types != {dtype} or kind_of_or_none(dtype) is not Kind.FLOATING or dtype == "float16":
        return None
    lengths = [
        Reduction(Elementwise("multiply", (one, one)), 1, "add", dtype) for one in (rows, columns)
    ]
    product = MatMul(rows, Transpose(columns, (1, 0)))
    twice = Elementwise("multiply", (Scalar("2", PYTHON_INTEGER), product))
    squares = Elementwise("add", (Expand(lengths[0], 1), lengths[1]))
    made = Elementwise("subtract", (squares, twice))
    # what is rounded may be less than nothing
    made = Elementwise("maximum", (made, Scalar("0", PYTHON_INTEGER)))
    return made if type_of(made, kernel) == found else None


def with_products(node: Node, kernel: Kernel) -> Node:
    """Return statements or values with such distances within them by products."""

    def other(part: object) -> object:
        return (by_product(part, kernel) or part) if isinstance(part, Reduction) else part

    return mapped(node, other)


def _vectors(one: Value, other: Value, kernel: Kernel) -> tuple[Value, Value] | None:
    """Return the rows that the first axis goes through, and those that the second one does."""
    match one:
        case Expand(rows, 1) if len(type_of(rows, kernel).extents) == 2:
            pass
        case _:
            return None
    columns = other.operand if isinstance(other, Expand) and other.axis == 0 else other
    return (rows, columns) if len(type_of(columns, kernel).extents) == 2 else None
