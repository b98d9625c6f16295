"""How parallel loops deal elements out to threads: in turn, or in blocks."""

from __future__ import annotations

from advisor.ir.spmd.memory import At, Order, View
from advisor.ir.spmd.steps import Loop, LoopKind
from costdb.expr import Expr, free_symbols, num, substitute, sym


def is_dealt_in_turn(outer: Loop, inner: Loop) -> bool:
    """Return whether ``for i in range(t, n, T)`` stands in ``for t in prange(T)``."""
    return (
        outer.kind is LoopKind.THREADS
        and inner.kind is LoopKind.COUNTED
        and outer.low == num(0)
        and outer.step == 1
        and outer.stride is None
        and outer.high != num(1)
        and inner.low == sym(outer.variable)
        and stride_of(inner) == outer.high
    )


def stride_of(loop: Loop) -> Expr:
    """Return the step of a loop, a literal or not."""
    return num(loop.step) if loop.stride is None else loop.stride


def follows(view: View, variable: str) -> bool:
    """Return whether a view is one element, and the next in memory for the next index of a loop."""
    if view.region is None or not view.region or view.transposed or view.flat:
        return False
    if len(view.region) > 1 and view.buffer.order is Order.UNKNOWN:
        return False
    last = view.region[0] if view.buffer.order is Order.F else view.region[-1]
    others = view.region[1:] if view.buffer.order is Order.F else view.region[:-1]
    if not isinstance(last, At) or not all(isinstance(index, At) for index in others):
        return False
    if any(variable in free_symbols(i.index) for i in others if isinstance(i, At)):
        return False
    if variable not in free_symbols(last.index):
        return False
    return substitute(last.index, {variable: sym(variable) + 1}) == last.index + 1
