"""Where the better of two prices changes along one size: proved for all of a range, or searched."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from costdb.estimate import Priced
from costdb.evaluate import Bindings, check_bindings, merge_coefficients
from costdb.expr import Expr, ExprError, compile_scalar, evaluate, free_symbols, num, substitute
from costdb.expr.evaluate import sums_whole_numbers
from costdb.expr.exact import exact
from costdb.expr.functions import Reduction
from costdb.expr.scalar import ScalarFunction

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
_SLOW_TO = 4096
"""Where sums are enumerated, larger values are not tried."""


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
        Values scanned, inclusive.
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
    between neighbouring steps above `dense_to` go unseen.

    Raises
    ------
    ExprError
        A size other than `variable` is unbound, or a formula has no value somewhere.
    """
    if low > high:
        raise ExprError(f"the range {low}..{high} of {variable!r} is empty")
    after_wins, slow = _comparison(before, after, variable, _values(before, after, bindings))
    dense, step = (_FEW_VALUES, _WIDE_STEP) if slow else (_DENSE_VALUES, _GEOMETRIC_STEP)
    dense_to = min(high, low + dense - 1)
    stops = list(range(low, dense_to + 1))
    while stops[-1] < high:
        stops.append(min(high, math.ceil(stops[-1] * step)))
    wins = [after_wins(stop) for stop in stops]
    flips = [
        _first_unlike(after_wins, left, right, won)
        for (left, right), (won, then) in zip(pairwise(stops), pairwise(wins), strict=True)
        if won != then
    ]
    return Crossover(variable, tuple(flips), wins[0], low, high, dense_to)


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
    after_wins, slow = _comparison(before, after, variable, values)
    fractions = {name: exact(value) for name, value in values.items() if name != variable}
    few, tried_to = (_TRIED_SLOW, _SLOW_TO) if slow else (_TRIED_QUICK, high)
    try:
        gain = substitute(before.microseconds - after.microseconds, fractions)
        found = sign_changes(gain, variable, low, high, after_wins, few, tried_to)
    except ExprError:
        return None
    return found and Crossover(variable, found[1], found[0], low, high, high)


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
    one: Priced, other: Priced, variable: str, values: Bindings
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

    def after_wins(value: int) -> bool:
        if place is not None:
            point[place] = value
        found = float(gain(*point))
        if abs(found) > _ROUNDING * abs(float(size(*point))):
            return found > 0
        return evaluate(difference, {**fractions, variable: value}) > 0

    return after_wins, slow


@lru_cache(maxsize=16)
def _compiled(expr: Expr, names: tuple[str, ...]) -> ScalarFunction:
    # the formula is the same whichever of its names varies
    return compile_scalar(expr, names)


def _first_unlike(test: Callable[[int], bool], left: int, right: int, at_left: bool) -> int:
    while right - left > 1:
        middle = (left + right) // 2
        if test(middle) == at_left:
            left = middle
        else:
            right = middle
    return right
