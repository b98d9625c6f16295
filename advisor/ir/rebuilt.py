"""Anything made of dataclasses and tuples: its symbols, and itself with other parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import lru_cache
from operator import is_not
from typing import TypeVar, cast

from advisor.source import Span
from costdb.expr import Expr, free_symbols

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
    return _mapped(node, lambda part: other(part) if isinstance(part, Expr) else None)


def with_part(node: Node, old: object, new: object) -> Node:
    """Return a value, or a tuple of them, with another part wherever an equal one stands."""
    return _mapped(node, lambda part: new if part == old else None)


def _mapped(node: Node, other: Callable[[object], object]) -> Node:
    """Return a node with its parts replaced where `other` gives something, outermost first."""
    changed = other(node)
    if changed is not None:
        return cast(Node, changed)
    if isinstance(node, tuple):
        parts = [_mapped(part, other) for part in node]
        return cast(Node, tuple(parts)) if any(map(is_not, parts, node)) else node
    names = _names_of(cast(type, type(node)))
    before = [getattr(node, name) for name in names]
    after = [_mapped(part, other) for part in before]
    if any(map(is_not, after, before)):
        return type(node)(**dict(zip(names, after, strict=True)))
    return node


def symbols(node: object) -> frozenset[str]:
    """Return every symbol in the expressions of a statement, a value, a region, or several."""
    if isinstance(node, Expr):
        return free_symbols(node)
    parts = (
        node
        if isinstance(node, tuple)
        else [getattr(node, n) for n in _names_of(cast(type, type(node)))]
    )
    return frozenset().union(*map(symbols, parts))


@lru_cache(maxsize=256)
def _names_of(kind: type) -> tuple[str, ...]:
    """Return what of the objects of a type may hold expressions."""
    if not is_dataclass(kind) or kind is Span:
        return ()
    return tuple(field.name for field in fields(kind))
