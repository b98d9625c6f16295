"""Arithmetic on arrays: shapes and element types of results, and the work as a step."""

from __future__ import annotations

from collections.abc import Sequence as Many
from fractions import Fraction
from functools import reduce

from advisor import numpy_shapes
from advisor.dtypes import UnknownDtype, dtype_of
from advisor.frontend.expressions.operations import OF_SYNTAX
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import Array, Number, Opaque, Value
from advisor.ir.spmd.memory import Order, Origin, View
from advisor.ir.spmd.steps import Compute
from advisor.numpy_shapes import Shape, count_of
from advisor.numpy_table import (
    PYTHON_COMPLEX,
    PYTHON_FLOAT,
    PYTHON_INTEGER,
    ROWS,
    UNKNOWN_DTYPE,
    promote,
    result_dtype,
    strong,
)
from advisor.source import Span
from costdb.expr import Expr, ExprError, ceil, floor, log2, num

HALF = Fraction(1, 2)


def elementwise(
    operands: Many[Value], run: Run, span: Span, operation: str, target: View | None = None
) -> Array:
    """Return the array that an elementwise operation makes, and note its work."""
    views = [value.view for value in operands if isinstance(value, Array)]
    unsure = any(isinstance(value, Opaque) for value in operands)
    if target is not None:
        # in place: operands are broadcast to what is there
        shape = target.shape
    else:
        shape = None if unsure else broadcast([view.shape for view in views])
    operation = OF_SYNTAX.get(operation, operation)
    dtype = joined_dtype(operands, operation)
    if target is None:
        order = views[0].order if len({v.order for v in views}) == 1 else Order.C
        target = run.fresh(
            run.text_of(span), dtype, shape, Origin.COMPUTED, span, order, sources=tuple(views)
        )
    if operation == "power" and len(operands) == 2:
        operation = power_of(operands[1], run)
    run.emit(Compute(target, tuple(views), size_of(shape), "elementwise", span, operation))
    return Array(target)


def power_of(exponent: Value, run: Run) -> str:
    """Return the function that NumPy computes a power by."""
    number = run.number(exponent) if isinstance(exponent, Number) else None
    known = {num(2): "square", num(1): "positive", num(-1): "reciprocal", num(HALF): "sqrt"}
    return "power" if number is None else known.get(number, "power")


def product(left: Value, right: Value, run: Run, span: Span) -> Value:
    """Return the result of a matrix product, of vectors a number."""
    if not isinstance(left, Array) or not isinstance(right, Array):
        return Opaque("a product of something that is not known to be an array")
    one, other = left.view.shape, right.view.shape
    dtype = joined_dtype((left, right), "multiply")
    views = (left.view, right.view)
    shape = None if one is None or other is None else numpy_shapes.product(one, other)
    if shape is None or one is None:
        view = run.fresh(run.text_of(span), dtype, None, Origin.COMPUTED, span, sources=views)
        run.emit(Compute(view, views, None, "product", span))
        return Array(view)
    operations = 2 * one[-1] * count_of(shape)
    if not shape:
        run.emit(Compute(None, views, operations, "product", span, length=one[-1]))
        return Number(None, dtype or "float64", varies=True)
    view = run.fresh(run.text_of(span), dtype, shape, Origin.COMPUTED, span, sources=views)
    run.emit(Compute(view, views, operations, "product", span, length=one[-1]))
    return Array(view)


def broadcast(shapes: Many[Shape | None]) -> Shape | None:
    """Return the common shape of operands; None where one is not known."""
    known = [shape for shape in shapes if shape is not None]
    return numpy_shapes.broadcast(known, sure=False) if len(known) == len(shapes) else None


def size_of(shape: Shape | None) -> Expr | None:
    """Return the number of elements of a shape."""
    return None if shape is None else count_of(shape)


def joined_dtype(operands: Many[Value], operation: str) -> str | None:
    """Return the element type of a result; None where an operand's is not known."""
    found: list[str] = []
    for value in operands:
        dtype = ""
        if isinstance(value, Array):
            dtype = value.view.dtype or ""
        elif isinstance(value, Number):
            dtype = WEAK.get(value.dtype, value.dtype)
        try:
            found.append(dtype if dtype in WEAK.values() else dtype_of(dtype).name)
        except UnknownDtype:
            found.append(UNKNOWN_DTYPE)
    # what has no row moves elements and leaves their type
    known = operation in ROWS
    joined = result_dtype(operation, found) if known else reduce(promote, found)
    return None if joined is None or joined == UNKNOWN_DTYPE else strong(joined)


WEAK = {"int": PYTHON_INTEGER, "float": PYTHON_FLOAT, "complex": PYTHON_COMPLEX}


def of_numbers(name: str, values: Many[Value], run: Run) -> Number:
    """Return the result of an operation on numbers."""
    first = run.number(values[0])
    varies = any(isinstance(v, Number) and v.varies for v in values)
    if first is not None and name in ("floor", "ceil", "sqrt", "square", "log2"):
        return number_function(name, first)
    return Number(None, "float", varies=varies or run.symbols.varies(first))


def number_function(name: str, value: Expr) -> Number:
    """Return a rounding or a root of a number."""
    try:
        match name:
            case "floor":
                return Number(floor(value), "float")
            case "ceil":
                return Number(ceil(value), "float")
            case "sqrt":
                return Number(value ** num(Fraction(1, 2)), "float")
            case "square":
                return Number(value**2, "float")
            case "log2":
                return Number(log2(value), "float")
    except ExprError:
        pass
    return Number(None, "float")
