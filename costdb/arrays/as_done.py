"""What an array library makes of a call: results in place of operands, operands turned in buffers.

From some size on an operator stores into an operand that nobody else has, whose lines are then the
result's. A loop over elements goes through memory in one order for all its operands. What lies in
another order, as a transposed array does, is first copied in that order, a buffer at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from costdb.arrays.memory import ONE, fastest, is_turned
from costdb.arrays.reuse import bytes_of
from costdb.expr import Expr, less
from costdb.work import ArrayCall, ArrayOperation, Visit

ELIDED_BYTES = 256 * 2**10
"""From here on NumPy stores into an operand that nobody else has: its constant."""

_BY_ELEMENT = frozenset({
    ArrayOperation.BINARY, ArrayOperation.DIVIDE, ArrayOperation.COMPARE, ArrayOperation.UNARY,
    ArrayOperation.ROOT, ArrayOperation.TRANSCENDENTAL, ArrayOperation.FUNCTION,
    ArrayOperation.WHERE, ArrayOperation.DIVIDE_BY_ONE, ArrayOperation.REMAINDER,
})  # fmt: skip


def taking_over(call: ArrayCall) -> Iterator[tuple[Expr, ArrayCall]]:
    """Yield a call with memory of its own for its result and without, and when it is so: 1 or 0.

    A call whose result takes no operand's place comes alone.
    """
    taken = next(
        (one for one in call.operands if call.result and _could_hold(one, call.result)), None
    )
    if not call.reuses or taken is None or call.result is None:
        yield ONE, call
        return
    small = less(bytes_of(call.result.region), ELIDED_BYTES)
    yield small, call
    yield 1 - small, replace(call, result=taken, fresh=False)


def _could_hold(operand: Visit, result: Visit) -> bool:
    return not operand.array and operand.region == result.region


def with_copies(call: ArrayCall) -> Iterator[ArrayCall]:
    """Yield the copies that transpose operands of a call into buffers, and then the call.

    The order is that of the last axis, but where all memory that is given wants another one.
    """
    given = [one for one in call.visits if one is not call.result or not call.fresh]
    ordered = [one for one in given if fastest(one.region) is not None]
    turned = []
    if call.operation in _BY_ELEMENT and ordered:
        first = max(ordered, key=lambda one: fastest(one.region) or 0)
        turned = [one for one in call.operands if is_turned(one.region, first.region)]
    for one in turned:
        yield ArrayCall(ArrayOperation.TRANSPOSE, call.dtype, call.elements, None, (one,))
    kept = tuple(one for one in call.operands if one not in turned)
    yield replace(call, operands=kept) if turned else call
