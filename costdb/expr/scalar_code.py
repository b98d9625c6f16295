"""Code for plain numbers: everything but loops over ranges."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from costdb.expr.arithmetic import bounded_power, normal
from costdb.expr.errors import ExprError
from costdb.expr.exact import Rational, Value
from costdb.expr.forms import PLAIN_EXPONENT
from costdb.expr.functions import (
    Comparison,
    Conditional,
    Extreme,
    Gcd,
    Log2,
    Max,
    Reduction,
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
from costdb.expr.names import free_symbols
from costdb.expr.nodes import ONE, Add, CeilDiv, Division, Expr, Mul, Num, Pow, Sym

_AT: dict[str, Any] = {"lineno": 1, "col_offset": 0}


class ScalarCode(Lowering):
    """Turns expressions into code for plain numbers; how reductions are done is left open."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names)
        self.helpers = dict(_HELPERS)
        self.temporaries = 0
        self.numbers: Mapping[int, str] = {}
        """Magnitudes that are arguments, see :mod:`costdb.expr.forms`."""
        self.whole: frozenset[str] = frozenset()
        """Symbols that surely stand for an `int`."""
        self.alike: dict[Expr, bool] = {}

    def mode(self, expr: Expr, exact: bool) -> bool:
        """Return the mode that a part is lowered in: exact too where both give the same code."""
        return exact or self.same_in_both(expr)

    def same_in_both(self, expr: Expr) -> bool:
        """Tell whether no fraction and no unrounded division makes a difference of the modes."""
        if isinstance(expr, Num):
            return isinstance(expr.value, int)
        if isinstance(expr, Sym | Division | Comparison | Gcd):
            return True
        known = self.alike.get(expr)
        if known is None:
            known = self.alike[expr] = self._same_in_both(expr)
        return known

    def _same_in_both(self, expr: Expr) -> bool:
        match expr:
            case Add(constant=number) | Mul(coefficient=number):
                return isinstance(number, int) and all(map(self.same_in_both, expr.children))
            case Pow(exponent=Num(value=int() as exponent)):
                return 0 < exponent <= PLAIN_EXPONENT and self.same_in_both(expr.base)
            case Conditional():
                return self.same_in_both(expr.then) and self.same_in_both(expr.orelse)
            case Extreme():
                return all(map(self.same_in_both, expr.args))
            case _:
                return False

    def number(self, value: Rational, exact: bool) -> ast.expr:
        """Return code for a constant."""
        if isinstance(value, int):
            known = self.numbers.get(-value if value < 0 else value)
            if known is None:
                return constant(value)
            return negative(name(known)) if value < 0 else name(known)
        if exact:
            # made once, not at every step of a loop
            kept = f"q{value.numerator}_{value.denominator}".replace("-", "m")
            self.helpers[kept] = value
            return name(kept)
        return constant(nearest(value))

    def symbol(self, expr: Sym, exact: bool) -> ast.expr:
        """Return code for a symbol."""
        return name(self.scope[expr.name])

    def quotient(self, above: ast.expr, below: ast.expr, exact: bool) -> ast.expr:
        """Return code for an unrounded division."""
        return call("divide", above, below) if exact else binary(above, ast.Div(), below)

    def other(self, expr: Expr, exact: bool) -> ast.expr:
        """Return code for what is no constant, symbol, sum or product."""
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
                # what is certainly whole needs no look at it, which takes as long as the rest
                helper = "gcd_of_whole" if self.is_whole(expr) else "gcd"
                return call(helper, self.lower(expr.left, True), self.lower(expr.right, True))
            case Reduction():
                return self.reduction(expr, exact)
            case _:
                raise ExprError(f"{type(expr).__name__} cannot be compiled")

    def power(self, expr: Pow, exact: bool) -> ast.expr:
        """Return code for a power."""
        base = self.lower(expr.base, exact)
        if isinstance(expr.exponent, Num):
            value = expr.exponent.value
            if isinstance(value, int) and 0 < value <= PLAIN_EXPONENT:
                return binary(base, ast.Pow(), constant(value))
        return call("power", base, self.lower(expr.exponent, True))

    def division(self, expr: Division) -> ast.expr:
        """Return code for a rounded division or a remainder."""
        if isinstance(expr, CeilDiv) and isinstance(expr.dividend, Log2) and expr.divisor == ONE:
            return self.ceil_log2(expr.dividend.argument)
        return self.rounded(expr)

    def ceil_log2(self, argument: Expr) -> ast.expr:
        """Return code for a rounded logarithm, which counts the rounds of a tree."""
        code = self.lower(argument, True)
        if not self.is_whole(argument):
            return call("ceil_log2", code)
        # in place, it takes a fifth of the time
        first, again = self.temporary(code)
        below = binary(again, ast.Sub(), constant(1))
        rounds = ast.Call(ast.Attribute(below, "bit_length", ast.Load(), **_AT), [], [], **_AT)
        positive = compare(first, ast.Gt(), constant(0))
        return choose(positive, rounds, call("ceil_log2", again))

    def is_whole(self, expr: Expr) -> bool:
        """Tell whether a part surely is an `int` when the code runs."""
        if not (free_symbols(expr) <= self.whole and expr.is_whole(self.whole)):
            return False
        pending, seen = [expr], {expr}
        while pending:
            part = pending.pop()
            if isinstance(part, Log2):
                # rounded down, it is whole and comes as a float
                return False
            fresh = [child for child in part.children if child not in seen]
            seen.update(fresh)
            pending += fresh
        return True

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
        """Return code for the largest or smallest of some."""
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
        """Return code for a sum or maximum over a range."""
        raise NotImplementedError


def nearest(value: Rational) -> float:
    """Return the float nearest to a constant."""
    try:
        return value.numerator / value.denominator
    except OverflowError:
        raise ExprError("a constant is too large") from None


def divided(above: Value, below: Value) -> Value:
    """Return a quotient, exact where both sides are."""
    if below == 1:
        return above
    if isinstance(above, float) or isinstance(below, float):
        return above / below
    return normal(Fraction(above) / below)


def _ceil_log2(value: Value) -> int:
    """Return the rounds of a tree over `value` ranks."""
    if isinstance(value, int) and value > 0:
        return (value - 1).bit_length()
    return math.ceil(log2_value(value))


def _greatest_divisor(left: Value, right: Value) -> Rational:
    try:
        return math.gcd(left, right)  # type: ignore[arg-type]  # what is not whole is refused
    except TypeError:
        return gcd_value(left, right)


_HELPERS: dict[str, object] = {
    "ceil_log2": _ceil_log2,
    "divide": divided,
    "gcd": _greatest_divisor,
    "gcd_of_whole": math.gcd,
    "log2": log2_value,
    "power": bounded_power,
    "range": range,
}
