"""Indices in equal steps: how many there are, and which of them lie in one progression.

What is a multiple of the step is divided exactly, so that equal numbers of indices are equal
expressions: ``(2 * M + 1) // 2`` is ``M``, and two progressions that end one step apart differ
by the constant 1.
"""

from __future__ import annotations

from costdb.expr import ZERO, Expr, floor_div, free_symbols, num
from costdb.expr.nodes import Add, Mul, Num


def floor_steps(distance: Expr, step: int) -> Expr:
    """Return how many whole steps fit a distance: ``floor(distance / step)``."""
    if step == 1:
        return distance
    multiples, rest = _divided(distance, step)
    return multiples + floor_div(rest, step)


def ceil_steps(length: Expr, step: int) -> Expr:
    """Return how many of `length` indices are a step apart: ``ceil(length / step)``."""
    return floor_steps(length + (step - 1), step)


def residue(index: Expr, step: int) -> int | None:
    """Return what is left of an index after whole steps; None where it depends on sizes."""
    _, rest = _divided(index, step)
    return int(rest.value) if isinstance(rest, Num) and isinstance(rest.value, int) else None


def _divided(expr: Expr, step: int) -> tuple[Expr, Expr]:
    """Return the multiples of a step in a sum, divided by it, and what is left of it."""
    multiples, rest = ZERO, ZERO
    for term in (*expr.terms, num(expr.constant)) if isinstance(expr, Add) else (expr,):
        if isinstance(term, Num) and isinstance(term.value, int):
            multiples, rest = multiples + term.value // step, rest + term.value % step
        elif _is_multiple(term, step):
            multiples = multiples + term / step
        else:
            rest = rest + term
    return multiples, rest


def _is_multiple(term: Expr, step: int) -> bool:
    """Return whether a product of sizes has a factor that is a multiple of a step."""
    if not isinstance(term, Mul) or not isinstance(term.coefficient, int):
        return False
    # sizes and indices are whole numbers
    return term.coefficient % step == 0 and term.is_whole(free_symbols(term))
