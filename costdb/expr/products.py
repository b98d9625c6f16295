"""Formulas as sums of products of some of their symbols, each with a factor of its own."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

from costdb.expr.functions import Conditional, conditional
from costdb.expr.names import free_symbols
from costdb.expr.nodes import ONE, ZERO, Add, Expr, Mul, Num, Sym, add

MOST_PRODUCTS = 200
"""Products that a formula is taken apart into at most."""

Names: TypeAlias = tuple[str, ...]
Factors: TypeAlias = dict[Names, Expr]


def by_products(expr: Expr, symbols: frozenset[str]) -> Factors | None:
    """Return the factor of every product of `symbols` in a formula; the number has no symbol.

    None where a symbol stands elsewhere than in sums, products and sides of choices, occurs
    twice in a product, or where there are too many products.
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
