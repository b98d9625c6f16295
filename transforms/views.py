"""Views of one rank's memory: whether they overlap, and who else uses a name."""

from __future__ import annotations

import re

from advisor.ir.spmd.memory import At, Index, Part, View, Whole
from advisor.ir.spmd.payloads import Payload
from advisor.ir.spmd.program import Program, SpmdFunction
from advisor.ir.spmd.steps import (
    Allocate,
    Communicate,
    Compute,
    Copy,
    Step,
    Wait,
)
from costdb.expr import Expr, num
from costdb.expr.nodes import Num


def disjoint(one: View, other: View) -> bool:
    """Return whether two views surely share no element.

    Views of different arrays of one program do only if neither is made from the other, which is
    what `same_memory` is asked before.
    """
    if one.region is None or other.region is None or len(one.region) != len(other.region):
        return False
    return any(_apart(a, b) for a, b in zip(one.region, other.region, strict=True))


def _apart(one: Index, other: Index) -> bool:
    low, high = _bounds(one)
    low_2, high_2 = _bounds(other)
    return _not_above(high, low_2) or _not_above(high_2, low)


def _bounds(index: Index) -> tuple[Expr, Expr]:
    match index:
        case Whole(high=high):
            return num(0), high
        case Part(low=low, high=high):
            return low, high
        case At(index=place):
            return place, place + 1


def _not_above(one: Expr, other: Expr) -> bool:
    difference = other - one
    return isinstance(difference, Num) and difference.value >= 0


def same_memory(one: View, other: View) -> bool:
    """Return whether two views are of the same array."""
    return one.buffer == other.buffer


def written(step: Step) -> tuple[View, ...] | None:
    """Return the views that a simple step writes; None for one that may write anything."""
    match step:
        case Copy(target=target, allocates=allocates):
            return () if allocates else (target,)
        case Compute(target=target):
            return () if target is None else (target,)
        case Communicate(receive=receive):
            return received(receive)
        case Allocate() | Wait():
            return ()
    return None


def received(payload: Payload | None) -> tuple[View, ...] | None:
    """Return what a payload lets be written; None where that is not known."""
    if payload is None:
        return ()
    return None if payload.view is None else (payload.view,)


def mentions(name: str, function: SpmdFunction, program: Program) -> int:
    """Return how often a name occurs in a function, comments and strings included."""
    text = program.context.text(function.whole)
    return len(re.findall(rf"(?<![\w.]){re.escape(name)}(?!\w)", text))
