"""Views of one rank's memory: whether they overlap, and who else uses a name."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.ir.spmd.memory import At, Index, Part, View, Whole
from advisor.ir.spmd.payloads import Payload
from advisor.ir.spmd.program import RANKS, Program, SpmdFunction
from advisor.ir.spmd.steps import (
    Allocate,
    Branch,
    Communicate,
    Compute,
    Copy,
    Loop,
    Step,
    Wait,
)
from costdb.expr import Expr, num, substitute
from costdb.expr.nodes import Num
from transforms.programs.uses import occurrences


def disjoint(one: View, other: View, sizes: Mapping[str, Expr] | None = None) -> bool:
    """Return whether two views surely share no element.

    Views of different arrays of one program do only if neither is made from the other, which is
    what `may_share` is asked before.

    Parameters
    ----------
    one, other : View
    sizes : mapping of str to Expr, optional
        What symbols surely are.
    """
    if one.region is None or other.region is None or len(one.region) != len(other.region):
        return False
    if may_share(one, other) and not same_memory(one, other):
        return False  # their indices count in different shapes
    pairs = zip(one.region, other.region, strict=True)
    return any(_apart(a, b, sizes or {}) for a, b in pairs)


def written_sizes(program: Program) -> dict[str, Expr]:
    """Return the sizes that are numbers in the source, which hold in every run of it."""
    return {
        name: num(fact.value)
        for name, fact in program.sizes.items()
        if isinstance(fact.value, int) and name != RANKS and fact.origin.startswith("line ")
    }


def _apart(one: Index, other: Index, sizes: Mapping[str, Expr]) -> bool:
    low, high = _bounds(one)
    low_2, high_2 = _bounds(other)
    return _not_above(high, low_2, sizes) or _not_above(high_2, low, sizes)


def _bounds(index: Index) -> tuple[Expr, Expr]:
    match index:
        case Whole(high=high):
            return num(0), high
        case Part(low=low, high=high):
            return low, high
        case At(index=place):
            return place, place + 1


def _not_above(one: Expr, other: Expr, sizes: Mapping[str, Expr]) -> bool:
    difference = substitute(other - one, sizes)
    return isinstance(difference, Num) and difference.value >= 0


def same_memory(one: View, other: View) -> bool:
    """Return whether two views are of the same array."""
    return one.buffer == other.buffer


def may_share(one: View, other: View) -> bool:
    """Return whether two views are of one array's memory, be it under different shapes."""
    return one.buffer.memory == other.buffer.memory


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


def may_be_written(step: Step, view: View) -> bool:
    """Return whether a step writes to an array's memory, makes it, or may do so."""
    targets: tuple[View, ...] | None
    match step:
        case Loop() | Branch():
            return False  # of their steps each is asked for itself
        case Allocate(buffer=buffer):
            return buffer.memory == view.buffer.memory
        case Copy(target=target):
            targets = (target,)
        case _:
            targets = written(step)
    return targets is None or any(may_share(one, view) for one in targets)


def received(payload: Payload | None) -> tuple[View, ...] | None:
    """Return what a payload lets be written; None where that is not known."""
    if payload is None:
        return ()
    return None if payload.view is None else (payload.view,)


def mentions(name: str, function: SpmdFunction, program: Program) -> int:
    """Return how often a name occurs in a function, strings included."""
    return len(occurrences(name, function, program))
