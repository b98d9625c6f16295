"""The value of a formula at one point: whole numbers stay whole, all else is a float.

Reductions are loops, in which only the parts that hold the index are evaluated again. A polynomial
is summed up by its closed form instead.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

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
    free_symbols,
)
from costdb.expr.nodes import Add, CeilDiv, Expr, FloorDiv, Mod, Mul, Num, Pow, Sym
from costdb.expr.numbers import (
    ExprError,
    Rational,
    Value,
    bounded_power,
    gcd_value,
    log2_value,
    quotient,
)
from costdb.expr.polynomials import Names, by_products, closed_sum

MAX_ITERATIONS = 10_000_000
"""Terms that one evaluation may enumerate before it is refused."""

MOST_REMEMBERED = 8192
"""Sums over ranges between numbers that are kept."""


def evaluate(expr: Expr, bindings: Mapping[str, Value]) -> Value:
    """Return the value of `expr`.

    Parameters
    ----------
    expr : Expr
    bindings : mapping of str to int or float
        A value for every free symbol.

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
        self.point = Point({})

    def at(self, bindings: Mapping[str, Value]) -> list[Value]:
        """Return the values, each as :func:`evaluate` does.

        Raises
        ------
        ExprError
            As there, for the first that has none.
        """
        self._move_to(bindings)
        return [self.point.at(expr) for expr in self.exprs]

    def along(
        self, variable: str, values: Sequence[int], bindings: Mapping[str, Value]
    ) -> list[list[Value]]:
        """Return the values at each of several whole values of one symbol.

        Raises
        ------
        ExprError
            As :func:`evaluate`, where one of them has none.
        """
        self._move_to({name: value for name, value in bindings.items() if name != variable})
        self.point.iterations = 0
        step = Point(self.point.scope, self.point, variable)
        return [[step.at(one) for one in self.exprs] for _ in map(step.moved, values)]

    def _move_to(self, bindings: Mapping[str, Value]) -> None:
        for name, value in bindings.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise ExprError(f"{name} = {value} is not a finite number")
        if self.point.scope.keys() == bindings.keys():
            self.point.move_to(bindings)
        else:
            self.point = Point(bindings)


_NOT_FINITE = "the value is not a finite number"


@contextmanager
def _refusing() -> Iterator[None]:
    """Say in a word of ours what has no value."""
    try:
        yield
    except ZeroDivisionError:
        raise ExprError("division by zero") from None
    except OverflowError:
        raise ExprError("the value is too large") from None


class Point:
    """What symbols stand for, and the values of the parts that were asked for.

    Parameters
    ----------
    bindings : mapping of str to int or float
    outer : Point, optional
        For the parts without `index`, the one symbol that moves here.
    index : str
    """

    def __init__(
        self, bindings: Mapping[str, Value], outer: Point | None = None, index: str = ""
    ) -> None:
        self.scope = dict(bindings)
        self.known: dict[Expr, Value] = {}
        self.iterations = 0
        self.outer = outer
        self.index = index

    def moved(self, value: int) -> Point:
        """Return this point, at another value of the index."""
        self.scope[self.index] = value
        self.known.clear()
        return self

    def move_to(self, bindings: Mapping[str, Value]) -> None:
        """Change values of the same symbols."""
        changed = {name for name, value in bindings.items() if self.scope[name] != value}
        if not changed:
            return
        self.scope.update(bindings)
        for part in [part for part in self.known if not free_symbols(part).isdisjoint(changed)]:
            del self.known[part]

    def at(self, expr: Expr) -> Value:
        """Return the value of a formula, which must be a finite number."""
        self.iterations = 0
        with _refusing():
            value: Value = self.value(expr)
        if isinstance(value, float) and not math.isfinite(value):
            raise ExprError(_NOT_FINITE)
        return value

    def amounts(self, expr: Sum, factors: frozenset[str]) -> dict[Names, Value] | None:
        """Return what every product of some symbols is multiplied by in a sum.

        The other symbols have values. None where it is not made of such products.
        """
        products = by_products(expr.body, factors)
        if products is None:
            return None
        return {
            names: self.at(Sum(expr.index, expr.low, expr.high, factor))
            for names, factor in products.items()
        }

    def value(self, expr: Expr) -> Value:
        """Return the value of a part; divisions by zero raise as Python's do."""
        if isinstance(expr, Num):
            return _number(expr.value)
        if isinstance(expr, Sym):
            try:
                return self.scope[expr.name]
            except KeyError:
                raise ExprError(f"{expr.name!r} has no value") from None
        found = self.known.get(expr)
        if found is None:
            if self.outer is not None and self.index not in free_symbols(expr):
                return self.outer.value(expr)
            found = self.known[expr] = self.compute(expr)
        return found

    def compute(self, expr: Expr) -> Value:
        """Return the value of a part from those of its parts."""
        if isinstance(expr, Add):
            return self.sum(expr)
        if isinstance(expr, Mul):
            coefficient = expr.coefficient
            return self.product(expr.factors, coefficient.numerator, coefficient.denominator)
        if isinstance(expr, Conditional):
            return self.choice(expr)
        if isinstance(expr, Reduction):
            low, high = (_whole(expr.index, self.value(end)) for end in (expr.low, expr.high))
            closed = closed_sum(expr) if isinstance(expr, Sum) else None
            return self.reduction(expr, low, high) if closed is None else self.value(closed)
        # comparisons are numbers, too
        found: Value = _FUNCTIONS[type(expr)](*map(self.value, expr.children)) + 0
        return found

    def sum(self, expr: Add) -> Value:
        """Return the value of a sum: over one denominator, so that a whole one comes out whole."""
        below = _denominator(expr)
        start = int(expr.constant * below)
        return _divided(sum((self.scaled(term, below) for term in expr.terms), start), below)

    def scaled(self, term: Expr, by: int) -> Value:
        """Return the value of a term times a multiple of its denominator."""
        if by != 1 and isinstance(term, Mul):
            coefficient = term.coefficient
            return self.product(
                term.factors, coefficient.numerator * (by // coefficient.denominator)
            )
        return self.value(term) * by

    def product(self, factors: Iterable[Expr], above: Value, below: Value = 1) -> Value:
        """Return the value of a product and a quotient, divided once."""
        for factor in factors:
            if isinstance(factor, Pow) and isinstance(factor.exponent, Num):
                power = factor.exponent.value
                if isinstance(power, int) and power < 0:
                    base = self.value(factor.base)
                    below = below * (base if power == -1 else bounded_power(base, -power))
                    continue
            above = above * self.value(factor)
        return _divided(above, below)

    def choice(self, expr: Conditional) -> Value:
        """Return the value of the side that is chosen."""
        return self.value(expr.then if self.value(expr.test) else expr.orelse)

    def reduction(self, expr: Reduction, low: int, high: int) -> Value:
        """Return the value of a sum or maximum over a range between numbers."""
        if high < low:
            return 0
        names = sorted(free_symbols(expr.body) - {expr.index})
        # a sum within a loop is another one in each of its steps
        if self.outer is not None or not self.scope.keys() >= set(names):
            return self.enumerated(expr, low, high)
        values = [self.scope[name] for name in names]
        key = (type(expr), expr.index, expr.body, low, high, *values)
        found = _remembered.pop(key, None)
        if found is None:
            found = self.enumerated(expr, low, high)
        _remembered[key] = found
        while len(_remembered) > MOST_REMEMBERED:
            del _remembered[next(iter(_remembered))]
        return found

    def enumerated(self, expr: Reduction, low: int, high: int) -> Value:
        """Return a reduction over a range that is not empty."""
        body = expr.body
        if expr.index not in free_symbols(body):
            value = self.value(body)
            return value * (high - low + 1) if isinstance(expr, Sum) else value
        self.spend(expr.index, high - low + 1)
        step = Point(self.scope, self, expr.index)
        values = (step.moved(place).value(body) for place in range(low, high + 1))
        return sum(values) if isinstance(expr, Sum) else max(values)

    def spend(self, index: str, steps: int) -> None:
        """Count the terms of an enumeration."""
        if self.outer is not None:
            self.outer.spend(index, steps)
            return
        self.iterations += steps
        if self.iterations > MAX_ITERATIONS:
            raise ExprError(
                f"enumerating {index!r} needs more than {MAX_ITERATIONS} terms, "
                "and no closed form is known"
            )


_remembered: dict[Hashable, Value] = {}
"""Sums of late, the longest unasked first: a price is made of those of its terms, variants share
most of theirs, and whoever compares prices asks for all of them again."""


def forget_sums() -> None:
    """Drop the sums that are remembered, as a measurement needs."""
    _remembered.clear()


def _whole(index: str, value: Value) -> int:
    """Return the end of a range, or refuse one that is not whole."""
    if value % 1 != 0:
        raise ExprError(f"a bound of {index!r} is {value}, which is not a whole number")
    return int(value)


def _denominator(expr: Add) -> int:
    """Return the least common denominator of what is in a sum."""
    parts = [term.coefficient for term in expr.terms if type(term) is Mul]
    return math.lcm(expr.constant.denominator, *[part.denominator for part in parts])


def _divided(above: Value, below: Value) -> Value:
    return above if type(below) is int and below == 1 else quotient(above, below)


def _number(value: Rational) -> int | float:
    return value if isinstance(value, int) else value.numerator / value.denominator


def _ceil_divided(above: Value, below: Value) -> Value:
    return -(-above // below)


_FUNCTIONS: dict[type[Expr], Callable[..., Any]] = {
    Pow: bounded_power,
    FloorDiv: operator.floordiv,
    CeilDiv: _ceil_divided,
    Mod: operator.mod,
    Max: max,
    Min: min,
    Log2: log2_value,
    Gcd: gcd_value,
    Less: operator.lt,
    LessEqual: operator.le,
    Equal: operator.eq,
}
"""What to do with the values of a node's children."""
