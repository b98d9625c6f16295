"""Anything made of dataclasses and tuples, with other expressions in the place of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import lru_cache
from operator import is_not
from typing import TypeVar, cast

from advisor.source import Span
from costdb.expr import Expr

Node = TypeVar("Node")


def rebuilt(node: Node, other: Callable[[Expr], Expr]) -> Node:
    """Return a statement, a value, work, or a tuple of them, with every expression replaced.

    Parameters
    ----------
    node : dataclass, tuple, Expr or anything else
        Of what is anything else nothing changes; what holds no other expression stays the object
        that it is.
    other : callable
        Gives what stands for an expression.
    """
    changed: object = node
    if isinstance(node, Expr):
        changed = other(node)
    elif isinstance(node, tuple):
        parts = [rebuilt(part, other) for part in node]
        if any(map(is_not, parts, node)):
            changed = tuple(parts)
    elif names := _names_of(cast(type, type(node))):
        before = [getattr(node, name) for name in names]
        after = [rebuilt(part, other) for part in before]
        if any(map(is_not, after, before)):
            changed = type(node)(**dict(zip(names, after, strict=True)))
    return changed  # type: ignore[return-value]  # every branch keeps the type it was given


def with_part(node: Node, old: object, new: object) -> Node:
    """Return a value, or a tuple of them, with another part wherever an equal one stands."""
    changed: object = node
    if node == old:
        changed = new
    elif isinstance(node, tuple):
        changed = tuple(with_part(part, old, new) for part in node)
    elif is_dataclass(node) and not isinstance(node, Span | type):
        before = {field.name: getattr(node, field.name) for field in fields(node)}
        after = {name: with_part(part, old, new) for name, part in before.items()}
        changed = type(node)(**after)
    return changed  # type: ignore[return-value]  # a value takes the place of a value


@lru_cache(maxsize=256)
def _names_of(kind: type) -> tuple[str, ...]:
    """Return what of the objects of a type may hold expressions."""
    if not is_dataclass(kind) or kind is Span:
        return ()
    return tuple(field.name for field in fields(kind))
