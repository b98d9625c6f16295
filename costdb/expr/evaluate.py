"""Exact evaluation: whole numbers and fractions stay exact, reductions are enumerated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

from costdb.expr.arithmetic import MAX_ITERATIONS, bounded_power, normal, reduction_bound
from costdb.expr.errors import ExprError
from costdb.expr.exact import Value
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
    gcd_value,
    log2_value,
)
from costdb.expr.names import free_symbols
from costdb.expr.nodes import ONE, Add, CeilDiv, Expr, FloorDiv, Mod, Mul, Num, Pow, Sym
from costdb.expr.products import by_products
from costdb.expr.scalar import sums_over

COMPILED_FROM = 8
"""Terms from which on an enumeration is worth compiling."""


def evaluate(expr: Expr, bindings: Mapping[str, Value]) -> Value:
    """Return the value of `expr`.

    Parameters
    ----------
    expr : Expr
    bindings : mapping of str to int, Fraction or float
        A value for every free symbol. Exact values give an exact result, unless the
        expression takes a logarithm or a root.

    Raises
    ------
    ExprError
        For an unbound name, a division by zero, a result that is not finite, and an
        enumeration of more than `MAX_ITERATIONS` terms.
    """
    scope: dict[str, Value] = {}
    for name, value in bindings.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ExprError(f"{name} = {value} is not a finite number")
        scope[name] = value
    try:
        value = _Evaluation().value(expr, scope)
    except ZeroDivisionError:
        raise ExprError("division by zero") from None
    except OverflowError:
        raise ExprError("the value is too large") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise ExprError("the value is not a finite number")
    return value


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
            if _whole_products(part, names - whole) is None:
                return False
        else:
            fresh = [child for child in part.children if child not in seen]
            seen.update(fresh)
            pending += fresh
    return True


def _exact(value: Value) -> Value:
    return value if isinstance(value, float) else normal(value)


class _Evaluation:
    def __init__(self) -> None:
        self.iterations = 0

    def value(self, expr: Expr, scope: dict[str, Value]) -> Value:
        match expr:
            case Num():
                return expr.value
            case Sym():
                try:
                    return scope[expr.name]
                except KeyError:
                    raise ExprError(f"{expr.name!r} has no value") from None
            case Add():
                total: Value = expr.constant
                for term in expr.terms:
                    total += self.value(term, scope)
                return _exact(total)
            case Mul():
                product: Value = expr.coefficient
                for factor in expr.factors:
                    product *= self.value(factor, scope)
                return _exact(product)
            case Conditional():
                test = self.value(expr.test, scope)
                return self.value(expr.then if test else expr.orelse, scope)
            case Reduction():
                return self.reduction(expr, scope)
            case _:
                args = [self.value(child, scope) for child in expr.children]
                return _exact(_apply(expr, args))

    def reduction(self, expr: Reduction, scope: dict[str, Value]) -> Value:
        low = reduction_bound(self.value(expr.low, scope), expr.index)
        high = reduction_bound(self.value(expr.high, scope), expr.index)
        if high < low:
            return 0
        if high - low >= COMPILED_FROM:
            found = _at_once(expr, low, high, scope)
            if found is not None:
                return found
        self.iterations += high - low + 1
        if self.iterations > MAX_ITERATIONS:
            raise ExprError(
                f"enumerating {expr.index!r} needs more than {MAX_ITERATIONS} terms, "
                "and no closed form is known"
            )
        inner = dict(scope)
        inner[expr.index] = low
        result = self.value(expr.body, inner)
        for index in range(low + 1, high + 1):
            inner[expr.index] = index
            value = self.value(expr.body, inner)
            result = result + value if isinstance(expr, Sum) else max(result, value)
        return _exact(result)


def _at_once(expr: Reduction, low: int, high: int, scope: Mapping[str, Value]) -> Value | None:
    """Return the value of a reduction over whole numbers, which only factors outside are not.

    None where it is not one.
    """
    names = free_symbols(expr.body) - {expr.index}
    if not names <= scope.keys():
        return None
    factors = frozenset(name for name in names if not isinstance(scope[name], int))
    products = _whole_products(expr, factors)
    if products is None:
        return None
    found = sums_over(tuple(products.values()), low, high, scope)
    total: Value = 0
    for chosen, value in zip(products, found, strict=True):
        # rounded logarithms are whole, though they come as floats
        product: Value = int(value) if isinstance(value, float) and value.is_integer() else value
        for name in chosen:
            product *= scope[name]
        total += product
    return _exact(total)


@lru_cache(maxsize=1024)
def _whole_products(
    expr: Reduction, factors: frozenset[str]
) -> dict[tuple[str, ...], Reduction] | None:
    """Return reductions in which exact numbers never turn into anything else."""
    if not isinstance(expr, Sum):
        return {(): expr} if not factors and _stays_exact(expr.body) else None
    products = by_products(expr.body, factors)
    if products is None or not all(map(_stays_exact, products.values())):
        return None
    return {
        names: Sum(expr.index, expr.low, expr.high, factor) for names, factor in products.items()
    }


def _stays_exact(expr: Expr) -> bool:
    pending, seen = [expr], {expr}
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
                seen.add(child)
                pending.append(child)
    return True


def _apply(expr: Expr, args: list[Value]) -> Value:
    match expr:
        case Pow():
            return bounded_power(*args)
        case FloorDiv():
            return math.floor(args[0] // args[1])
        case CeilDiv():
            return math.ceil(-(-args[0] // args[1]))
        case Mod():
            return args[0] % args[1]
        case Max():
            return max(args)
        case Min():
            return min(args)
        case Log2():
            return log2_value(args[0])
        case Gcd():
            return gcd_value(*args)
        case Less():
            return int(args[0] < args[1])
        case LessEqual():
            return int(args[0] <= args[1])
        case Equal():
            return int(args[0] == args[1])
        case _:
            raise ExprError(f"{type(expr).__name__} has no value")
