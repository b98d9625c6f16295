"""Anything made of dataclasses and tuples, with other expressions in the place of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import TypeVar

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
        changed = tuple(rebuilt(part, other) for part in node)
    elif is_dataclass(node) and not isinstance(node, Span | type):
        before = {field.name: getattr(node, field.name) for field in fields(node)}
        after = {name: rebuilt(part, other) for name, part in before.items()}
        if any(after[name] is not before[name] for name in before):
            changed = type(node)(**after)
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
