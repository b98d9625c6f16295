"""The exact value of a formula at one point, node by node: nothing is compiled."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from costdb.expr.arithmetic import bounded_power, normal
from costdb.expr.errors import ExprError
from costdb.expr.exact import Rational, Value
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
    gcd_value,
    log2_value,
)
from costdb.expr.nodes import Add, CeilDiv, Expr, FloorDiv, Mod, Mul, Num, Pow, Sym


def exactly(value: Value) -> Value:
    """Return a number as Python's `int` where it is whole and no float."""
    return value if isinstance(value, float | int) else normal(value)


def _sum(total: Rational, values: list[Value]) -> Value:
    """Return a sum, in the order of its terms; exact up to the first float.

    Python's own fractions are brought to their lowest terms at every step, and ask for all kinds
    of numbers first, which takes ten times as long.
    """
    above, below = total.numerator, total.denominator
    for place, value in enumerate(values):
        if isinstance(value, int):
            above += value * below
        elif isinstance(value, float):
            loose = above / below
            for more in values[place:]:
                loose += _loose(more)
            return loose
        elif value.denominator == below:
            above += value.numerator
        else:
            above = above * value.denominator + value.numerator * below
            below *= value.denominator
    return _lowest(above, below)


def _product(total: Rational, values: list[Value]) -> Value:
    """Return a product likewise."""
    above, below = total.numerator, total.denominator
    for place, value in enumerate(values):
        if isinstance(value, int):
            above *= value
        elif isinstance(value, float):
            loose = above / below
            for more in values[place:]:
                loose *= _loose(more)
            return loose
        else:
            above *= value.numerator
            below *= value.denominator
    return _lowest(above, below)


def _loose(value: Value) -> int | float:
    """Return a fraction as a float, as it is beside one."""
    return value if isinstance(value, int | float) else value.numerator / value.denominator


def _lowest(above: int, below: int) -> Rational:
    if below == 1:
        return above
    whole, rest = divmod(above, below)
    return Fraction(above, below) if rest else whole


class Interpreter:
    """Evaluates formulas at one point; parts that occur several times are evaluated once.

    Parameters
    ----------
    scope : dict of str to number
        Of the free symbols that are asked for.
    """

    def __init__(self, scope: dict[str, Value]) -> None:
        self.scope = scope
        self.known: dict[Expr, Value] = {}

    def value(self, expr: Expr) -> Value:
        """Return the value of a formula; divisions by zero raise as Python's do."""
        if isinstance(expr, Num):
            return expr.value
        if isinstance(expr, Sym):
            try:
                return self.scope[expr.name]
            except KeyError:
                raise ExprError(f"{expr.name!r} has no value") from None
        found = self.known.get(expr)
        if found is None:
            found = self.known[expr] = self._value(expr)
        return found

    def _value(self, expr: Expr) -> Value:
        if isinstance(expr, Add):
            return _sum(expr.constant, [self.value(term) for term in expr.terms])
        if isinstance(expr, Mul):
            return _product(expr.coefficient, [self.value(factor) for factor in expr.factors])
        if isinstance(expr, Conditional):
            return self.value(expr.then if self.value(expr.test) else expr.orelse)
        apply = _APPLIED.get(type(expr))
        if apply is not None:
            return exactly(apply(*[self.value(child) for child in expr.children]))
        if isinstance(expr, Reduction):
            return self.reduction(expr)
        raise ExprError(f"{type(expr).__name__} has no value")

    def reduction(self, expr: Reduction) -> Value:
        """Return the value of a sum or maximum over a range."""
        raise ExprError("a reduction has no value here")


_APPLIED: dict[type[Expr], Callable[..., Value]] = {
    Pow: bounded_power,
    FloorDiv: lambda above, below: math.floor(above // below),
    CeilDiv: lambda above, below: math.ceil(-(-above // below)),
    Mod: lambda above, below: above % below,
    Max: max,
    Min: min,
    Log2: log2_value,
    Gcd: gcd_value,
    Less: lambda left, right: int(left < right),
    LessEqual: lambda left, right: int(left <= right),
    Equal: lambda left, right: int(left == right),
}
"""What to do with the values of a node's children."""
