"""Sizes that a program works out from others: factors of the number of ranks, mostly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isqrt

from costdb.expr import Expr, ExprError, evaluate

Number = int | float

MOST_TRIED = 100_000
"""Indices that a search goes through."""


@dataclass(frozen=True, slots=True)
class LargerFactor:
    """The first extent that ``MPI.Compute_dims`` chooses for two axes: the larger one."""

    nodes: Expr

    def value(self, values: Mapping[str, Number]) -> int | None:
        """Return it; None where its sizes are not known."""
        nodes = _number(self.nodes, values)
        if nodes is None or nodes < 1:
            return None
        return next(nodes // d for d in range(isqrt(nodes), 0, -1) if nodes % d == 0)


@dataclass(frozen=True, slots=True)
class Search:
    """The first index of a range for which a condition holds, or the last one.

    Attributes
    ----------
    variable : str
    low, high : Expr
        As ``range`` has them.
    step : int
    condition : Expr
        Over the index and sizes; not 0 where it holds.
    last : bool
    """

    variable: str
    low: Expr
    high: Expr
    step: int
    condition: Expr
    last: bool = False

    def value(self, values: Mapping[str, Number]) -> int | None:
        """Return it; None where its sizes are not known, or the condition never holds."""
        low, high = _number(self.low, values), _number(self.high, values)
        if low is None or high is None:
            return None
        found = range(low, high, self.step)
        if len(found) > MOST_TRIED:
            return None
        for index in reversed(found) if self.last else found:
            holds = _number(self.condition, {**values, self.variable: index})
            if holds is None:
                return None
            if holds:
                return index
        return None


Derived = LargerFactor | Search


def _number(expr: Expr, values: Mapping[str, Number]) -> int | None:
    try:
        return int(evaluate(expr, values))
    except (ExprError, ArithmeticError):
        return None


def with_derived(
    rules: Mapping[str, Derived | None], values: Mapping[str, Number]
) -> dict[str, Number]:
    """Return values with those that follow from them, in the order of the source."""
    found = dict(values)
    for name, rule in rules.items():
        if rule is not None and name not in found:
            value = rule.value(found)
            if value is not None:
                found[name] = value
    return found
