"""Symbolic cost expressions: exact, immutable, and simplified to closed forms."""

from costdb.expr.evaluate import evaluate
from costdb.expr.functions import (
    conditional,
    equal,
    gcd,
    less,
    less_equal,
    log2,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    maximum_over,
    minimum,
    summation,
)
from costdb.expr.names import free_symbols, substitute, sym
from costdb.expr.nodes import ONE, ZERO, Expr, ceil, ceil_div, floor, floor_div, num
from costdb.expr.numbers import ExprError
from costdb.expr.parse import parse
from costdb.expr.simplify import simplify
from costdb.expr.text import to_text

__all__ = [
    "ONE",
    "ZERO",
    "Expr",
    "ExprError",
    "ceil",
    "ceil_div",
    "conditional",
    "equal",
    "evaluate",
    "floor",
    "floor_div",
    "free_symbols",
    "gcd",
    "less",
    "less_equal",
    "log2",
    "logical_and",
    "logical_not",
    "logical_or",
    "maximum",
    "maximum_over",
    "minimum",
    "num",
    "parse",
    "simplify",
    "substitute",
    "summation",
    "sym",
    "to_text",
]
