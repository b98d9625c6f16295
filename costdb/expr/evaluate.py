"""The value of a formula at one point: whole numbers stay whole, all else is a float.

Reductions are loops over columns: a part of a body that holds the index has a list of values, one
for each step, and every operation goes through its lists at once. A polynomial is summed up by its
closed form instead. Where only some steps reach a side of a choice, only those are evaluated, so
that what is guarded against is never computed. Of more than `STEPS` terms so many are evaluated,
spread evenly, and stand for all: a sum takes a bounded time, and is then an estimate.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from itertools import compress, islice, repeat
from typing import Any, TypeAlias

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
from costdb.expr.nodes import (
    Add,
    CeilDiv,
    Expr,
    ExprError,
    FloorDiv,
    Mod,
    Mul,
    Num,
    Pow,
    Rational,
    Sym,
    Value,
    bounded_power,
    gcd_value,
    log2_value,
    quotient,
)
from costdb.expr.polynomials import closed_sum

STEPS = 4096
"""Terms of a reduction without closed form that are evaluated; more are sampled."""

_LEAST = 16
"""Terms of a maximum that are evaluated wherever it has as many."""

_GOLDEN = (5**0.5 - 1) / 2
"""Square multiples of it lie within 1 as if by chance: samples so placed follow no period."""

Column: TypeAlias = list[Value]


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
        For an unbound name, a division by zero, and a result that is not finite.
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
    steps : int
        Terms of a reduction without closed form that are evaluated; more are sampled.
    """

    def __init__(self, exprs: Sequence[Expr], steps: int = STEPS) -> None:
        self.exprs = exprs
        self.steps = steps
        self.point = Point({}, steps)

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
    ) -> list[Column]:
        """Return the values of each for several whole values of one symbol, at once.

        Raises
        ------
        ExprError
            As :func:`evaluate`, where one of them has none.
        """
        self._move_to({name: value for name, value in bindings.items() if name != variable})
        steps = _Steps(self.point, {variable: list(values)}, self.steps * len(values))
        with _refusing():
            found = [list(islice(_each(steps.value(one)), len(values))) for one in self.exprs]
        if not all(math.isfinite(value) for column in found for value in column):
            raise ExprError(_NOT_FINITE)
        return found

    def _move_to(self, bindings: Mapping[str, Value]) -> None:
        for name, value in bindings.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise ExprError(f"{name} = {value} is not a finite number")
        if self.point.scope.keys() == bindings.keys():
            self.point.move_to(bindings)
        else:
            self.point = Point(bindings, self.steps)


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
    steps : int
        As of an :class:`Evaluator`.
    """

    def __init__(self, bindings: Mapping[str, Value], steps: int) -> None:
        self.steps = steps
        self.scope = dict(bindings)
        self.known: dict[Expr, Any] = {}

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
        with _refusing():
            value: Value = self.value(expr)
        if isinstance(value, float) and not math.isfinite(value):
            raise ExprError(_NOT_FINITE)
        return value

    def value(self, expr: Expr) -> Any:
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
            found = self.known[expr] = self.compute(expr)
        return found

    def compute(self, expr: Expr) -> Any:
        """Return the value of a part from those of its parts."""
        if isinstance(expr, Add):
            return self.sum(expr)
        if isinstance(expr, Mul):
            coefficient = expr.coefficient
            return self.product(expr.factors, coefficient.numerator, coefficient.denominator)
        if isinstance(expr, Conditional):
            return self.choice(expr)
        if isinstance(expr, Reduction):
            low, high = (
                _applied(partial(_whole, expr.index), [self.value(end)])
                for end in (expr.low, expr.high)
            )
            closed = closed_sum(expr) if isinstance(expr, Sum) else None
            return self.reduction(expr, low, high) if closed is None else self.value(closed)
        return _applied(_FUNCTIONS[type(expr)], [self.value(child) for child in expr.children])

    def sum(self, expr: Add) -> Any:
        """Return the value of a sum: over one denominator, so that a whole one comes out whole."""
        below = _denominator(expr)
        values = [self.scaled(term, below) for term in expr.terms]
        return _divided(_added(values, int(expr.constant * below)), below)

    def scaled(self, term: Expr, by: int) -> Any:
        """Return the value of a term times a multiple of its denominator."""
        if by == 1:
            return self.value(term)
        if isinstance(term, Mul):
            coefficient = term.coefficient
            return self.product(
                term.factors, coefficient.numerator * (by // coefficient.denominator)
            )
        return _times(self.value(term), by)

    def product(self, factors: Iterable[Expr], above: Any, below: Any = 1) -> Any:
        """Return the value of a product and a quotient, divided once."""
        for factor in factors:
            if isinstance(factor, Pow) and isinstance(factor.exponent, Num):
                power = factor.exponent.value
                if isinstance(power, int) and power < 0:
                    base = self.value(factor.base)
                    part = base if power == -1 else _applied(bounded_power, [base, -power])
                    below = _times(below, part)
                    continue
            above = _times(above, self.value(factor))
        return _divided(above, below)

    def choice(self, expr: Conditional) -> Any:
        """Return the value of the side that is chosen."""
        return self.value(expr.then if self.value(expr.test) else expr.orelse)

    def reduction(self, expr: Reduction, low: Any, high: Any) -> Any:
        """Return a sum or maximum over a range between numbers."""
        if high < low:
            return 0
        (places,) = _sampled(expr, [range(low, high + 1)], self.steps)
        steps = _Steps(self, {expr.index: places}, self.steps)
        return _gathered(expr, steps.value(expr.body), [len(places)], [high - low + 1])[0]


class _Steps(Point):
    """Several steps of loops at once: a part that holds what moves has a column of values.

    Parameters
    ----------
    point : Point
        For what does not move.
    columns : mapping of str to list of int
        The values of indices at each step.
    most : int
        Steps of a reduction that are evaluated, of all of these together.
    outer : _Steps, optional
        The steps around these, for what does not hold the indices in `columns`.
    places : sequence of int
        For each step, which one of `outer` it belongs to.
    """

    def __init__(
        self,
        point: Point,
        columns: dict[str, list[int]],
        most: int,
        outer: _Steps | None = None,
        places: Sequence[int] = (),
    ) -> None:
        self.point = point
        self.steps = most
        self.outer = outer
        self.places = places
        self.own = frozenset(columns)
        self.moving: frozenset[str] = self.own | (
            outer.moving if outer is not None else frozenset()
        )
        self.known = {Sym(name): column for name, column in columns.items()}
        self.sides: dict[Expr, tuple[_Steps, _Steps]] = {}

    def value(self, expr: Expr) -> Any:
        """Return a column; one value for a part that does not move."""
        found = self.known.get(expr)
        if found is not None:
            return found
        names = free_symbols(expr)
        if names.isdisjoint(self.moving):
            return self.point.value(expr)
        column: Any = None
        # that there are only some of the steps may keep a part from being evaluated at the others
        if (
            self.outer is not None
            and names.isdisjoint(self.own)
            and (self.own or isinstance(expr, Sym) or expr in self.outer.known)
        ):
            column = self.outer.value(expr)
        if column is None:
            column = self.compute(expr)
        elif isinstance(column, list):
            column = [column[place] for place in self.places]
        self.known[expr] = column
        return column

    def choice(self, expr: Conditional) -> Any:
        """Return the values of the sides that are chosen, each evaluated where it is."""
        one, other = self.chosen(expr.test)
        if not one.count or not other.count:
            return self.value(expr.then if one.count else expr.orelse)
        then, orelse = _each(one.value(expr.then)), _each(other.value(expr.orelse))
        return [next(then) if passed else next(orelse) for passed in self.value(expr.test)]

    def chosen(self, test: Expr) -> tuple[_Steps, _Steps]:
        """Return the steps at which a test is passed, and the others."""
        if test not in self.sides:
            passed = list(islice(_each(self.value(test)), self.count))
            if all(passed) or not any(passed):
                sides = (self, self.part(())) if passed[0] else (self.part(()), self)
            else:
                places = range(self.count)
                sides = (
                    self.part(list(compress(places, passed))),
                    self.part(list(compress(places, map(operator.not_, passed)))),
                )
            self.sides[test] = sides
        return self.sides[test]

    def compute(self, expr: Expr) -> Any:
        """Return a column."""
        return super().compute(expr) if self.count else []

    def part(self, places: Sequence[int]) -> _Steps:
        """Return some of these steps."""
        return _Steps(self.point, {}, self.steps, self, places)

    def reduction(self, expr: Reduction, low: Any, high: Any) -> Any:
        """Return a reduction for each step, over the steps of all of them."""
        ends = islice(zip(_each(low), _each(high), strict=False), self.count)
        ranges = [range(first, last + 1) for first, last in ends]
        found: Column = [0] * len(ranges)
        rows = [row for row, steps in enumerate(ranges) if steps]
        if not rows:
            return found
        places = _sampled(expr, [ranges[row] for row in rows], self.steps)
        counts = [len(some) for some in places]
        inner = _Steps(
            self.point,
            {expr.index: [place for some in places for place in some]},
            self.steps,
            self.part(rows),
            [at for at, count in enumerate(counts) for _ in range(count)],
        )
        lengths = [len(ranges[row]) for row in rows]
        values = _gathered(expr, inner.value(expr.body), counts, lengths)
        for row, value in zip(rows, values, strict=True):
            found[row] = value
        return found

    @property
    def count(self) -> int:
        """How many steps there are."""
        return len(self.places) if self.outer is not None else len(next(iter(self.known.values())))


def _sampled(expr: Reduction, ranges: Sequence[range], most: int) -> list[list[int]]:
    """Return the places of ranges that are evaluated: all, or of each one so many that fit."""
    if sum(map(len, ranges)) <= most:
        return [list(steps) for steps in ranges]
    share = max(most // len(ranges), 1 if isinstance(expr, Sum) else _LEAST)
    found = []
    for row, steps in enumerate(ranges):
        length = len(steps)
        if length <= share:
            found.append(list(steps))
            continue
        places = [
            steps[int((at + (at + row) ** 2 * _GOLDEN % 1) * length / share)] for at in range(share)
        ]
        if not isinstance(expr, Sum):
            places[0], places[-1] = steps[0], steps[-1]
        found.append(places)
    return found


def _gathered(
    expr: Reduction, values: Any, counts: Sequence[int], lengths: Sequence[int]
) -> Column:
    """Return the sums, or the greatest values, of so many terms that were evaluated of so many."""
    is_sum = isinstance(expr, Sum)
    if not isinstance(values, list):
        return [values * length if is_sum else values for length in lengths]
    rest = iter(values)
    gather: Callable[[Iterable[Value]], Value] = sum if is_sum else max
    # comparisons are numbers, too
    found = [gather(islice(rest, count)) + 0 for count in counts]
    if not is_sum or counts == lengths:
        return found
    parts = zip(found, counts, lengths, strict=True)
    return [one if n == of else one * of / n for one, n, of in parts]


def _each(value: Any) -> Iterator[Any]:
    """Return the values of a column, or a number again and again."""
    return iter(value) if isinstance(value, list) else repeat(value)


def _applied(function: Callable[..., Any], values: Sequence[Any]) -> Any:
    """Return a function of numbers, or of columns and numbers step by step."""
    if any(isinstance(value, list) for value in values):
        return list(map(function, *map(_each, values)))
    found = function(*values)
    return int(found) if isinstance(found, bool) else found


def _added(values: Sequence[Any], constant: Value) -> Any:
    columns = [value for value in values if isinstance(value, list)]
    number = sum([value for value in values if not isinstance(value, list)], constant)
    if not columns:
        return number
    total = reduce(lambda one, other: list(map(operator.add, one, other)), columns)
    return total if number == 0 else [value + number for value in total]


def _times(left: Any, right: Any) -> Any:
    if not isinstance(left, list):
        if left == 1:
            return right
        left, right = right, left
    if not isinstance(left, list):
        return left * right
    if isinstance(right, list):
        return list(map(operator.mul, left, right))
    return left if right == 1 else [value * right for value in left]


def _whole(index: str, value: Value) -> int:
    """Return the end of a range, or refuse one that is not whole."""
    if value % 1 != 0:
        raise ExprError(f"a bound of {index!r} is {value}, which is not a whole number")
    return int(value)


def _denominator(expr: Add) -> int:
    """Return the least common denominator of what is in a sum."""
    parts = [term.coefficient for term in expr.terms if type(term) is Mul]
    return math.lcm(expr.constant.denominator, *[part.denominator for part in parts])


def _divided(above: Any, below: Any) -> Any:
    if type(below) is int and below == 1:
        return above
    if isinstance(above, list) or isinstance(below, list):
        return list(map(operator.truediv, _each(above), _each(below)))
    return quotient(above, below)


def _number(value: Rational) -> int | float:
    return value if isinstance(value, int) else value.numerator / value.denominator


_FUNCTIONS: dict[type[Expr], Callable[..., Any]] = {
    Pow: bounded_power,
    FloorDiv: operator.floordiv,
    CeilDiv: lambda above, below: -(-above // below),
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
