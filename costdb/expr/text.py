"""Expressions as text that the grammar reads back to an equal expression."""

from __future__ import annotations

from fractions import Fraction

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
from costdb.expr.nodes import (
    MINUS_ONE,
    ONE,
    Add,
    CeilDiv,
    Expr,
    FloorDiv,
    Mod,
    Mul,
    Num,
    Pow,
    Sym,
    is_reciprocal,
    power,
    scale,
    split_coefficient,
)
from costdb.expr.numbers import Rational, magnitude

_COMPARE, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(6)
_MAX_DECIMALS = 40


def to_text(expr: Expr) -> str:
    """Return text that `parse` reads back to an equal expression."""
    return _at_least(expr, _COMPARE)


def number_text(value: Rational) -> str:
    """Return a constant as a decimal where it terminates, else as ``a/b``."""
    if isinstance(value, int):
        return str(value)
    decimals = _decimals(value.denominator)
    if decimals is None or decimals > _MAX_DECIMALS:
        return f"{value.numerator}/{value.denominator}"
    digits = str(abs(value.numerator) * 10**decimals // value.denominator)
    sign = "-" if value < 0 else ""
    if decimals > len(digits) + 4:
        return f"{sign}{digits}e-{decimals}"
    digits = digits.rjust(decimals + 1, "0")
    return f"{sign}{digits[:-decimals]}.{digits[-decimals:]}"


def _decimals(denominator: int) -> int | None:
    twos = (denominator & -denominator).bit_length() - 1
    rest = denominator >> twos
    fives = 0
    while rest % 5 == 0:
        rest //= 5
        fives += 1
    return max(twos, fives) if rest == 1 else None


def _at_least(expr: Expr, level: int) -> str:
    text, own = _render(expr)
    return f"({text})" if own < level else text


def _call(name: str, *args: Expr) -> tuple[str, int]:
    return f"{name}({', '.join(map(to_text, args))})", _ATOM


def _render(expr: Expr) -> tuple[str, int]:
    match expr:
        case Num():
            return _number(expr.value)
        case Sym():
            return expr.name, _ATOM
        case Add():
            return _sum(expr), _SUM
        case Mul():
            return _product(expr)
        case Pow():
            if is_reciprocal(expr):
                return f"1/{_at_least(power(expr, MINUS_ONE), _SIGN)}", _PRODUCT
            base = _at_least(expr.base, _ATOM)
            return f"{base}**{_at_least(expr.exponent, _SIGN)}", _POWER
        case Mod():
            left = _at_least(expr.dividend, _PRODUCT)
            return f"{left} % {_at_least(expr.divisor, _SIGN)}", _PRODUCT
        case FloorDiv() if expr.divisor != ONE:
            left = _at_least(expr.dividend, _PRODUCT)
            return f"{left} // {_at_least(expr.divisor, _SIGN)}", _PRODUCT
        case Conditional():
            return _call("if", *expr.children)
        case Reduction():
            name = "sum" if isinstance(expr, Sum) else "max"
            parts = ", ".join(map(to_text, expr.children))
            return f"{name}({expr.index} = {parts})", _ATOM
        case Less() | LessEqual() | Equal():
            left = _at_least(expr.left, _SUM)
            return f"{left} {_COMPARISONS[type(expr)]} {_at_least(expr.right, _SUM)}", _COMPARE
        case FloorDiv():
            return _call("floor", expr.dividend)
        case CeilDiv():
            if expr.divisor == ONE:
                return _call("ceil", expr.dividend)
            above = _at_least(expr.dividend, _PRODUCT)
            return f"ceil({above}/{_at_least(expr.divisor, _SIGN)})", _ATOM
        case _:
            return _call(_CALLS[type(expr)], *expr.children)


_COMPARISONS: dict[type[Expr], str] = {Less: "<", LessEqual: "<=", Equal: "=="}
_CALLS: dict[type[Expr], str] = {Max: "max", Min: "min", Log2: "log2", Gcd: "gcd"}


def _number(value: Rational) -> tuple[str, int]:
    text = number_text(value)
    if "/" in text:
        return text, _PRODUCT
    return text, _SIGN if value < 0 else _ATOM


def _sum(expr: Add) -> str:
    pieces: list[str] = []
    for term in (*expr.terms, Num(expr.constant)):
        coefficient, rest = _signed(term)
        if coefficient == 0:
            continue
        size = magnitude(coefficient)
        # A leading sign binds tighter than the rounded divisions.
        leads = not pieces and coefficient < 0 and isinstance(rest, FloorDiv | Mod)
        level = _SIGN if leads and size == 1 else _PRODUCT
        text = _at_least(Num(size) if rest == ONE else scale(size, rest), level)
        if pieces:
            pieces.append(" - " if coefficient < 0 else " + ")
        elif coefficient < 0:
            pieces.append("-")
        pieces.append(text)
    return "".join(pieces)


def _signed(term: Expr) -> tuple[Rational, Expr]:
    if isinstance(term, Num):
        return term.value, ONE
    return split_coefficient(term)


def _product(expr: Mul) -> tuple[str, int]:
    coefficient = expr.coefficient
    sign = "-" if coefficient < 0 else ""
    text = number_text(magnitude(coefficient))
    above = [_factor(f) for f in expr.factors if not is_reciprocal(f)]
    below = [_factor(power(f, MINUS_ONE)) for f in expr.factors if is_reciprocal(f)]
    if "/" in text:
        number = Fraction(magnitude(coefficient))
        if number.numerator != 1:
            above.append(str(number.numerator))
        below.append(str(number.denominator))
    elif text != "1":
        above.append(text)
    top = "*".join(above) or "1"
    if not below:
        return sign + top, _PRODUCT
    bottom = below[0] if len(below) == 1 else f"({'*'.join(below)})"
    return f"{sign}{top}/{bottom}", _PRODUCT


def _factor(factor: Expr) -> str:
    return _at_least(factor, _SIGN)
