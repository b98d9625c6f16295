"""Exact evaluation: whole numbers and fractions stay exact, reductions are enumerated."""

from __future__ import annotations

import math
from collections.abc import Mapping

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
from costdb.expr.nodes import Add, CeilDiv, Expr, FloorDiv, Mod, Mul, Num, Pow, Sym
from costdb.expr.scalar import compile_exactly, sums_over
from costdb.expr.whole_sums import whole_products

COMPILED_FROM, COMPILED_PARTS = 8, 4096
"""Terms, or parts of terms, from which on an enumeration is worth compiling."""


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


def amounts_in(
    expr: Reduction, low: int, high: int, sizes: Mapping[str, Value], factors: frozenset[str]
) -> dict[tuple[str, ...], Value] | None:
    """Return what every product of some factors is multiplied by in a reduction.

    Parameters
    ----------
    expr : Reduction
        Its own bounds are not looked at.
    low, high : int
    sizes : mapping of str to int, Fraction or float
        A value for every symbol in its body but `factors`.
    factors : frozenset of str

    Returns
    -------
    dict of tuple of str to number, or None
        None where it is not made of such products, see :mod:`costdb.expr.whole_sums`. Amounts
        are exact where the sizes are.
    """
    return _Evaluation().amounts(expr, low, high, sizes, factors)


def _exact(value: Value) -> Value:
    return value if isinstance(value, float) else normal(value)


class _Evaluation:
    def __init__(self) -> None:
        self.iterations = 0

    def value(self, expr: Expr, scope: Mapping[str, Value]) -> Value:
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

    def reduction(self, expr: Reduction, scope: Mapping[str, Value]) -> Value:
        low = reduction_bound(self.value(expr.low, scope), expr.index)
        high = reduction_bound(self.value(expr.high, scope), expr.index)
        if high < low:
            return 0
        steps = high - low + 1
        if steps > COMPILED_FROM or steps * expr.body.size > COMPILED_PARTS:
            found = self.at_once(expr, low, high, scope)
            if found is not None:
                return found
        self.iterations += steps
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

    def at_once(
        self, expr: Reduction, low: int, high: int, scope: Mapping[str, Value]
    ) -> Value | None:
        """Return the value of a reduction over whole numbers, which only factors outside are not.

        None where it is not one.
        """
        names = free_symbols(expr.body) - {expr.index}
        if not names <= scope.keys():
            return None
        factors = frozenset(name for name in names if not isinstance(scope[name], int))
        amounts = self.amounts(expr, low, high, scope, factors)
        if amounts is None:
            return None
        total: Value = 0
        for chosen, amount in amounts.items():
            for name in chosen:
                amount *= scope[name]
            total += amount
        return _exact(total)

    def amounts(
        self,
        expr: Reduction,
        low: int,
        high: int,
        scope: Mapping[str, Value],
        factors: frozenset[str],
    ) -> dict[tuple[str, ...], Value] | None:
        """Return what every product of factors is to be multiplied by in a reduction."""
        products = whole_products(expr, factors)
        if products is None:
            return None
        sizes = products.sizes
        try:
            weights = compile_exactly(products.weights, sizes)(*(scope[name] for name in sizes))
        except ExprError:
            # which the choices within may keep from mattering
            return None
        # rounded logarithms are whole, though they come as floats
        sums = [
            int(value) if isinstance(value, float) and value.is_integer() else value
            for value in sums_over(products.sums, low, high, scope)
        ]
        total: dict[tuple[str, ...], Value] = {}
        for names, weight, place in products.terms:
            total[names] = total.get(names, 0) + weights[weight] * sums[place]
        return total


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
