"""Where one of two prices is the better one along a size: sampled over a range, edges bisected."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

from costdb.estimate import Priced
from costdb.evaluate import Bindings, check_bindings, merge_coefficients
from costdb.expr import Expr, ExprError
from costdb.expr.evaluate import Evaluator
from costdb.expr.functions import Reduction
from costdb.records import dataclass

_DENSE, _STEP = 64, 1.15
"""So many values are tried one by one, then some per cent apart."""
_PARTS = 32
"""Into so many an interval with an edge is divided at once: a column costs little more than one."""
_DENSE_SLOW, _STEP_SLOW = 8, 1.6
"""The same where formulas hold sums without closed form."""

_ROUNDING = 1e-9
"""Relative difference of two prices below which they are equal."""


@dataclass(frozen=True, slots=True)
class Crossover:
    """Where the second of two prices is the better one, along one variable.

    Attributes
    ----------
    variable : str
        What varies.
    flips : tuple of int
        Each the first value at which that changes, ascending.
    after_wins_first : bool
        Whether it is at `low`.
    low, high : int
        The range that was tried, inclusive.
    samples : tuple of (int, float)
        The values that were tried before edges were looked for, with before over after there.
    """

    variable: str
    flips: tuple[int, ...]
    after_wins_first: bool
    low: int
    high: int
    samples: tuple[tuple[int, float], ...] = ()

    def holds(self, value: int) -> bool:
        """Return whether the second price is said to be the better one at a value."""
        return self.after_wins_first ^ (sum(flip <= value for flip in self.flips) % 2 == 1)


def crossover(
    before: Priced,
    after: Priced,
    variable: str,
    bindings: Bindings,
    low: int = 1,
    high: int = 1_000_000,
    least: float = 1.0,
) -> Crossover:
    """Return the whole values of `variable` from which on `after` is, or is no more, the better.

    Coefficients stand at their middle. A binding of `variable` itself is ignored. Two changes
    between neighbouring samples go unseen.

    Parameters
    ----------
    before, after : Priced
    variable : str
    bindings : mapping of str to number
    low, high : int
        The range to try.
    least : float
        How many times the time of `after` that of `before` has to be.

    Raises
    ------
    ExprError
        A size other than `variable` is unbound, or a formula has no value somewhere.
    """
    if low > high:
        raise ExprError(f"the range {low}..{high} of {variable!r} is empty")
    check_bindings({name: value for name, value in bindings.items() if name != variable})
    merged = merge_coefficients((before.coefficients, after.coefficients))
    values = {**bindings, **{name: quantity.value for name, quantity in merged.items()}}
    formulas = Evaluator((before.microseconds, after.microseconds))

    def told(one: float, other: float) -> tuple[bool, float]:
        """Return whether `after` is the better one by two prices, and before over after."""
        wins = one - least * other > _ROUNDING * abs(one)
        return wins, one / other if other > 0 else 1.0 if one == 0 else math.inf

    def tried(several: Sequence[int]) -> list[tuple[int, bool, float]]:
        columns = formulas.along(variable, several, values)
        return [(at, *told(*map(float, both))) for at, *both in zip(several, *columns, strict=True)]

    slow = _holds_sums((before.microseconds, after.microseconds))
    grid = list(_grid(low, high, slow=slow))
    # the terms of a sum are shared among the values of a column
    samples = [one for value in grid for one in tried([value])] if slow else tried(grid)
    flips = []
    for left_end, right_end in pairwise(samples):
        while left_end[1] != right_end[1] and (gap := right_end[0] - left_end[0]) > 1:
            parts = min(gap, 2 if slow else _PARTS)
            middles = [left_end[0] + gap * part // parts for part in range(1, parts)]
            edges = pairwise((left_end, *tried(middles), right_end))
            left_end, right_end = next(pair for pair in edges if pair[0][1] != pair[1][1])
        if left_end[1] != right_end[1]:
            flips.append(right_end[0])
    shown = tuple((value, ratio) for value, _, ratio in samples)
    return Crossover(variable, tuple(flips), samples[0][1], low, samples[-1][0], shown)


def _grid(low: int, high: int, *, slow: bool) -> Iterable[int]:
    dense, step = (_DENSE_SLOW, _STEP_SLOW) if slow else (_DENSE, _STEP)
    value = low
    while value < high:
        yield value
        value = value + 1 if value < low + dense - 1 else math.ceil(value * step)
    yield high


def _holds_sums(formulas: Iterable[Expr]) -> bool:
    """Return whether a formula holds a reduction; each distinct part is looked at once."""
    pending, seen = list(formulas), set(formulas)
    while pending:
        part = pending.pop()
        if isinstance(part, Reduction):
            return True
        fresh = [child for child in part.children if child not in seen]
        seen.update(fresh)
        pending += fresh
    return False
