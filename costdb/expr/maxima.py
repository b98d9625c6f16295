"""Closed forms of maxima over a range of whole numbers that is not empty."""

from __future__ import annotations

from dataclasses import dataclass

from costdb.expr.closing import NotClosed, Span, is_whole_by_contract
from costdb.expr.facts import Facts
from costdb.expr.functions import (
    Comparison,
    Conditional,
    Extreme,
    Less,
    LessEqual,
    Log2,
    Max,
    Min,
    conditional,
)
from costdb.expr.names import free_symbols
from costdb.expr.nodes import (
    ONE,
    ZERO,
    Add,
    CeilDiv,
    Expr,
    FloorDiv,
    Mul,
    Num,
    Pow,
    Sym,
    add,
    multiply,
)
from costdb.expr.polynomials import affine_in, at, coefficients_in, expand, terms_of


@dataclass(frozen=True, slots=True)
class Search:
    """Where an extreme is sought; `facts` already know the index's range."""

    span: Span
    facts: Facts

    def is_nonnegative(self, expr: Expr) -> bool:
        """Tell whether `expr` is certainly at least 0 at every index."""
        return self.facts.proves_at_least(expr, ZERO)


def close_max(span: Span, body: Expr, facts: Facts) -> Expr:
    """Return the largest `body` over a `span` that is not empty.

    Raises
    ------
    NotClosed
        Where it is not known at which end, or where between, the maximum lies.
    """
    if not (is_whole_by_contract(span.low) and is_whole_by_contract(span.high)):
        raise NotClosed
    return _extreme(Search(span, facts.inside(span.index, span.low, span.high)), body, 1)


def _extreme(search: Search, body: Expr, direction: int) -> Expr:
    index = search.span.index
    if index not in free_symbols(body):
        return body
    if isinstance(body, Conditional) and index not in free_symbols(body.test):
        then = _extreme(search, body.then, direction)
        return conditional(body.test, then, _extreme(search, body.orelse, direction))
    if isinstance(body, Max if direction > 0 else Min):
        parts = [_extreme(search, arg, direction) for arg in body.children]
        return body.rebuild(tuple(parts))
    way = trend(body, search)
    if way is not None:
        return at(body, index, search.span.high if way * direction > 0 else search.span.low)
    fixed = [term for term in terms_of(body) if index not in free_symbols(term)]
    if fixed:
        varying = [term for term in terms_of(body) if index in free_symbols(term)]
        return add([*fixed, _extreme(search, add(varying), direction)])
    if isinstance(body, Mul):
        return _of_product(search, body, direction)
    return _at_an_end(search, body, direction)


def _of_product(search: Search, body: Mul, direction: int) -> Expr:
    index = search.span.index
    outside = multiply(
        [Num(body.coefficient), *(f for f in body.factors if index not in free_symbols(f))]
    )
    inside = multiply([f for f in body.factors if index in free_symbols(f)])
    if outside != ONE and search.is_nonnegative(outside):
        return outside * _extreme(search, inside, direction)
    if search.is_nonnegative(-outside):
        return outside * _extreme(search, inside, -direction)
    return _at_an_end(search, body, direction)


def _at_an_end(search: Search, body: Expr, direction: int) -> Expr:
    # A function that bends upwards only is largest at one end or the other.
    coefficients = coefficients_in(body, search.span.index)
    if coefficients is None or len(coefficients) > 3:
        raise NotClosed
    if len(coefficients) == 3:
        bend = coefficients[2] if direction > 0 else -coefficients[2]
        if not search.is_nonnegative(bend):
            raise NotClosed
    ends = (
        at(body, search.span.index, search.span.low),
        at(body, search.span.index, search.span.high),
    )
    return search.facts.largest(ends) if direction > 0 else search.facts.smallest(ends)


def trend(expr: Expr, search: Search) -> int | None:
    """Return 1 where `expr` never falls with the index, -1 where it never rises, else None."""
    index = search.span.index
    if index not in free_symbols(expr):
        return 0
    if isinstance(expr, Sym):
        return 1
    if coefficients_in(expr, index) is not None:
        return _polynomial_trend(expr, search)
    match expr:
        case Add() | Max() | Min():
            return _common([trend(child, search) for child in expr.children])
        case Mul():
            return _product_trend(expr, search)
        case Pow() if isinstance(expr.exponent, Num) and search.is_nonnegative(expr.base):
            way = trend(expr.base, search)
            return way if way is None or expr.exponent.value > 0 else -way
        case FloorDiv() | CeilDiv():
            if index in free_symbols(expr.divisor) or not search.is_nonnegative(expr.divisor):
                return None
            return trend(expr.dividend, search)
        case Log2():
            return trend(expr.argument, search)
        case Less() | LessEqual():
            return trend(expr.right - expr.left, search)
        case Extreme() | Comparison():
            return None
        case _:
            return None


def _polynomial_trend(expr: Expr, search: Search) -> int | None:
    span = search.span
    line = affine_in(expr, span.index)
    step = expand(at(expr, span.index, Sym(span.index) + 1) - expr) if line is None else line[0]
    *outer, own = search.facts.ranges
    before_last = Facts(search.facts.positive, search.facts.nonnegative, tuple(outer)).inside(
        span.index, own.low, own.high - 1
    )
    if before_last.proves_at_least(step, ZERO):
        return 1
    return -1 if before_last.proves_at_least(-step, ZERO) else None


def _common(ways: list[int | None]) -> int | None:
    if None in ways:
        return None
    moving = {way for way in ways if way}
    if len(moving) > 1:
        return None
    return moving.pop() if moving else 0


def _product_trend(expr: Mul, search: Search) -> int | None:
    index = search.span.index
    outside = multiply(
        [Num(expr.coefficient), *(f for f in expr.factors if index not in free_symbols(f))]
    )
    inside = [f for f in expr.factors if index in free_symbols(f)]
    if search.is_nonnegative(outside):
        sign = 1
    elif search.is_nonnegative(-outside):
        sign = -1
    else:
        return None
    if len(inside) > 1 and not all(map(search.is_nonnegative, inside)):
        return None
    way = _common([trend(factor, search) for factor in inside])
    return None if way is None else sign * way
