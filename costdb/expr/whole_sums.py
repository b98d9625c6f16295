"""Sums as products: exact sums over sizes, each times what the index of the sum does not change.

A price sums up amounts, which follow from sizes alone, times coefficients. Taken apart so, the
amounts are whole numbers (over a denominator), which are added exactly and as quickly as floats;
and they stay the same when coefficients change, or stand beside others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from costdb.expr.functions import Conditional, Log2, Reduction, Sum, conditional
from costdb.expr.names import free_symbols
from costdb.expr.nodes import (
    ONE,
    Add,
    CeilDiv,
    Expr,
    FloorDiv,
    Mul,
    Num,
    Pow,
    Sym,
    is_reciprocal,
    multiply,
    num,
    split_coefficient,
)
from costdb.expr.products import by_products

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Products:
    """A reduction as a sum of products.

    Attributes
    ----------
    sums : tuple of Reduction
        Different ones, over sizes alone; in them exact numbers never turn into anything else.
    weights : tuple of Expr
        Different formulas of sizes that the index does not change.
    sizes : tuple of str
        The names in `weights`.
    terms : tuple of (tuple of str, int, int)
        The factors of each product by their names, and the places of its weight and of its sum.
    """

    sums: tuple[Reduction, ...]
    weights: tuple[Expr, ...]
    sizes: tuple[str, ...]
    terms: tuple[tuple[Names, int, int], ...]


@lru_cache(maxsize=1024)
def whole_products(expr: Reduction, factors: frozenset[str]) -> Products | None:
    """Return a reduction taken apart, None where it is not made of such products.

    Parameters
    ----------
    expr : Reduction
    factors : frozenset of str
        Symbols in its body that may stand for other numbers than whole ones.
    """
    if not isinstance(expr, Sum):
        whole = not factors and stay_exact((expr.body,))
        return Products((expr,), (ONE,), (), (((), 0, 0),)) if whole else None
    lifting = _Lifting(factors | {expr.index})
    body = lifting.lifted(expr.body) if lifting.finds_any(expr.body) else expr.body
    reciprocals = {name: part for part, name in lifting.names.items()}
    products = by_products(body, factors.union(reciprocals))
    if products is None or not stay_exact(products.values()):
        return None
    sums: dict[Expr, int] = {}
    weights: dict[Expr, int] = {}
    terms = []
    for names, product in products.items():
        outside, inside = _split(product, expr.index)
        weight = multiply((outside, *(reciprocals[one] for one in names if one in reciprocals)))
        places = weights.setdefault(weight, len(weights)), sums.setdefault(inside, len(sums))
        terms.append((tuple([one for one in names if one not in reciprocals]), *places))
    return Products(
        tuple([Sum(expr.index, expr.low, expr.high, inside) for inside in sums]),
        tuple(weights),
        tuple(sorted(frozenset().union(*map(free_symbols, weights)))),
        tuple(terms),
    )


def _split(product: Expr, index: str) -> tuple[Expr, Expr]:
    """Return the factors of a product that an index does not change, and the others."""
    coefficient, rest = split_coefficient(product)
    factors = rest.factors if isinstance(rest, Mul) else (rest,)
    outside = [factor for factor in factors if index not in free_symbols(factor)]
    inside = [factor for factor in factors if index in free_symbols(factor)]
    return multiply((num(coefficient), *outside)), multiply(inside)


def sums_whole_numbers(expr: Expr, whole: frozenset[str]) -> bool:
    """Return whether all that `expr` enumerates are whole numbers where the names in `whole` are.

    Factors outside of what is enumerated may be any numbers. Other sums are evaluated exactly too,
    but some hundred times more slowly.
    """
    pending, seen = [expr], {expr}
    while pending:
        part = pending.pop()
        if isinstance(part, Reduction):
            names = free_symbols(part.body) - {part.index}
            if whole_products(part, names - whole) is None:
                return False
        else:
            fresh = [child for child in part.children if child not in seen]
            seen.update(fresh)
            pending += fresh
    return True


class _Lifting:
    """Puts names in place of the reciprocals that hold none of some symbols."""

    def __init__(self, symbols: frozenset[str]) -> None:
        self.symbols = symbols
        self.names: dict[Expr, str] = {}
        self.known: dict[Expr, Expr] = {}

    def finds_any(self, expr: Expr) -> bool:
        """Tell whether there is anything to name: at given sizes hardly ever."""
        pending, seen = [expr], {expr}
        while pending:
            part = pending.pop()
            if isinstance(part, Add | Mul | Conditional):
                fresh = [child for child in part.children if child not in seen]
                seen.update(fresh)
                pending += fresh
            elif is_reciprocal(part) and free_symbols(part).isdisjoint(self.symbols):
                return True
        return False

    def lifted(self, expr: Expr) -> Expr:
        if is_reciprocal(expr) and free_symbols(expr).isdisjoint(self.symbols):
            # no name of a formula begins so
            return Sym(self.names.setdefault(expr, f"~{len(self.names)}"))
        if not isinstance(expr, Add | Mul | Conditional):
            return expr
        known = self.known.get(expr)
        if known is None:
            known = self.known[expr] = self._lifted(expr)
        return known

    def _lifted(self, expr: Expr) -> Expr:
        if isinstance(expr, Conditional):
            # a test is no place for a factor
            then, orelse = self.lifted(expr.then), self.lifted(expr.orelse)
            if then is expr.then and orelse is expr.orelse:
                return expr
            return conditional(expr.test, then, orelse)
        children = tuple([self.lifted(child) for child in expr.children])
        same = all(one is other for one, other in zip(children, expr.children, strict=True))
        return expr if same else expr.rebuild(children)


def stay_exact(exprs: Iterable[Expr]) -> bool:
    """Return whether exact numbers stay exact in all of some formulas, which share many parts."""
    seen = dict.fromkeys(exprs)
    pending = list(seen)
    while pending:
        part = pending.pop()
        inner = part.children
        if isinstance(part, Pow):
            if not (isinstance(part.exponent, Num) and part.exponent.value >= 0):
                return False
        elif isinstance(part, CeilDiv | FloorDiv):
            if part.divisor == ONE and isinstance(part.dividend, Log2):
                # rounded, it is whole
                inner = part.dividend.children
        elif isinstance(part, Log2 | Reduction):
            # the terms of reductions within one another are counted together
            return False
        for child in inner:
            if child.children and child not in seen:
                seen[child] = None
                pending.append(child)
    return True
