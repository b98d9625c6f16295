"""Arithmetic on numbers and arrays: shapes and types of results, and the work as a step."""

from __future__ import annotations

from collections.abc import Sequence as Many
from functools import reduce

from advisor import numpy_table
from advisor.frontend.arguments import OF_SYNTAX
from advisor.frontend.indices import calculated
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
from advisor.numpy_table import (
    POWERS,
    PYTHON_COMPLEX,
    PYTHON_FLOAT,
    PYTHON_INTEGER,
    ROWS,
    UNKNOWN_DTYPE,
    Shape,
    count_of,
    promote,
    result_dtype,
    strong,
)
from advisor.source import Span
from costdb.expr import (
    Expr,
    logical_not,
    num,
    to_text,
)


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
    if operation == "power" and len(operands) == 2 and isinstance(operands[1], Number):
        exponent = run.number(operands[1])
        operation = POWERS.get("" if exponent is None else to_text(exponent), operation)
    run.emit(Compute(target, tuple(views), size_of(shape), "elementwise", span, operation))
    return Array(target)


def product(left: Value, right: Value, run: Run, span: Span) -> Value:
    """Return the result of a matrix product, of vectors a number."""
    if not isinstance(left, Array) or not isinstance(right, Array):
        return Opaque("a product of something that is not known to be an array")
    one, other = left.view.shape, right.view.shape
    dtype = joined_dtype((left, right), "multiply")
    views = (left.view, right.view)
    shape = None if one is None or other is None else numpy_table.product(one, other)
    length = None if one is None or shape is None else one[-1]
    operations = None if length is None or shape is None else 2 * length * count_of(shape)
    if shape == ():
        run.emit(Compute(None, views, operations, "product", span, length=length))
        return Number(None, dtype or "float64", varies=True)
    view = run.fresh(run.text_of(span), dtype, shape, Origin.COMPUTED, span, sources=views)
    run.emit(Compute(view, views, operations, "product", span, length=length))
    return Array(view)


def broadcast(shapes: Many[Shape | None]) -> Shape | None:
    """Return the common shape of operands; None where one is not known."""
    known = [shape for shape in shapes if shape is not None]
    return numpy_table.broadcast(known, sure=False) if len(known) == len(shapes) else None


def size_of(shape: Shape | None) -> Expr | None:
    """Return the number of elements of a shape."""
    return None if shape is None else count_of(shape)


def joined_dtype(operands: Many[Value], operation: str) -> str | None:
    """Return the element type of a result; None where an operand's is not known."""
    found = [UNKNOWN_DTYPE] * len(operands)
    for place, value in enumerate(operands):
        if isinstance(value, Array):
            found[place] = value.view.dtype or UNKNOWN_DTYPE
        elif isinstance(value, Number):
            found[place] = WEAK.get(value.dtype, value.dtype)
    if operation == "where":
        del found[0]  # it chooses between the others
    # what has no row moves elements and leaves their type
    known = operation in ROWS
    joined = result_dtype(operation, tuple(found)) if known else reduce(promote, found)
    return None if joined is None or joined == UNKNOWN_DTYPE else strong(joined)


WEAK = {"int": PYTHON_INTEGER, "float": PYTHON_FLOAT, "complex": PYTHON_COMPLEX}


def of_any(operation: str, operands: Many[Value], run: Run, span: Span) -> Value:
    """Return what a function of elements gives: an array, or a number of numbers."""
    if any(isinstance(one, Array) for one in operands):
        return elementwise(operands, run, span, operation)
    if all(isinstance(one, Number) for one in operands):
        return of_numbers(operation, operands, run)
    return Opaque(f"numpy.{operation} of something that is not followed")


def of_numbers(name: str, values: Many[Value], run: Run) -> Number:
    """Return the result of a function of numbers."""
    found = calculated(name, run.number(values[0]))
    return Number(found, "float", varies=found is None and run.varies(*values))


# Operators on abstract values: numbers by the expression language, arrays element by element.


def combine(operator: str, left: Value, right: Value, run: Run, span: Span) -> Value:
    """Return the result of a binary or boolean operator, by LibCST's name of it."""
    match operator, left, right:
        case ("MatrixMultiply", Array(), _) | ("MatrixMultiply", _, Array()):
            return product(left, right, run, span)
        case (_, Array(), _) | (_, _, Array()):
            return elementwise((left, right), run, span, operator)
        case ("Or", Nothing(), _) | ("Or", Opaque(expr=None), Comm()):
            # ``comm or MPI.COMM_WORLD``
            return right
        case ("Or", Comm(), _):
            return left
        case (_, Number(), Number()):
            return _numbers(operator, left, right, run)
        case ("Add", Sequence(), Sequence()):
            known = left.items is not None and right.items is not None
            items = (*(left.items or ()), *(right.items or ())) if known else None
            element = None if known else left.element or right.element
            return Sequence(items, element, None, left.is_list)
        case ("Multiply", Sequence() as parts, Number() as times) | (
            "Multiply",
            Number() as times,
            Sequence() as parts,
        ):
            return _repeated(parts, times, run)
        case (("Add" | "Modulo" | "Multiply"), Text(), _):
            return Text(None)
    found = calculated(operator, run.number(left), run.number(right))
    varies = run.varies(left, right)
    return Opaque("the operands are not known", found, varies=varies)


def _numbers(operator: str, left: Number, right: Number, run: Run) -> Number:
    if operator == "And" and num(0) in (left.expr, right.expr):
        return Number(num(0), "bool")
    dtype = _wider(left.dtype, right.dtype)
    if operator in ("And", "Or"):
        dtype = "bool"
    elif operator == "Divide":
        dtype = "complex" if dtype == "complex" else "float"
    varies = run.varies(left, right)
    found = calculated(operator, left.expr, right.expr)
    return Number(found, dtype, left.nobody or right.nobody, varies and found is None)


def _wider(one: str, other: str) -> str:
    ranks = ("bool", "int", "float", "complex")
    if one in ranks and other in ranks:
        return max(one, other, key=ranks.index)
    return one if other in ranks else other


def compare(operator: str, left: Value, right: Value, run: Run, span: Span) -> Value:
    """Return the result of a comparison, 1 or 0 as an expression where it can be said."""
    match left, right:
        case (Array(), _) | (_, Array()) if operator in OF_SYNTAX:
            return elementwise((left, right), run, span, operator)
        case (Array() | NeighbourRank() | External(), _) | (
            _,
            Array() | NeighbourRank() | External(),
        ):
            return Number(None, "bool", varies=True)
        case (Text(str() as one), Text(str() as other)) if operator in ("Equal", "NotEqual"):
            return Number(num(int((one == other) == (operator == "Equal"))), "bool")
        case (Nothing(), Nothing()) if operator in ("Is", "Equal"):
            return Number(num(1), "bool")
    varies = run.varies(left, right)
    found = calculated(operator, run.number(left), run.number(right))
    return Number(found, "bool", varies=varies)


def negate(operator: str, operand: Value, run: Run, span: Span) -> Value:
    """Return the result of a unary operator, by LibCST's name of it."""
    if isinstance(operand, Array):
        return elementwise((operand,), run, span, operator)
    value, varies = run.number(operand), run.varies(operand)
    if operator == "Not":
        return Number(None if value is None else logical_not(value), "bool", varies=varies)
    minus = -value if value is not None and operator == "Minus" else None
    match operand:
        case Number() if operator == "Plus":
            return operand
        case Number():
            known = minus is not None
            return Number(minus, operand.dtype, known and operand.nobody, varies and not known)
    return Opaque("the operand is not known", minus, varies=varies)


def _repeated(parts: Sequence, times: Number, run: Run) -> Sequence:
    count, items = run.integer(times), parts.items
    if items is not None and count is not None and 0 <= count * len(items) <= 16:
        return Sequence(items * count, is_list=parts.is_list)
    if items is not None and len(items) == 1:
        return Sequence(None, items[0], times.expr, parts.is_list)
    return Sequence(None, None, None, parts.is_list)
