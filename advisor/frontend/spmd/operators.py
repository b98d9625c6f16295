"""Operators on abstract values: numbers by the expression language, arrays as NumPy has it."""

from __future__ import annotations

from advisor.frontend.arguments import OF_SYNTAX
from advisor.frontend.indices import calculated
from advisor.frontend.spmd.door import WEAK, operation
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
from advisor.numpy_table import promote, result_dtype
from advisor.source import Span
from costdb.expr import logical_not, num

_OF_PYTHON = ("bool", "int", "float", "complex")
_OF_ARRAYS = {**OF_SYNTAX, "MatrixMultiply": "matmul"}


def combine(operator: str, left: Value, right: Value, run: Run, span: Span) -> Value:
    """Return the result of a binary or boolean operator, by LibCST's name of it."""
    match operator, left, right:
        case (_, Array(), _) | (_, _, Array()):
            if operator in _OF_ARRAYS:
                return operation(_OF_ARRAYS[operator], (left, right), run, span)
            return Opaque("one of two things, by the truth of an array", varies=True)
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
    elif operator == "Divide" and dtype in _OF_PYTHON:
        dtype = "complex" if dtype == "complex" else "float"
    elif operator == "Divide":
        dtype = result_dtype("divide", (dtype,)) or dtype
    varies = run.varies(left, right)
    found = calculated(operator, left.expr, right.expr)
    return Number(found, dtype, left.nobody or right.nobody, varies and found is None)


def _wider(one: str, other: str) -> str:
    if one in _OF_PYTHON and other in _OF_PYTHON:
        return max(one, other, key=_OF_PYTHON.index)
    return promote(WEAK.get(one, one), WEAK.get(other, other))


def compare(operator: str, left: Value, right: Value, run: Run, span: Span) -> Value:
    """Return the result of a comparison, 1 or 0 as an expression where it can be said."""
    match left, right:
        case (Array(), _) | (_, Array()) if operator in OF_SYNTAX:
            return operation(OF_SYNTAX[operator], (left, right), run, span)
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
        if operator in _OF_ARRAYS:
            return operation(_OF_ARRAYS[operator], (operand,), run, span)
        return Number(None, "bool", varies=True)
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
