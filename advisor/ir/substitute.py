"""Values and regions with other expressions in the place of symbols."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from advisor.ir.statements import Store
from advisor.ir.values import (
    Copy,
    Elementwise,
    Point,
    Range,
    Read,
    Scalar,
    Strided,
    Subscript,
    Value,
)
from costdb.expr import Expr, substitute

Bindings = Mapping[str, Expr]


def in_subscript(part: Subscript, bindings: Bindings) -> Subscript:
    """Return a subscript with symbols replaced."""
    match part:
        case Point(at):
            return Point(substitute(at, bindings))
        case Range(low, high):
            return Range(substitute(low, bindings), substitute(high, bindings))
        case Strided(start, stop, step):
            return Strided(substitute(start, bindings), substitute(stop, bindings), step)


def in_region(region: tuple[Subscript, ...], bindings: Bindings) -> tuple[Subscript, ...]:
    """Return a region with symbols replaced."""
    return tuple(in_subscript(part, bindings) for part in region)


def in_arithmetic(value: Value, bindings: Bindings) -> Value:
    """Return a value made of reads, numbers and elementwise operations, with symbols replaced.

    Raises
    ------
    TypeError
        For a value that holds anything else.
    """
    match value:
        case Read(array, region):
            return Read(array, in_region(region, bindings))
        case Scalar():
            return value
        case Copy(operand, dtype):
            return Copy(in_arithmetic(operand, bindings), dtype)
        case Elementwise(operation, parts, called):
            inner = tuple(in_arithmetic(part, bindings) for part in parts)
            return Elementwise(operation, inner, called)
    raise TypeError(f"{type(value).__name__} is no arithmetic on elements")


def in_store(store: Store, bindings: Bindings) -> Store:
    """Return a store of such a value with symbols replaced."""
    region = in_region(store.region, bindings)
    value = in_arithmetic(store.value, bindings)
    held = tuple(in_arithmetic(one, bindings) for one in store.held)
    return replace(store, region=region, value=value, held=held)
