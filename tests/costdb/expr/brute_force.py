"""The value of an expression by definition: fractions, one term after the other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from costdb.expr import Expr
from costdb.expr.functions import (
    Conditional,
    Equal,
    Gcd,
    Less,
    LessEqual,
    Log2,
    Max,
    Min,
    Reduction,
    Sum,
)
from costdb.expr.nodes import Add, CeilDiv, FloorDiv, Mod, Mul, Num, Pow, Sym

Exact = Fraction | float


def brute_force(expr: Expr, values: Mapping[str, Exact]) -> Exact:
    """Return the value; whatever Python raises where there is none."""
    if isinstance(expr, Conditional):
        return brute_force(expr.then if brute_force(expr.test, values) else expr.orelse, values)
    if isinstance(expr, Reduction):
        low, high = brute_force(expr.low, values), brute_force(expr.high, values)
        assert low == int(low) and high == int(high), "a bound is not whole"
        steps = range(int(low), int(high) + 1)
        terms = [brute_force(expr.body, {**values, expr.index: Fraction(i)}) for i in steps]
        return sum(terms, Fraction(0)) if isinstance(expr, Sum) else max(terms, default=Fraction(0))
    parts = [brute_force(child, values) for child in expr.children]
    match expr:
        case Num():
            return Fraction(expr.value)
        case Sym():
            return values[expr.name]
        case Add():
            return sum(parts, Fraction(expr.constant))
        case Mul():
            return math.prod(parts, start=Fraction(expr.coefficient))
        case Pow():
            return parts[0] ** parts[1]
        case FloorDiv():
            return Fraction(parts[0] // parts[1])
        case CeilDiv():
            return Fraction(-(-parts[0] // parts[1]))
        case Mod():
            return parts[0] % parts[1]
        case Max():
            return max(parts)
        case Min():
            return min(parts)
        case Log2():
            return math.log2(parts[0])
        case Gcd():
            return Fraction(math.gcd(*map(int, parts)))
        case Less():
            return Fraction(parts[0] < parts[1])
        case LessEqual():
            return Fraction(parts[0] <= parts[1])
        case Equal():
            return Fraction(parts[0] == parts[1])
    raise AssertionError(f"what is {type(expr).__name__}?")
