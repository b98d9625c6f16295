"""Where the better of two prices changes along one size: proved for all of a range, or searched."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from costdb.estimate import Priced
from costdb.evaluate import Bindings, check_bindings, merge_coefficients
from costdb.expr import Expr, ExprError, compile_scalar, evaluate, free_symbols, num, substitute
from costdb.expr.differences import difference_along
from costdb.expr.exact import exact
from costdb.expr.functions import Reduction
from costdb.expr.pieces import PIECED_FROM
from costdb.expr.scalar import ScalarFunction
from costdb.expr.whole_sums import sums_whole_numbers

_DENSE_VALUES = 256
_GEOMETRIC_STEP = 1.08
_FEW_VALUES = 16
_WIDE_STEP = 1.5
_ROUNDING = 1e-9
"""Relative difference of two prices below which their order is found exactly."""

PROVED_TO = 2**24
"""Sizes up to here are decided without exception, where the formulas allow it."""

_TRIED_QUICK, _TRIED_SLOW = 256, 2
"""Values that are sooner tried one by one than bounded."""
_FEWEST_PROVING = 16 * _TRIED_SLOW
"""How many values a proof tries at the least."""
_SLOW_TO = 4096
"""Where sums are enumerated, larger values are not tried."""

MOST_WORK = 256_000_000
"""Parts of terms of sums without closed form that a search, or a proof, may evaluate: a count and
no time, so that every machine, and every run, searches equally far."""

_OF_FLOATS, _EXACTLY = 2, 200
"""How much more a term takes where it holds other than whole numbers; and where it is then needed
exactly."""

_TIES = 32
"""Prices as near one another as floats round that may be taken exactly, of that work."""


@dataclass(frozen=True, slots=True)
class Crossover:
    """Where the better of two prices changes, along one variable.

    Attributes
    ----------
    variable : str
        What varies.
    flips : tuple of int
        Each the first value at which the other price is the better one, ascending.
    after_wins_first : bool
        Whether ``after`` is strictly cheaper at `low`.
    low, high : int
        Values scanned, inclusive; `high` is less than was asked for where the sums that have no
        closed form would take more than `MOST_WORK`.
    dense_to : int
        Every value up to this one was tried, or decided by bounds of the formulas; above it,
        steps of some per cent (of a half, where formulas hold sums without closed form), with an
        exact search between two that differ.
    """

    variable: str
    flips: tuple[int, ...]
    after_wins_first: bool
    low: int
    high: int
    dense_to: int

    @property
    def proved(self) -> bool:
        """Whether the better price is known at every value of the range."""
        return self.dense_to == self.high


def crossover(
    before: Priced,
    after: Priced,
    variable: str,
    bindings: Bindings,
    low: int = 1,
    high: int = 1_000_000,
) -> Crossover:
    """Return the whole values of `variable` at which the better price changes.

    Coefficients stand at their middle. A binding of `variable` itself is ignored. Two flips
    between neighbouring steps above `dense_to` go unseen. Prices that differ by less than a
    billionth count as equal where they hold sums, not of whole numbers, that are too long to be
    taken exactly.

    Raises
    ------
    ExprError
        A size other than `variable` is unbound, or a formula has no value somewhere.
    """
    if low > high:
        raise ExprError(f"the range {low}..{high} of {variable!r} is empty")
    values = _values(before, after, bindings)
    budget = _Budget(before, after, variable, values)
    after_wins, slow = _comparison(before, after, variable, values, budget)
    dense, step = (_FEW_VALUES, _WIDE_STEP) if slow else (_DENSE_VALUES, _GEOMETRIC_STEP)
    dense_to = min(high, low + dense - 1)
    stops = list(range(low, dense_to + 1))
    while stops[-1] < high:
        stops.append(min(high, math.ceil(stops[-1] * step)))
    budget.take(low)
    first = won = after_wins(low)
    flips: list[int] = []
    for left, right in pairwise(stops):
        if not budget.take(right):
            high = left
            break
        then = after_wins(right)
        if won != then:
            last, found = _last_alike(after_wins, won, left, right, budget)
            if not found:
                # it changes somewhere above, but not up to here
                high = last
                break
            flips.append(last + 1)
        won = then
    return Crossover(variable, tuple(flips), first, low, high, min(high, dense_to))


def proved_crossover(
    before: Priced,
    after: Priced,
    variable: str,
    bindings: Bindings,
    low: int = 1,
    high: int = PROVED_TO,
) -> Crossover | None:
    """Return what :func:`crossover` does, with every value of the range decided.

    None where the formulas do not allow that: what they do between two values is not known then.

    Raises
    ------
    ExprError
        A size is not a finite number, or has no value at the start of the range.
    """
    from costdb.envelope.signs import sign_changes

    values = _values(before, after, bindings)
    budget = _Budget(before, after, variable, values)
    after_wins, slow = _comparison(before, after, variable, values, budget)
    fractions = {name: exact(value) for name, value in values.items() if name != variable}
    if slow and budget.work(low) * _FEWEST_PROVING > MOST_WORK:
        return None

    def tried(value: int) -> bool:
        if not budget.take(value):
            raise ExprError(f"the sums at {variable} = {value} are too long to prove anything")
        return after_wins(value)

    few, tried_to = (_TRIED_SLOW, _SLOW_TO) if slow else (_TRIED_QUICK, high)
    try:
        gain = substitute(before.microseconds - after.microseconds, fractions)
        found = sign_changes(gain, variable, low, high, tried, few, tried_to)
    except ExprError:
        return None
    # prices that were only taken as equal prove nothing
    decided = found is not None and not budget.ties
    return Crossover(variable, found[1], found[0], low, high, high) if found and decided else None


class _Budget:
    """What is left of a number of parts of terms to evaluate.

    It is counted from the formulas alone: what happens to be remembered of earlier sums would make
    an answer depend on the questions before it.
    """

    def __init__(self, before: Priced, after: Priced, variable: str, values: Bindings) -> None:
        both = before.microseconds, after.microseconds
        whole = frozenset(name for name, value in values.items() if isinstance(value, int))
        self.of_whole = all(sums_whole_numbers(one, whole | {variable}) for one in both)
        self.left = MOST_WORK
        self.ties = 0
        self.variable = variable
        self.values = values
        self.sums = _outer_sums(both)

    def work(self, value: int) -> int:
        """Return what both prices take at a value."""
        point = {**self.values, self.variable: value}
        terms = sum(_work(one, point) for one in self.sums)
        return terms if self.of_whole else _OF_FLOATS * terms

    def is_long(self, value: int) -> bool:
        """Tell whether the prices at a value are too long to be taken exactly."""
        return not self.of_whole and _EXACTLY * self.work(value) > MOST_WORK // _TIES

    def take(self, value: int, times: int = 1) -> bool:
        """Take both prices at a value, some times, off; False where that is more than is left."""
        if self.sums:
            self.left -= times * self.work(value)
        return self.left >= 0


def _outer_sums(formulas: Iterable[Expr]) -> list[tuple[Reduction, int]]:
    """Return the reductions that lie in no other one, with the distinct parts of their bodies."""
    pending, found = list(formulas), dict.fromkeys(formulas)
    sums = []
    while pending:
        part = pending.pop()
        if isinstance(part, Reduction):
            sums.append((part, len(_parts(part.body))))
            continue
        fresh = [child for child in part.children if child not in found]
        found.update(dict.fromkeys(fresh))
        pending += fresh
    return sums


def _parts(expr: Expr) -> set[Expr]:
    pending, seen = [expr], {expr}
    while pending:
        fresh = [child for child in pending.pop().children if child not in seen]
        seen.update(fresh)
        pending += fresh
    return seen


def _work(one: tuple[Reduction, int], point: Bindings) -> int:
    part, size = one
    try:
        steps = int(evaluate(part.high, point)) - int(evaluate(part.low, point)) + 1
    except ExprError:
        # such as a range that a choice keeps from being evaluated
        return 0
    # longer ones are taken piece by piece
    return size * min(max(0, steps), PIECED_FROM)


def _values(before: Priced, after: Priced, bindings: Bindings) -> dict[str, int | float]:
    merged = merge_coefficients((before.coefficients, after.coefficients))
    return {**bindings, **{name: quantity.value for name, quantity in merged.items()}}


def enumerates(expr: Expr) -> bool:
    """Return whether a formula holds a sum or maximum that has no closed form."""
    pending, seen = [expr], {expr}
    while pending:
        part = pending.pop()
        if isinstance(part, Reduction):
            return True
        fresh = [child for child in part.children if child not in seen]
        seen.update(fresh)
        pending += fresh
    return False


def _comparison(
    one: Priced, other: Priced, variable: str, values: Bindings, budget: _Budget
) -> tuple[Callable[[int], bool], bool]:
    """Return a test of whether `other` is less at a value of `variable`, and whether it is slow.

    Floats decide where the difference is far above their rounding, exact arithmetic elsewhere.
    """
    before, after = one.microseconds, other.microseconds
    values = {name: value for name, value in values.items() if name != variable}
    check_bindings(values)
    difference = before - after
    if difference == num(0):
        return lambda value: False, False
    fractions = {name: exact(value) for name, value in values.items()}
    # a sum that has no closed form takes time in proportion to its range, at every value
    slow = enumerates(before) or enumerates(after)
    whole = frozenset(name for name, value in values.items() if isinstance(value, int))
    if slow and all(sums_whole_numbers(one, whole | {variable}) for one in (before, after)):
        # such sums are as quick as those of floats, and remembered where the same price is
        # compared with several others
        def after_is_less(value: int) -> bool:
            loose = {**values, variable: value}
            one, other = float(evaluate(before, loose)), float(evaluate(after, loose))
            if abs(one - other) > _ROUNDING * abs(one):
                return one > other
            point = {**fractions, variable: value}
            return evaluate(before, point) > evaluate(after, point)

        return after_is_less, True
    names = tuple(sorted(free_symbols(before) | free_symbols(after)))
    unbound = [name for name in names if name != variable and name not in values]
    if unbound:
        raise ExprError(f"{unbound[0]!r} has no value")
    gain, size = _compiled(difference, names), _compiled(before, names)
    point: list[int | float] = [values.get(name, 0) for name in names]
    place = names.index(variable) if variable in names else None
    exactly = difference_along(before, after, variable, fractions)

    def after_wins(value: int) -> bool:
        if place is not None:
            point[place] = value
        found = float(gain(*point))
        if abs(found) > _ROUNDING * abs(float(size(*point))):
            return found > 0
        if slow and budget.is_long(value):
            budget.ties += 1
            return False
        known = None if exactly is None else exactly(value)
        if known is not None:
            return known > 0
        return evaluate(difference, {**fractions, variable: value}) > 0

    return after_wins, slow


@lru_cache(maxsize=16)
def _compiled(expr: Expr, names: tuple[str, ...]) -> ScalarFunction:
    # the formula is the same whichever of its names varies
    return compile_scalar(expr, names)


def _last_alike(
    test: Callable[[int], bool], at_left: bool, left: int, right: int, budget: _Budget
) -> tuple[int, bool]:
    """Return the last value before a test is unlike what it is at `left`, by halving.

    False where the budget ended before that: then the last value that was tried and is alike.
    """
    while right - left > 1:
        middle = (left + right) // 2
        if not budget.take(middle):
            return left, False
        if test(middle) == at_left:
            left = middle
        else:
            right = middle
    return left, True
