"""Loops of single increments at places that only the data know, as one scattered increment."""

from __future__ import annotations

from dataclasses import replace

from advisor.ir.dependence import slope_of
from advisor.ir.statements import Loop, Scatter, Statement
from advisor.ir.values import (
    Copy,
    Elementwise,
    Point,
    Range,
    Read,
    Scalar,
    Subscript,
    Value,
    bounds_in,
    value_symbols,
)
from costdb.expr import Expr, free_symbols, substitute


def scattered_at_once(loop: Loop) -> Statement:
    """Return the increment of all iterations of a loop; the loop itself where it is none.

    Iterations that increment elements may come in any order, as far as work goes.
    """
    if len(loop.body) != 1 or loop.step != 1:
        return loop
    (only,) = loop.body
    if not isinstance(only, Scatter) or not only.by_element:
        return loop
    places, value = _widened(only.places, loop), _widened(only.value, loop)
    if value is None and not _mentions(only.value, loop):
        value = only.value
    if places is None or value is None:
        return loop
    return replace(only, places=places, value=value, span=loop.span)


def _widened(value: Value, loop: Loop) -> Value | None:
    """Return a value over all iterations; None where its elements do not follow the index."""
    match value:
        case Scalar():
            return value
        case Read(array, region):
            moving = [d for d, part in enumerate(region) if _holds(part, loop)]
            later = [d for d, part in enumerate(region) if not isinstance(part, Point)]
            if len(moving) != 1 or any(d < moving[0] for d in later):
                return None
            part = region[moving[0]]
            if not isinstance(part, Point) or slope_of(part.at, loop.variable) != 1:
                return None
            ends = (_at(part.at, loop, loop.low), _at(part.at, loop, loop.high))
            at = moving[0]
            return Read(array, (*region[:at], Range(*ends), *region[at + 1 :]))
        case Copy(operand, dtype):
            inner = _widened(operand, loop)
            return None if inner is None else Copy(inner, dtype)
        case Elementwise(operation, parts):
            made = [_widened(part, loop) for part in parts]
            known = tuple(part for part in made if part is not None)
            return Elementwise(operation, known) if len(known) == len(made) else None
    return None


def _at(subscript: Expr, loop: Loop, index: Expr) -> Expr:
    return substitute(subscript, {loop.variable: index})


def _holds(part: Subscript, loop: Loop) -> bool:
    return any(loop.variable in free_symbols(end) for end in bounds_in(part))


def _mentions(value: Value, loop: Loop) -> bool:
    return loop.variable in value_symbols(value)
