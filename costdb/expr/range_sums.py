"""Sums and maxima over ranges between numbers, remembered.

A price is made of those of its terms, variants share most of theirs, and whoever compares prices
or looks for crossovers asks for all of them again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache

from costdb.expr.exact import Value
from costdb.expr.functions import Reduction
from costdb.expr.loops import reducer
from costdb.expr.names import free_symbols
from costdb.expr.tallies import tallied

MOST_REMEMBERED = 8192
"""Sums over ranges between numbers that are kept."""


def sums_over(
    parts: tuple[Reduction, ...], low: int, high: int, values: Mapping[str, Value]
) -> tuple[Value, ...]:
    """Return reductions over one range, each exact where the values that it uses are.

    Parameters
    ----------
    parts : tuple of Reduction
        Their own bounds are not looked at.
    low, high : int
    values : mapping of str to int, Fraction or float
        A value for every symbol in their bodies.
    """
    asked: list[Hashable] = []
    for part, names in zip(parts, _names_in(parts), strict=True):
        used = [values[name] for name in names]
        # a whole number and a float may be equal
        types = tuple([type(value) for value in used])
        asked.append((type(part), part.index, part.body, low, high, types, *used))
    new = tuple([part for part, one in zip(parts, asked, strict=True) if one not in _remembered])
    found = dict(zip(new, _enumerated(new, low, high, values), strict=True)) if new else {}
    total = tuple(
        found[part] if part in found else _remembered[one]
        for part, one in zip(parts, asked, strict=True)
    )
    for one, value in zip(asked, total, strict=True):
        _remembered.pop(one, None)
        _remembered[one] = value
    while len(_remembered) > MOST_REMEMBERED:
        del _remembered[next(iter(_remembered))]
    return total


@lru_cache(maxsize=512)
def _names_in(parts: tuple[Reduction, ...]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(sorted(free_symbols(part.body) - {part.index})) for part in parts)


_remembered: dict[Hashable, Value] = {}
"""Sums of late, the longest unasked first."""


def forget_sums() -> None:
    """Drop the sums that are remembered, as a measurement needs."""
    _remembered.clear()


def _enumerated(
    parts: tuple[Reduction, ...], low: int, high: int, values: Mapping[str, Value]
) -> tuple[Value, ...]:
    known = tallied(parts, low, high, values)
    if known is not None:
        return known
    names = frozenset().union(*_names_in(parts))
    whole = frozenset(name for name in names if type(values[name]) is int)
    free = sorted(names)
    return _exactly(parts, tuple(free), whole)(low, high, *(values[name] for name in free))


@lru_cache(maxsize=512)
def _exactly(
    parts: tuple[Reduction, ...], names: tuple[str, ...], whole: frozenset[str]
) -> Callable[..., tuple[Value, ...]]:
    return reducer(parts, names, True, whole)
