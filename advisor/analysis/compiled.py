"""What a loop takes once a compiler of single functions has it, from what it takes interpreted.

Steps of the interpreter become operations of a compiled loop, and calls of the array library on
little data lose what calling takes. Amounts are in operations of a compiled loop whose iterations
do not wait, the only ones that are calibrated: what stands in for others is estimated.
"""

from __future__ import annotations

from advisor.analysis.calls import product
from advisor.analysis.processes import of_work
from costdb.expr import Expr, num
from costdb.records import replace
from costdb.work import (
    UNREAD,
    ArrayCall,
    ArrayOperation,
    Interpretation,
    Leaf,
    Process,
    Statement,
    Work,
)

LABEL = "compiled loops"
WAITING = 20
"""An operation whose operands come from the iteration before takes its latency, four cycles; of
others a processor does several in each."""
FUNCTION = 60
"""A logarithm, a sine, a power: a call of the mathematical library for one number."""
ROOT = 20
"""A division or a square root."""
ALLOCATED = 500
"""An array that an iteration makes, however small."""
_FUNCTIONS = {ArrayOperation.TRANSCENDENTAL, ArrayOperation.FUNCTION, ArrayOperation.REMAINDER}
_ROOTS = {ArrayOperation.ROOT, ArrayOperation.DIVIDE, ArrayOperation.DIVIDE_BY_ONE}


def compiled(process: Process, *, waiting: bool) -> Process:
    """Return what interpreted work takes compiled.

    Parameters
    ----------
    process : Process
    waiting : bool
        Whether each iteration may wait for the one before.
    """

    def other(work: Work) -> Process:
        match work:
            case Interpretation() if not (waiting and work.label == UNREAD):
                each = work.loads + work.stores + work.operations + int(work.loop)
                each += WAITING * (waiting and work.loop) + FUNCTION * work.calls
                return _loop(work.iterations * each)
            case Statement(calls=tuple() as calls):
                return Leaf(replace(work, calls=tuple(map(_inlined, calls)), label=LABEL))
        return Leaf(work)

    return of_work(process, other)


def _loop(operations: Expr) -> Process:
    call = ArrayCall(ArrayOperation.COMPILED, "float64", operations)
    return Leaf(Statement((), operations, LABEL, (call,)))


def _inlined(call: ArrayCall) -> ArrayCall:
    """Return a call of the library as the loop that a compiler puts in its place."""
    each = num(FUNCTION if call.operation in _FUNCTIONS else 1)
    each = num(ROOT) if call.operation in _ROOTS else each
    if call.operation is ArrayOperation.MATMUL and call.length is not None:
        each = each * call.length
    made = num(ALLOCATED * call.fresh)
    operands = tuple(one for one in call.visits if product(one.region.counts) != num(1))
    return replace(
        call,
        operation=ArrayOperation.COMPILED,
        dtype="float64",
        elements=call.elements * each + made,
        operands=operands,
        result=None,
        fresh=False,
        axis_from_last=None,
        length=None,
    )
