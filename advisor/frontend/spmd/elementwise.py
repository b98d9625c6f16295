"""Arithmetic on arrays: shapes and element types of results, and the work as a step."""

from __future__ import annotations

from collections.abc import Sequence as Many
from fractions import Fraction

from advisor.dtypes import Kind, UnknownDtype, dtype_of
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import Array, Number, Opaque, Value
from advisor.ir.shapes import promote
from advisor.ir.spmd.memory import Order, Origin, View
from advisor.ir.spmd.steps import Compute
from advisor.source import Span
from costdb.expr import Expr, num

_COMPARING = frozenset(
    {"Equal", "NotEqual", "LessThan", "LessThanEqual", "GreaterThan", "GreaterThanEqual"}
)
_NUMPY_NAMES = {
    "FloorDivide": "floor_divide",
    "Modulo": "remainder",
    "mod": "remainder",
    "fmod": "remainder",
    "fabs": "absolute",
    "angle": "arctan2",
    "Minus": "negative",
    "NotEqual": "not_equal",
    "LessThan": "less",
    "LessThanEqual": "less_equal",
    "GreaterThan": "greater",
    "GreaterThanEqual": "greater_equal",
}
"""LibCST's names of operators whose lower case is not NumPy's."""

HALF = Fraction(1, 2)
Shape = tuple[Expr, ...]


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
    dtype = "bool" if operation in _COMPARING else joined_dtype(operands, operation)
    if target is None:
        order = views[0].order if len({v.order for v in views}) == 1 else Order.C
        target = run.fresh(
            run.text_of(span), dtype, shape, Origin.COMPUTED, span, order, sources=tuple(views)
        )
    name = _NUMPY_NAMES.get(operation, operation.lower())
    if name == "power" and len(operands) == 2:
        name = power_of(operands[1], run)
    run.emit(Compute(target, tuple(views), size_of(shape), "elementwise", span, name))
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
    dtype = joined_dtype((left, right), "Multiply")
    views = (left.view, right.view)
    if one is None or other is None or not one or not other or max(len(one), len(other)) > 2:
        view = run.fresh(run.text_of(span), dtype, None, Origin.COMPUTED, span, sources=views)
        run.emit(Compute(view, views, None, "product", span))
        return Array(view)
    operations = num(2) * one[-1]
    shape: Shape = one[:-1] + other[1:] if len(other) == 2 else one[:-1]
    for extent in shape:
        operations = operations * extent
    if not shape:
        run.emit(Compute(None, views, operations, "product", span, length=one[-1]))
        return Number(None, dtype or "float64", varies=True)
    view = run.fresh(run.text_of(span), dtype, shape, Origin.COMPUTED, span, sources=views)
    run.emit(Compute(view, views, operations, "product", span, length=one[-1]))
    return Array(view)


def broadcast(shapes: Many[Shape | None]) -> Shape | None:
    """Return the common shape of operands; None where one is not known."""
    known = [shape for shape in shapes if shape is not None]
    if len(known) != len(shapes):
        return None
    rank = max((len(shape) for shape in known), default=0)
    found: list[Expr] = []
    for axis in range(-rank, 0):
        extents = [shape[axis] for shape in known if len(shape) >= -axis]
        longer = [extent for extent in extents if extent != num(1)]
        found.append(longer[0] if longer else num(1))
    return tuple(found)


def size_of(shape: Shape | None) -> Expr | None:
    """Return the number of elements of a shape."""
    if shape is None:
        return None
    total = num(1)
    for extent in shape:
        total = total * extent
    return total


def joined_dtype(operands: Many[Value], operation: str) -> str | None:
    """Return the element type of a result; None where an operand's is not known."""
    found: str | None = None
    numbers: list[str] = []
    for value in operands:
        if isinstance(value, Array):
            if value.view.dtype is None:
                return None
            found = value.view.dtype if found is None else _wider(found, value.view.dtype)
        elif isinstance(value, Number):
            numbers.append(value.dtype)
        else:
            return None
    if found is None:
        return None
    for dtype in numbers:
        found = _with_number(found, dtype)
    if operation == "Divide" and _kind(found) in (Kind.INTEGER, Kind.BOOLEAN):
        return "float64"
    return found


def _kind(name: str) -> Kind | None:
    try:
        return dtype_of(name).kind
    except UnknownDtype:
        return None


def _wider(one: str, other: str) -> str:
    try:
        return promote(dtype_of(one).name, dtype_of(other).name)
    except UnknownDtype:
        return one


def _with_number(array: str, number: str) -> str:
    kind = _kind(array)
    if number == "complex":
        if kind is Kind.COMPLEX:
            return array
        return "complex64" if array == "float32" else "complex128"
    if number == "float" and kind in (Kind.INTEGER, Kind.BOOLEAN):
        return "float64"
    if number == "int" and kind is Kind.BOOLEAN:
        return "int64"
    if number in ("bool", "int", "float"):
        return array
    return _wider(array, number)
