"""The text of a number that an iteration computes: as values, and what of Python it relies on."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import reduce

from advisor.ir.values import Elementwise, Scalar, Value
from advisor.numpy_table import OF_CMATH, OF_MATH, PYTHON_INTEGER, ROWS, WHOLE_OF_MATH
from costdb.records import only

_TRUTHS = frozenset({"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"})
INDEX_BITS, WORD_BITS = 30, 63
_OPERATORS: Mapping[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
}
_OF_NUMBERS = frozenset({"absolute", "add", "multiply", "negative", "positive", "subtract"})


def of_text(node: ast.expr, named: Callable[[ast.expr], Value]) -> Value:
    """Return what the text of a number says, given what it says of names and fractions."""
    match node:
        case ast.Call(ast.Name(operation), parts) if operation in ROWS:
            return Elementwise(operation, tuple(of_text(one, named) for one in parts))
        case ast.Call(ast.Attribute(ast.Name("math" | "cmath" as module), name), parts) if (
            name in OF_MATH.keys() - WHOLE_OF_MATH if module == "math" else name in OF_CMATH
        ):
            return Elementwise(OF_MATH[name], tuple(of_text(one, named) for one in parts))
        case ast.UnaryOp(ast.USub(), ast.Constant(int())) | ast.Constant(int()):
            return Scalar(ast.unparse(node), PYTHON_INTEGER)
        case ast.UnaryOp(ast.USub(), operand):
            return Elementwise("negative", (of_text(operand, named),))
    return named(node)


def as_calls(node: ast.expr) -> str:
    """Return the text of a whole number with NumPy's functions in the place of operators."""
    match node:
        case ast.BinOp(left, sign, right):
            return f"{_OPERATORS[type(sign)]}({as_calls(left)}, {as_calls(right)})"
        case ast.UnaryOp(ast.USub(), ast.BinOp() | ast.Call() as operand):
            return f"negative({as_calls(operand)})"
        case ast.Call(ast.Name("max" | "min" as name), parts):
            return reduce(lambda one, other: f"{name}imum({one}, {other})", map(as_calls, parts))
    return ast.unparse(node)


def adds_truths(node: ast.AST) -> bool:
    """Return whether a formula computes with what comparisons give: in Python these are numbers."""
    match node:
        case ast.Call(ast.Name(name), parts) if name in _OF_NUMBERS:
            return any(ast.unparse(one.func) in _TRUTHS for one in only(ast.Call, parts))
    return False


def bits(node: ast.AST, index: str | None) -> int:
    """Return how many bits the whole numbers of a formula need, at most.

    The index is taken to be below ``2**30``; of other whole numbers nothing says how large they
    are. Without an index, as of formulas that come to no whole number, each name is like one.
    """
    match node:
        case ast.Name(name):
            return INDEX_BITS * (1 if index in (name, None) else 2)
        case ast.Constant(int(value)):
            return abs(value).bit_length()
        case ast.Call(ast.Name("multiply"), parts) if not any(map(_is_fraction, parts)):
            return sum(bits(one, index) for one in parts)
        case ast.Call(ast.Name("power"), [base, ast.Constant(int(power))]):
            return bits(base, index) * power
        case ast.Call(ast.Name("left_shift" | "power"), _):
            return WORD_BITS + 1
        case ast.Call(_, parts):
            return max((bits(one, index) for one in parts), default=0)
    return max((bits(one, index) for one in ast.iter_child_nodes(node)), default=0)


def _is_fraction(node: ast.expr) -> bool:
    """Return whether a formula surely comes to no whole number, which may be of any size."""
    match node:
        case ast.Constant(float() | complex()) | ast.Attribute() | ast.Call(ast.Name("divide")):
            return True
        case ast.Call(ast.Attribute(_, name)):
            return name not in WHOLE_OF_MATH
        case ast.Call(ast.Name(name), parts) if name in _OF_NUMBERS:
            return any(map(_is_fraction, parts))
    return False
