"""Operators on abstract values: numbers by the expression language, arrays element by element."""

from __future__ import annotations

from fractions import Fraction

from advisor.frontend.expressions.operations import OF_SYNTAX
from advisor.frontend.spmd import elementwise
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
from advisor.source import Span
from costdb.expr import (
    Expr,
    ExprError,
    equal,
    floor_div,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    num,
)
from costdb.expr.nodes import Num


def combine(operator: str, left: Value, right: Value, run: Run, span: Span) -> Value:
    """Return the result of a binary or boolean operator, by LibCST's name of it."""
    if isinstance(left, Array) or isinstance(right, Array):
        if operator == "MatrixMultiply":
            return elementwise.product(left, right, run, span)
        return elementwise.elementwise((left, right), run, span, operator)
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
            return elementwise.elementwise((left, right), run, span, operator)
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
        return elementwise.elementwise((operand,), run, span, operator)
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
