"""Arithmetic on numbers and arrays: shapes and types of results, and the work as a step."""

from __future__ import annotations

from collections.abc import Sequence as Many
from fractions import Fraction
from functools import reduce

from advisor import numpy_shapes
from advisor.dtypes import UnknownDtype, dtype_of
from advisor.frontend.expressions.arguments import OF_SYNTAX
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import (
    Array,
    Comm,
    External,
    NeighbourRank,
    Nothing,
    Number,
    Opaque,
    Sequence,
    Text,
    Value,
)
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
from costdb.expr import (
    Expr,
    ExprError,
    ceil,
    equal,
    floor,
    floor_div,
    less,
    less_equal,
    log2,
    logical_and,
    logical_not,
    logical_or,
    num,
)
from costdb.expr.nodes import Num

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
    joined = result_dtype(operation, tuple(found)) if known else reduce(promote, found)
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


# Operators on abstract values: numbers by the expression language, arrays element by element.


def combine(operator: str, left: Value, right: Value, run: Run, span: Span) -> Value:
    """Return the result of a binary or boolean operator, by LibCST's name of it."""
    if isinstance(left, Array) or isinstance(right, Array):
        if operator == "MatrixMultiply":
            return product(left, right, run, span)
        return elementwise((left, right), run, span, operator)
    if operator == "Or":
        # ``comm or MPI.COMM_WORLD``
        match left, right:
            case (Nothing(), _):
                return right
            case (Comm(), _):
                return left
            case (Opaque(expr=None), Comm()):
                return right
    match left, right:
        case (Number(), Number()):
            return _numbers(operator, left, right, run)
        case (Sequence(), Sequence()) if operator == "Add":
            return _concatenated(left, right)
        case (Sequence(), Number()) if operator == "Multiply":
            return _repeated(left, right, run)
        case (Number(), Sequence()) if operator == "Multiply":
            return _repeated(right, left, run)
        case (Text(), _) if operator in ("Add", "Modulo", "Multiply"):
            return Text(None)
    one, other = _value_of(left, run), _value_of(right, run)
    found = None if one is None or other is None else _arithmetic(operator, one, other)
    varies = _varies(left, run) or _varies(right, run)
    return Opaque("the operands are not known", found, varies=varies)


def _value_of(value: Value, run: Run) -> Expr | None:
    return run.number(value) if isinstance(value, Number | Opaque) else None


def _varies(value: Value, run: Run) -> bool:
    if isinstance(value, Number):
        return value.varies or run.symbols.varies(value.expr)
    return isinstance(value, Opaque) and (value.varies or run.symbols.varies(value.expr))


def _numbers(operator: str, left: Number, right: Number, run: Run) -> Number:
    dtype = _wider(left.dtype, right.dtype)
    if operator == "Divide":
        dtype = "complex" if dtype == "complex" else "float"
    varies = _varies(left, run) or _varies(right, run)
    if operator in ("And", "Or"):
        dtype = "bool"
        if operator == "And" and (left.expr == num(0) or right.expr == num(0)):
            return Number(num(0), "bool")
    found = None
    if left.expr is not None and right.expr is not None:
        found = _arithmetic(operator, left.expr, right.expr)
    return Number(found, dtype, left.nobody or right.nobody, varies and found is None)


def _wider(one: str, other: str) -> str:
    ranks = ("bool", "int", "float", "complex")
    if one in ranks and other in ranks:
        return max(one, other, key=ranks.index)
    return one if other in ranks else other


def _arithmetic(operator: str, left: Expr, right: Expr) -> Expr | None:
    try:
        match operator:
            case "Add":
                return left + right
            case "Subtract":
                return left - right
            case "Multiply":
                return left * right
            case "Divide":
                return left / right
            case "FloorDivide":
                return floor_div(left, right)
            case "Modulo":
                return left % right
            case "Power":
                return left**right if _small(right) or _literal(left, right) else None
            case "And":
                return logical_and(left, right)
            case "Or":
                return logical_or(left, right)
    except (ExprError, ArithmeticError, ValueError, OverflowError):
        return None
    return None


def _small(expr: Expr) -> bool:
    return isinstance(expr, Num) and abs(Fraction(expr.value)) <= 8


def _literal(left: Expr, right: Expr) -> bool:
    """Return whether a power is of two numbers, such as ``2 ** 20``."""
    if not isinstance(left, Num) or not isinstance(right, Num):
        return False
    return abs(Fraction(left.value)) <= 1024 and 0 <= right.value <= 64


def compare(operator: str, left: Value, right: Value, run: Run, span: Span) -> Value:
    """Return the result of a comparison, 1 or 0 as an expression where it can be said."""
    if isinstance(left, Array) or isinstance(right, Array):
        if operator in OF_SYNTAX:
            return elementwise((left, right), run, span, operator)
        return Number(None, "bool", varies=True)
    if isinstance(left, Text) and isinstance(right, Text):
        if left.value is not None and right.value is not None and "Equal" in operator:
            same = left.value == right.value
            return Number(num(int(same == (operator == "Equal"))), "bool")
        return Number(None, "bool")
    if isinstance(left, Nothing) and isinstance(right, Nothing) and operator in ("Is", "Equal"):
        return Number(num(1), "bool")
    if isinstance(left, NeighbourRank | External) or isinstance(right, NeighbourRank | External):
        return Number(None, "bool", varies=True)
    one, other = _value_of(left, run), _value_of(right, run)
    varies = _varies(left, run) or _varies(right, run)
    if one is None or other is None:
        return Number(None, "bool", varies=varies)
    try:
        found = _relation(operator, one, other)
    except ExprError:
        found = None
    return Number(found, "bool", varies=varies)


def _relation(operator: str, one: Expr, other: Expr) -> Expr | None:
    match operator:
        case "Equal" | "Is":
            return equal(one, other)
        case "NotEqual" | "IsNot":
            return logical_not(equal(one, other))
        case "LessThan":
            return less(one, other)
        case "LessThanEqual":
            return less_equal(one, other)
        case "GreaterThan":
            return less(other, one)
        case "GreaterThanEqual":
            return less_equal(other, one)
    return None


def negate(operator: str, operand: Value, run: Run, span: Span) -> Value:
    """Return the result of a unary operator, by LibCST's name of it."""
    if isinstance(operand, Array):
        return elementwise((operand,), run, span, operator)
    value = _value_of(operand, run)
    varies = _varies(operand, run)
    if operator == "Not":
        return Number(None if value is None else logical_not(value), "bool", varies=varies)
    if isinstance(operand, Number):
        if operator == "Plus":
            return operand
        if operator == "Minus" and value is not None:
            return Number(-value, operand.dtype, operand.nobody)
        return Number(None, operand.dtype, varies=varies)
    minus = -value if value is not None and operator == "Minus" else None
    return Opaque("the operand is not known", minus, varies=varies)


def _concatenated(left: Sequence, right: Sequence) -> Sequence:
    if left.items is not None and right.items is not None:
        return Sequence(left.items + right.items, is_list=left.is_list)
    return Sequence(None, left.element or right.element, None, left.is_list)


def _repeated(parts: Sequence, times: Number, run: Run) -> Sequence:
    count = run.integer(times)
    if parts.items is not None and count is not None and 0 <= count * len(parts.items) <= 16:
        return Sequence(parts.items * count, is_list=parts.is_list)
    if parts.items is not None and len(parts.items) == 1:
        return Sequence(None, parts.items[0], times.expr, parts.is_list)
    return Sequence(None, None, None, parts.is_list)
