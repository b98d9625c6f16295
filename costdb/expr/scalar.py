"""Compiling an expression to a fast function of plain numbers."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import TypeAlias

from costdb.expr.arithmetic import MAX_ITERATIONS, bounded_power, normal, reduction_bound
from costdb.expr.errors import ExprError
from costdb.expr.exact import Rational, Value
from costdb.expr.functions import (
    Comparison,
    Conditional,
    Extreme,
    Gcd,
    Log2,
    Max,
    Reduction,
    Sum,
    gcd_value,
    log2_value,
)
from costdb.expr.lower import (
    Lowering,
    binary,
    call,
    choose,
    compare,
    comparison_operator,
    constant,
    name,
    negative,
)
from costdb.expr.nodes import Division, Expr, FloorDiv, Mod, Num, Pow, Sym

ScalarFunction: TypeAlias = Callable[..., Value]

_AT = {"lineno": 1, "col_offset": 0}
_PLAIN_EXPONENT = 12


def compile_scalar(expr: Expr, names: Sequence[str]) -> ScalarFunction:
    """Return a function of plain numbers.

    Parameters
    ----------
    expr : Expr
    names : sequence of str
        Symbols in the order of the function's arguments; all free symbols must be among them.

    Returns
    -------
    callable
        Rounded divisions, remainders and comparisons of whole numbers are exact; other
        arithmetic may round as floats do. A division by zero raises `ExprError`.

    Raises
    ------
    ExprError
        For a free symbol that is not in `names`.
    """
    return _Scalar(names).function(expr, dict(_HELPERS))


class _Scalar(Lowering):
    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names)
        self.temporaries = 0
        self.loops = 0

    def number(self, value: Rational, exact: bool) -> ast.expr:
        if isinstance(value, int):
            return constant(value)
        if exact:
            return call("fraction", constant(value.numerator), constant(value.denominator))
        return constant(nearest(value))

    def symbol(self, expr: Sym, exact: bool) -> ast.expr:
        return name(self.scope[expr.name])

    def quotient(self, above: ast.expr, below: ast.expr, exact: bool) -> ast.expr:
        return call("divide", above, below) if exact else binary(above, ast.Div(), below)

    def other(self, expr: Expr, exact: bool) -> ast.expr:
        match expr:
            case Pow():
                return self.power(expr, exact)
            case Division():
                return self.division(expr)
            case Conditional():
                then = self.lower(expr.then, exact)
                return choose(self.test(expr.test), then, self.lower(expr.orelse, exact))
            case Comparison():
                return choose(self.test(expr), constant(1), constant(0))
            case Extreme():
                return self.extreme(expr, exact)
            case Log2():
                return call("log2", self.lower(expr.argument, exact))
            case Gcd():
                return call("gcd", self.lower(expr.left, True), self.lower(expr.right, True))
            case Reduction():
                return self.reduction(expr, exact)
            case _:
                raise ExprError(f"{type(expr).__name__} cannot be compiled")

    def power(self, expr: Pow, exact: bool) -> ast.expr:
        base = self.lower(expr.base, exact)
        if isinstance(expr.exponent, Num):
            value = expr.exponent.value
            if isinstance(value, int) and 0 < value <= _PLAIN_EXPONENT:
                return binary(base, ast.Pow(), constant(value))
        return call("power", base, self.lower(expr.exponent, True))

    def division(self, expr: Division) -> ast.expr:
        above = self.lower(expr.dividend, True)
        below = self.lower(expr.divisor, True)
        if isinstance(expr, Mod):
            return binary(above, ast.Mod(), below)
        if isinstance(expr, FloorDiv):
            return binary(above, ast.FloorDiv(), below)
        return negative(binary(negative(above), ast.FloorDiv(), below))

    def test(self, expr: Expr) -> ast.expr:
        """Return code whose truth is that of `expr`."""
        if isinstance(expr, Comparison):
            left, right = self.lower(expr.left, True), self.lower(expr.right, True)
            return compare(left, comparison_operator(expr), right)
        if isinstance(expr, Conditional):
            then, orelse = self.test(expr.then), self.test(expr.orelse)
            return choose(self.test(expr.test), then, orelse)
        return self.lower(expr, True)

    def extreme(self, expr: Extreme, exact: bool) -> ast.expr:
        if self.loops:
            # Python forbids keeping a value on the way inside the bounds of a loop.
            parts = [self.lower(arg, exact) for arg in expr.args]
            return call("max" if isinstance(expr, Max) else "min", *parts)
        operator: ast.cmpop = ast.GtE() if isinstance(expr, Max) else ast.LtE()
        code = self.lower(expr.args[0], exact)
        for arg in expr.args[1:]:
            # Comparing in place costs half of a call of max().
            left, right = self.temporary(code), self.temporary(self.lower(arg, exact))
            code = choose(compare(left[0], operator, right[0]), left[1], right[1])
        return code

    def temporary(self, code: ast.expr) -> tuple[ast.expr, ast.expr]:
        """Return code that evaluates and keeps a value, and code that recalls it."""
        if isinstance(code, ast.Name | ast.Constant):
            return code, code
        self.temporaries += 1
        kept = f"v{self.temporaries}"
        return ast.NamedExpr(ast.Name(kept, ast.Store(), **_AT), code, **_AT), name(kept)

    def reduction(self, expr: Reduction, exact: bool) -> ast.expr:
        self.reductions += 1
        self.loops += 1
        index = f"i{self.reductions}"
        bounds = call("span", self.lower(expr.low, True), self.lower(expr.high, True))
        # What was shared outside may use a name that the index hides.
        outside = self.scope, self.hoisted
        self.scope, self.hoisted = {**self.scope, expr.index: index}, {}
        body = self.lower(expr.body, exact)
        self.scope, self.hoisted = outside
        self.loops -= 1
        loop = ast.comprehension(ast.Name(index, ast.Store(), **_AT), bounds, [], 0)
        values = ast.GeneratorExp(body, [loop], **_AT)
        return call("total" if isinstance(expr, Sum) else "largest", values)


def nearest(value: Rational) -> float:
    """Return the float nearest to a constant."""
    try:
        return value.numerator / value.denominator
    except OverflowError:
        raise ExprError("a constant is too large") from None


def _divide(above: Value, below: Value) -> Value:
    if isinstance(above, float) or isinstance(below, float):
        return above / below
    return normal(Fraction(above) / below)


def _greatest_divisor(left: Value, right: Value) -> Rational:
    if isinstance(left, int) and isinstance(right, int):
        return math.gcd(left, right)
    return gcd_value(left, right)


def _span(low: Value, high: Value) -> range:
    steps = range(reduction_bound(low, "a loop"), reduction_bound(high, "a loop") + 1)
    if steps and steps[-1] - steps[0] >= MAX_ITERATIONS:
        raise ExprError(f"a loop without a closed form has more than {MAX_ITERATIONS} steps")
    return steps


def _largest(values: Iterable[Value]) -> Value:
    return max(values, default=0)


_HELPERS: dict[str, object] = {
    "divide": _divide,
    "fraction": Fraction,
    "gcd": _greatest_divisor,
    "largest": _largest,
    "log2": log2_value,
    "max": max,
    "min": min,
    "power": bounded_power,
    "span": _span,
    "total": sum,
}
