"""Sums that one iteration of a loop makes for itself and stores in an element.

``s = 0.0; for j in ...: s += a[i, j]; y[i] = s`` does what adding to ``y[i]`` does, and whoever
owns that element does it. Read as a number that all ranks have, every iteration of the outer loop
would end in a reduction over the ranks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from advisor.ir.statements import Choice, Loop, Statement, Store, walk
from advisor.ir.values import Elementwise, Point, Read, Scalar, Value
from advisor.source import Span
from costdb.wording import IDENTIFIER

_WORD = re.compile(IDENTIFIER)

Starts = Mapping[Span, Mapping[str, Scalar]]
"""For loops the numbers that they accumulate and that were set just before, with their values."""


def stored_totals(body: tuple[Statement, ...], starts: Starts) -> tuple[Statement, ...]:
    """Return the body of a loop with private sums accumulated where they end up."""
    names = {
        name: value
        for statement in body
        if isinstance(statement, Loop)
        for name, value in starts.get(statement.span, {}).items()
    }
    for name, value in names.items():
        body = _stored(body, name, value)
    return body


def _stored(body: tuple[Statement, ...], name: str, start: Scalar) -> tuple[Statement, ...]:
    loops = [p for p, s in enumerate(body) if isinstance(s, Loop) and _accumulates(s, name)]
    uses = [p for p, s in enumerate(body) if _sees(s, name)]
    if not loops or len(uses) != 1 or uses[0] < loops[-1]:
        return body
    target = body[uses[0]]
    if not isinstance(target, Store) or not all(isinstance(p, Point) for p in target.region):
        return body
    if not target.region:
        return body
    between = body[loops[0] : uses[0]]
    if any(isinstance(s, Store) and s.array == target.array for s in walk(between)):
        return body
    place = Read(target.array, target.region)
    made: list[Statement] = []
    for position, statement in enumerate(body):
        if position == loops[0]:
            made.append(Store(target.array, target.region, start, target.span))
        if position in loops:
            made.append(_moved(statement, name, place))
        elif position == uses[0]:
            if target.value != Scalar(name, getattr(target.value, "dtype", "")):
                value = _with(target.value, name, place)
                made.append(Store(target.array, target.region, value, target.span))
        else:
            made.append(statement)
    return tuple(made)


def _accumulates(loop: Loop, name: str) -> bool:
    return any(isinstance(s, Store) and s.array == name and not s.region for s in walk((loop,)))


def _sees(statement: Statement, name: str) -> bool:
    """Return whether a statement may use what a number holds."""
    inner = (one for one in walk((statement,)) if not isinstance(one, Choice | Loop))
    return any(name in _words(one) for one in inner)


def _words(statement: Statement) -> frozenset[str]:
    """Return every word in the texts of a statement's numbers."""
    found: set[str] = set()
    pending: list[object] = [statement]
    while pending:
        node = pending.pop()
        if isinstance(node, Scalar):
            found |= set(_WORD.findall(node.text))
        elif isinstance(node, tuple):
            pending += node
        elif isinstance(node, frozenset):
            found |= {str(name) for name in node}
        elif hasattr(node, "__dataclass_fields__") and not isinstance(node, Span):
            pending += [getattr(node, field) for field in node.__dataclass_fields__]
    return frozenset(found)


def _moved(statement: Statement, name: str, place: Read) -> Statement:
    """Return a loop that accumulates in an element instead."""
    if isinstance(statement, Loop):
        return replace(statement, body=tuple(_moved(s, name, place) for s in statement.body))
    if isinstance(statement, Store) and statement.array == name and not statement.region:
        value = _replaced(statement.value, Read(name, ()), place)
        return replace(
            statement, array=place.array, region=place.region, value=value, in_variable=True
        )
    return statement


def _replaced(value: Value, old: Value, new: Value) -> Value:
    if value == old:
        return new
    if isinstance(value, Elementwise):
        parts = tuple(_replaced(part, old, new) for part in value.operands)
        return replace(value, operands=parts)
    return value


def _with(value: Value, name: str, place: Read) -> Value:
    """Return a value with an element in the place of a number, or of what is made of it."""
    if isinstance(value, Scalar) and name in _WORD.findall(value.text):
        return place if value.text == name else Elementwise("multiply", (place, value))
    if isinstance(value, Elementwise):
        return replace(value, operands=tuple(_with(p, name, place) for p in value.operands))
    return value
