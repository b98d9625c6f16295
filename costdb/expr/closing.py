"""One attempt at a closed form: its range, what it may assume and what it asks for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from costdb.expr.facts import Facts
from costdb.expr.functions import Log2, less_equal, logical_and
from costdb.expr.names import free_symbols, fresh_name
from costdb.expr.nodes import (
    MINUS_ONE,
    ONE,
    ZERO,
    Division,
    Expr,
    Num,
    Pow,
    Sym,
    is_reciprocal,
    power,
)

MAX_SPLITS = 24
"""Times that one sum is split before it is left to enumeration."""


class NotClosed(Exception):
    """No closed form is known."""


@dataclass(slots=True)
class Closing:
    """One attempt: what may be assumed, what must hold, and how much was spent."""

    facts: Facts
    conditions: list[Expr] = field(default_factory=list)
    local: set[str] = field(default_factory=set)
    splits: int = 0

    def require(self, left: Expr, right: Expr) -> None:
        """Add ``left >= right`` to the conditions unless it is certain."""
        if self.facts.proves_at_least(left, right):
            return
        condition = less_equal(right, left)
        if condition == ZERO or free_symbols(condition) & self.local:
            raise NotClosed
        self.conditions.append(condition)
        # What is required here may be assumed from here on.
        if right == ONE and isinstance(left, Sym):
            self.facts = replace(self.facts, positive=self.facts.positive | {left.name})

    def condition(self) -> Expr:
        """Return all conditions as one expression, 1 if there are none."""
        result: Expr = ONE
        for condition in self.conditions:
            result = condition if result == ONE else logical_and(result, condition)
        return result

    def fresh(self, stem: str, *apart_from: Expr) -> str:
        """Return a name of its own for this attempt."""
        taken = frozenset(self.local).union(self.facts.names, *map(free_symbols, apart_from))
        name = fresh_name(stem, taken)
        self.local.add(name)
        return name

    def spend(self) -> None:
        """Count a split."""
        self.splits += 1
        if self.splits > MAX_SPLITS:
            raise NotClosed


@dataclass(frozen=True, slots=True)
class Span:
    """The range of a sum."""

    index: str
    low: Expr
    high: Expr

    def replaced(self, low: Expr, high: Expr) -> Span:
        """Return other bounds for the same index."""
        return Span(self.index, low, high)


def is_whole_by_contract(expr: Expr) -> bool:
    """Tell whether `expr` is a whole number if all its names are."""
    return expr.is_whole(free_symbols(expr))


def may_fail(expr: Expr, index: str, facts: Facts) -> bool:
    """Tell whether a part without `index` could have no value, such as 1/N for N = 0.

    A sum does not evaluate its body over an empty range, so its closed form must not either.
    """
    if not expr.children:
        return False
    if index not in free_symbols(expr):
        doubtful: Expr = ONE
        if is_reciprocal(expr):
            doubtful = power(expr, MINUS_ONE)
        elif isinstance(expr, Division):
            doubtful = expr.divisor
        elif isinstance(expr, Log2):
            doubtful = expr.argument
        elif isinstance(expr, Pow) and not isinstance(expr.exponent, Num):
            return True
        if not isinstance(doubtful, Num) and not facts.proves_at_least(doubtful, ONE):
            return True
    return any(may_fail(child, index, facts) for child in expr.children)
