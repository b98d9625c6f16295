"""Exact evaluation: whole numbers and fractions stay exact, reductions are enumerated."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from costdb.expr.arithmetic import MAX_ITERATIONS, reduction_bound
from costdb.expr.errors import ExprError
from costdb.expr.exact import Value
from costdb.expr.functions import Reduction, Sum
from costdb.expr.interpret import Interpreter, exactly
from costdb.expr.names import free_symbols
from costdb.expr.nodes import Expr
from costdb.expr.range_sums import sums_over
from costdb.expr.scalar import compile_exactly
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
    return Evaluator((expr,)).at(bindings)[0]


class Evaluator:
    """Several formulas at one point after another.

    What they share is evaluated once, and parts that hold nothing of what changed from one point
    to the next keep their values: whoever looks for the ends of a price moves one coefficient
    after the other, and whoever looks for where it pays one size.

    Parameters
    ----------
    exprs : sequence of Expr
    """

    def __init__(self, exprs: Sequence[Expr]) -> None:
        self.exprs = exprs
        self.evaluation = _Evaluation({})

    def at(self, bindings: Mapping[str, Value]) -> list[Value]:
        """Return the values, each as :func:`evaluate` does.

        Raises
        ------
        ExprError
            As there, for the first that has none.
        """
        for name, value in bindings.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise ExprError(f"{name} = {value} is not a finite number")
        self._move_to(bindings)
        return [self._value(expr) for expr in self.exprs]

    def _move_to(self, bindings: Mapping[str, Value]) -> None:
        scope, known = self.evaluation.scope, self.evaluation.known
        if not known or scope.keys() != bindings.keys():
            self.evaluation = _Evaluation(dict(bindings))
            return
        # what is equal may still be whole in one place and a float in another
        changed = {
            name
            for name, value in bindings.items()
            if (before := scope[name]) != value or type(before) is not type(value)
        }
        for part in [part for part in known if not free_symbols(part).isdisjoint(changed)]:
            del known[part]
        scope.update(bindings)

    def _value(self, expr: Expr) -> Value:
        self.evaluation.iterations = 0
        try:
            value = self.evaluation.value(expr)
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
    products = whole_products(expr, factors)
    if products is None:
        return None
    names = products.sizes
    try:
        weights = compile_exactly(products.weights, names)(*(sizes[name] for name in names))
    except ExprError:
        # which the choices within may keep from mattering
        return None
    # rounded logarithms are whole, though they come as floats
    sums = [
        int(value) if isinstance(value, float) and value.is_integer() else value
        for value in sums_over(products.sums, low, high, sizes)
    ]
    total: dict[tuple[str, ...], Value] = {}
    for chosen, weight, place in products.terms:
        total[chosen] = total.get(chosen, 0) + weights[weight] * sums[place]
    return total


class _Evaluation(Interpreter):
    """Counts the terms that it enumerates."""

    def __init__(self, scope: dict[str, Value]) -> None:
        super().__init__(scope)
        self.iterations = 0

    def reduction(self, expr: Reduction) -> Value:
        """Return the value of a sum or maximum, compiled where that is worth it."""
        low = reduction_bound(self.value(expr.low), expr.index)
        high = reduction_bound(self.value(expr.high), expr.index)
        if high < low:
            return 0
        steps = high - low + 1
        if steps > COMPILED_FROM or steps * expr.body.size > COMPILED_PARTS:
            found = _at_once(expr, low, high, self.scope)
            if found is not None:
                return found
        self.spend(expr, steps)
        inner = _Evaluation({**self.scope, expr.index: low})
        inner.iterations = self.iterations
        result = inner.value(expr.body)
        for index in range(low + 1, high + 1):
            inner.scope[expr.index] = index
            inner.known.clear()
            value = inner.value(expr.body)
            result = result + value if isinstance(expr, Sum) else max(result, value)
        self.iterations = inner.iterations
        return exactly(result)

    def spend(self, expr: Reduction, steps: int) -> None:
        """Count the terms of an enumeration."""
        self.iterations += steps
        if self.iterations > MAX_ITERATIONS:
            raise ExprError(
                f"enumerating {expr.index!r} needs more than {MAX_ITERATIONS} terms, "
                "and no closed form is known"
            )


def _at_once(expr: Reduction, low: int, high: int, scope: Mapping[str, Value]) -> Value | None:
    """Return the value of a reduction over whole numbers, which only factors outside are not.

    None where it is not one.
    """
    names = free_symbols(expr.body) - {expr.index}
    if not names <= scope.keys():
        return None
    factors = frozenset(name for name in names if not isinstance(scope[name], int))
    amounts = amounts_in(expr, low, high, scope, factors)
    if amounts is None:
        return None
    total: Value = 0
    for chosen, amount in amounts.items():
        for name in chosen:
            amount *= scope[name]
        total += amount
    return exactly(total)
