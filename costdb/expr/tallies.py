"""Sums over a range whose index decides about one inner value only, which takes few values.

What a process does in a turn of a loop often follows from how much of it is its own, and that is
one of two or three numbers. Such an inner value is listed for the whole range by a short loop; the
rest of the formulas, however long, is evaluated once for each number that occurred and multiplied
by how often. Nothing long is compiled, and the short loop has the same form in more variants.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from itertools import count

from costdb.expr.errors import ExprError
from costdb.expr.exact import Value
from costdb.expr.functions import Log2, Reduction, Sum
from costdb.expr.interpret import Interpreter, exactly
from costdb.expr.loops import lister
from costdb.expr.names import free_symbols
from costdb.expr.nodes import Expr
from costdb.expr.pieces import PIECED_FROM
from costdb.expr.scalar_code import divided

LEAST_AROUND = 16
"""Different parts around an inner value from which on it is worth a loop of its own."""

LEAST_REPEATS = 8
"""How often a value occurs on average, at least, where it is worth counting."""


def tallied(
    parts: tuple[Reduction, ...], low: int, high: int, values: Mapping[str, Value]
) -> tuple[Value, ...] | None:
    """Return reductions over one range, exactly; None where this is not the way to do it.

    Parameters
    ----------
    parts : tuple of Reduction
        Their own bounds are not looked at.
    low, high : int
    values : mapping of str to int, Fraction or float
        A value for every symbol in their bodies.
    """
    steps = high - low + 1
    if not LEAST_REPEATS <= steps <= PIECED_FROM:
        return None
    index = parts[0].index
    names = sorted(frozenset().union(*[free_symbols(p.body) for p in parts]) - {index})
    scope = {name: values[name] for name in names}
    if not all(type(value) is int for value in scope.values()):
        return None
    inner = inner_of(parts)
    if inner is None:
        return None
    used = tuple([name for name in names if name in free_symbols(inner)])
    body = Sum(index, parts[0].low, parts[0].high, inner)
    try:
        terms, below = lister(body, used, frozenset(used))(low, high, *(scope[n] for n in used))
        found = Counter(terms)
        if len(found) * LEAST_REPEATS > steps or any(isinstance(one, float) for one in found):
            return None
        return _weighed(parts, inner, {divided(v, below): n for v, n in found.items()}, scope)
    except (ExprError, ZeroDivisionError, OverflowError):
        # a choice around the inner value may keep it from mattering; a loop says what is wrong
        return None


def inner_of(parts: tuple[Reduction, ...]) -> Expr | None:
    """Return a part of bodies through which alone their index is used, with much around it.

    None where there is none, or where what is around it may not be exact.
    """
    index = parts[0].index
    if any(part.index != index for part in parts):
        return None
    # A part is smaller than what it is in. Taken from the largest on, the one that is left alone
    # is in everything that has been taken, and nothing else in it depends on the index.
    order = count()
    bodies = dict.fromkeys(part.body for part in parts)
    pending = [(-body.size, next(order), body) for body in bodies if index in free_symbols(body)]
    heapq.heapify(pending)
    fixed = [body for body in bodies if index not in free_symbols(body)]
    seen = set(bodies)
    around = 0
    while pending:
        _, _, part = heapq.heappop(pending)
        if not pending and around >= LEAST_AROUND:
            return part if part.children and not _holds_others(fixed) else None
        if isinstance(part, Log2 | Reduction):
            return None
        around += 1
        for child in part.children:
            if child in seen:
                continue
            seen.add(child)
            if index in free_symbols(child):
                heapq.heappush(pending, (-child.size, next(order), child))
            else:
                fixed.append(child)
    return None


def _holds_others(exprs: list[Expr]) -> bool:
    """Return whether a logarithm or a reduction is in formulas: those are not exact, or loops."""
    pending, seen = list(exprs), set(exprs)
    while pending:
        part = pending.pop()
        if isinstance(part, Log2 | Reduction):
            return True
        fresh = [child for child in part.children if child.children and child not in seen]
        seen.update(fresh)
        pending += fresh
    return False


def _weighed(
    parts: tuple[Reduction, ...], inner: Expr, found: dict[Value, int], scope: dict[str, Value]
) -> tuple[Value, ...]:
    columns = []
    for value in found:
        at = Interpreter(scope)
        at.known[inner] = value
        columns.append([at.value(part.body) for part in parts])
    return tuple(
        exactly(
            sum(value * number for value, number in zip(row, found.values(), strict=True))
            if isinstance(part, Sum)
            else max(row)
        )
        for part, row in zip(parts, zip(*columns, strict=True), strict=True)
    )
