"""Polynomials within expressions: expanding, reading coefficients, summing powers."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache, lru_cache
from typing import TypeAlias

from costdb.expr.functions import (
    Conditional,
    Sum,
    conditional,
    free_symbols,
    less_equal,
    substitute,
    summation,
)
from costdb.expr.nodes import (
    ONE,
    ZERO,
    Add,
    Expr,
    Mul,
    Num,
    Pow,
    Rational,
    Sym,
    add,
    exact,
    multiply,
)

MAX_TERMS = 400
"""Terms of an expanded polynomial; larger ones are left in factors."""

MAX_DEGREE = 12
"""Highest power whose sums are closed."""


def terms_of(expr: Expr) -> tuple[Expr, ...]:
    """Return the terms of a sum, its constant among them."""
    if isinstance(expr, Add):
        return (*expr.terms, Num(expr.constant)) if expr.constant else expr.terms
    return (expr,)


def expand(expr: Expr) -> Expr:
    """Multiply out products and whole powers of sums, as far as `MAX_TERMS` allows."""
    if isinstance(expr, Add):
        return add([expand(term) for term in terms_of(expr)])
    if isinstance(expr, Pow):
        count = _whole_exponent(expr)
        base = expand(expr.base)
        if count is None or not isinstance(base, Add):
            return expr
        if len(terms_of(base)) ** count > MAX_TERMS:
            return expr
        product = _expand_product([base] * count)
        return expr if product is None else product
    if isinstance(expr, Mul):
        product = _expand_product([expand(factor) for factor in expr.factors])
        return (
            expr
            if product is None
            else add([Num(expr.coefficient) * term for term in terms_of(product)])
        )
    return expr


def _expand_product(factors: list[Expr]) -> Expr | None:
    terms: list[Expr] = [ONE]
    for factor in factors:
        parts = terms_of(factor)
        if len(terms) * len(parts) > MAX_TERMS:
            return None
        terms = list(terms_of(add([left * right for left in terms for right in parts])))
    return add(terms)


def _whole_exponent(expr: Pow) -> int | None:
    if isinstance(expr.exponent, Num) and isinstance(expr.exponent.value, int):
        return expr.exponent.value if 0 < expr.exponent.value <= MAX_DEGREE else None
    return None


def is_polynomial_in(expr: Expr, name: str) -> bool:
    """Return whether `name` occurs only in sums, products and whole powers; nothing is expanded."""
    if name not in free_symbols(expr) or isinstance(expr, Sym):
        return True
    if isinstance(expr, Pow):
        return _whole_exponent(expr) is not None and is_polynomial_in(expr.base, name)
    return isinstance(expr, Add | Mul) and all(is_polynomial_in(p, name) for p in expr.children)


def coefficients_in(expr: Expr, name: str) -> tuple[Expr, ...] | None:
    """Return ``(c0, c1, ...)`` with ``expr == c0 + c1*name + ...``, or None if not such."""
    by_degree: dict[int, list[Expr]] = {0: []}
    for term in terms_of(expand(expr)):
        split = _split_power(term, name)
        if split is None or split[0] > MAX_DEGREE:
            return None
        by_degree.setdefault(split[0], []).append(split[1])
    top = max(by_degree)
    found = [add(by_degree.get(degree, [])) for degree in range(top + 1)]
    while len(found) > 1 and found[-1] == ZERO:
        found.pop()
    return tuple(found)


def _split_power(term: Expr, name: str) -> tuple[int, Expr] | None:
    if name not in free_symbols(term):
        return 0, term
    degree = 0
    rest: list[Expr] = []
    if isinstance(term, Mul):
        rest.append(Num(term.coefficient))
    for factor in term.factors if isinstance(term, Mul) else (term,):
        base, count = factor, 1
        if isinstance(factor, Pow):
            base, count = factor.base, _whole_exponent(factor) or 0
        if base == Sym(name) and count:
            degree += count
        elif name in free_symbols(factor):
            return None
        else:
            rest.append(factor)
    return degree, multiply(rest)


def affine_in(expr: Expr, name: str) -> tuple[Expr, Expr] | None:
    """Return ``(slope, rest)`` with ``expr == slope*name + rest``, or None if not such."""
    found = coefficients_in(expr, name)
    if found is None or len(found) > 2:
        return None
    return (found[1] if len(found) == 2 else ZERO), found[0]


@cache
def power_sum_coefficients(degree: int) -> tuple[Rational, ...]:
    """Return the polynomial in n that is ``sum(i**degree for i in 0..n-1)``, by degree.

    From Bernoulli numbers (Faulhaber's formula); ``0**0`` counts as 1. As a polynomial it
    telescopes over negative n too.
    """
    found: list[Rational] = [0] * (degree + 2)
    for k in range(degree + 1):
        weight = Fraction(math.comb(degree + 1, k), degree + 1) * _bernoulli(k)
        found[degree + 1 - k] = exact(weight)
    return tuple(found)


@cache
def _bernoulli(n: int) -> Fraction:
    if n == 0:
        return Fraction(1)
    total = sum((math.comb(n + 1, k) * _bernoulli(k) for k in range(n)), Fraction(0))
    return -total / (n + 1)


def sum_below(coefficients: tuple[Expr, ...], bound: Expr) -> Expr:
    """Return the sum over ``i < bound`` of a polynomial in i, counted from i = 0.

    Differences of two such sums are sums over the range between, wherever it lies.
    """
    total: list[Expr] = []
    for degree, coefficient in enumerate(coefficients):
        for power, weight in enumerate(power_sum_coefficients(degree)):
            if weight:
                total.append(coefficient * Num(weight) * bound**power)
    return expand(add(total))


@lru_cache(maxsize=4096)
def closed_sum(expr: Sum) -> Expr | None:
    """Return a sum without its loop; None where its body is no polynomial in its index."""
    if not is_polynomial_in(expr.body, expr.index):
        return None
    coefficients = coefficients_in(expr.body, expr.index)
    if coefficients is None:
        return None
    total = sum_below(coefficients, expr.high + 1) - sum_below(coefficients, expr.low)
    return conditional(less_equal(expr.low, expr.high), total, ZERO)


def at(expr: Expr, name: str, value: Expr) -> Expr:
    """Return `expr` with `value` for `name`."""
    return substitute(expr, {name: value})


# Formulas as sums of products of some of their symbols, each with a factor of its own.

MOST_PRODUCTS = 2_000
"""Products that a formula is taken apart into at most."""

Names: TypeAlias = tuple[str, ...]
Factors: TypeAlias = dict[Names, Expr]


def by_products(expr: Expr, symbols: frozenset[str]) -> Factors | None:
    """Return the factor of every product of `symbols` in a formula; the number has no symbol.

    None where a symbol stands elsewhere than in sums, products, sides of choices and what is summed
    over a range, occurs twice in a product, or where there are too many products.
    """
    used = free_symbols(expr) & symbols
    # sums share most of their terms with others, whatever symbols those have besides
    return _by_products(expr, used) if used else {(): expr}


@lru_cache(maxsize=4096)
def _by_products(expr: Expr, symbols: frozenset[str]) -> Factors | None:
    match expr:
        case Sym():
            return {(expr.name,): ONE}
        case Add():
            total: dict[Names, list[Expr]] = {(): [Num(expr.constant)]}
            for term in expr.terms:
                part = by_products(term, symbols)
                if part is None:
                    return None
                for names, factor in part.items():
                    total.setdefault(names, []).append(factor)
            return _few({names: add(factors) for names, factors in total.items()})
        case Mul():
            product: Factors | None = {(): Num(expr.coefficient)}
            for factor in expr.factors:
                product = _multiplied(product, by_products(factor, symbols))
            return product
        case Conditional() if free_symbols(expr.test).isdisjoint(symbols):
            then, orelse = by_products(expr.then, symbols), by_products(expr.orelse, symbols)
            if then is None or orelse is None:
                return None
            return _few(
                {
                    names: conditional(expr.test, then.get(names, ZERO), orelse.get(names, ZERO))
                    for names in dict.fromkeys((*then, *orelse))
                }
            )
        case Sum() if symbols.isdisjoint(
            {expr.index} | free_symbols(expr.low) | free_symbols(expr.high)
        ):
            body = by_products(expr.body, symbols)
            if body is None:
                return None
            return {
                names: summation(expr.index, expr.low, expr.high, factor)
                for names, factor in body.items()
            }
        case _:
            return None


def _multiplied(left: Factors | None, right: Factors | None) -> Factors | None:
    if left is None or right is None or len(left) * len(right) > MOST_PRODUCTS:
        return None
    total: dict[Names, list[Expr]] = {}
    for names, factor in left.items():
        for others, other in right.items():
            together = tuple(sorted((*names, *others)))
            if len(set(together)) < len(together):
                return None
            total.setdefault(together, []).append(factor * other)
    return {names: add(factors) for names, factors in total.items()}


def _few(factors: Factors) -> Factors | None:
    kept = {names: factor for names, factor in factors.items() if not names or factor != ZERO}
    return kept if len(kept) <= MOST_PRODUCTS else None
