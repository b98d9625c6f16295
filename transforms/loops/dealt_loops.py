"""# ADV609 dealt-out

**What it does.** Finds loops whose iterations ranks share out in blocks although later ones have
more to do, or less, as in triangular work, and deals them out in turn; and arithmetic on every
`size`-th element of an array, which reads a block of neighbours instead.

**Why it costs.** Where an iteration's work grows with its index, the rank with the last block
does most of it, in a triangle nearly twice the mean, and all others wait. Dealt out in turn,
every rank has short and long ones. Every `size`-th element, on the other hand, is on as many cache
lines as all of them, of which the rank uses one element each.

**Example**

```python
for i in range(rank * nb, (rank + 1) * nb):
    y[i] = np.dot(a[i, i:], x[i:])
```

**Use instead**

```python
for i in range(rank, size * nb, size):
    y[i] = np.dot(a[i, i:], x[i:])
```

**When it stays quiet.** Loops over `range(rank, n, size)` and lists dealt out by
`tasks[rank::size]`: they mostly deal out tasks, whose work nobody knows. Arithmetic on strided
elements outside loops. Loops that communicate, end early, or do what is not understood.

**Fix safety.** Shown only: each rank has other elements of the result, and what collects them has
to follow.

**Models used.** Lines (array statements), and the interpreter's time for an iteration.

**References.** Block and cyclic distributions of triangular work: any text on parallel algorithms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from advisor.ir.spmd.memory import Order, View, extent_of
from advisor.ir.spmd.program import RANK, RANKS, Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import (
    Branch,
    Communicate,
    Compute,
    Copy,
    Leave,
    Loop,
    Step,
    Unknown,
    Visit,
    walk,
)
from advisor.ir.values import Elementwise, MatMul, Range, Reduction, Strided
from costdb.expr import Expr, free_symbols, num, substitute, sym
from transforms.kit.memory import is_counted
from transforms.kit.programs import ProgramRule, offer
from transforms.kit.ranks import own_block


def propose(program: Program) -> Iterator[ProgramProposal]:
    """Yield the other way to share out work, where it shows which one is better."""
    for function in program.functions:
        for visit in function.visits():
            match visit.step:
                case Loop():
                    yield from _in_turn(program, function, visit, visit.step)
                case Compute() if function.weight(visit) > 0:
                    yield from _in_blocks(function, visit, visit.step)


def _in_turn(
    program: Program, function: SpmdFunction, visit: Visit, loop: Loop
) -> Iterator[ProgramProposal]:
    if not is_counted(loop):
        return
    rank, size = sym(RANK), sym(RANKS)
    length = own_block(loop.low, loop.high, rank)
    if length is None or not _is_uneven(loop):
        return
    dealt = replace(loop, low=rank, high=length * size, trips=length, stride=size)
    yield offer(
        function,
        visit,
        loop.span,
        f"deal the iterations over `{_name(program, loop)}` out in turn, not in blocks",
        "later iterations have more or less to do than earlier ones, so that one rank has most of"
        " the work and the others wait",
        (loop,),
        (dealt,),
        "the same iterations run, each on another rank; what collects their results follows",
        conditions=("no iteration needs what another one makes",),
    )


def _name(program: Program, loop: Loop) -> str:
    """Return what the source calls the index of a loop; symbols of one name have numbers."""
    line = program.context.lines[loop.span.start_line - 1][loop.span.start_column :]
    found = re.match(r"for\s+(\w+)\s+in\b", line)
    return loop.variable if found is None else found[1]


def _is_uneven(loop: Loop) -> bool:
    """Return whether the work of an iteration depends on its index, and on nothing unknown."""
    uneven = False
    for visit in walk(loop.body, into_calls=True):
        match visit.step:
            case Communicate() | Unknown() | Leave() | Branch():
                return False
            case Loop(trips=None):
                return False
        uneven |= any(loop.variable in free_symbols(amount) for amount in _amounts(visit.step))
    return uneven


def _amounts(step: Step) -> list[Expr]:
    """Return how much a step does."""
    match step:
        case Loop(trips=trips) if trips is not None:
            return [trips]
        case Copy(source=source):
            return [] if source.count is None else [source.count]
        case Compute(reads=reads):
            return [view.count for view in reads if view.count is not None]
    return []


def _in_blocks(function: SpmdFunction, visit: Visit, step: Compute) -> Iterator[ProgramProposal]:
    if not isinstance(step.value, Elementwise | Reduction | MatMul) or step.what:
        return
    strided = [view for view in step.reads if _is_every_other(view)]
    if not strided:
        return
    changed = replace(
        step, reads=tuple(_as_block(view) if view in strided else view for view in step.reads)
    )
    shown = " ".join(strided[0].text.split())
    yield offer(
        function,
        visit,
        step.span,
        f"give each rank neighbouring elements, not `{shown}`",
        "every so many elements are on as many cache lines as all of them",
        (step,),
        (changed,),
        "all elements are used once, each on another rank; what collects the results follows",
        conditions=("the elements cost equally much",),
    )


def _is_every_other(view: View) -> bool:
    """Return whether a view is every so many elements from the own rank on."""
    if not view.region or view.buffer.order is Order.UNKNOWN or view.transposed or view.flat:
        return False
    last = view.region[0] if view.buffer.order is Order.F else view.region[-1]
    return isinstance(last, Strided) and last.start == sym(RANK)


def _as_block(view: View) -> View:
    """Return as many neighbours, from the own rank's place on."""
    assert view.region is not None
    place = 0 if view.buffer.order is Order.F else len(view.region) - 1
    part = view.region[place]
    # as many on each rank: those of the first
    count = substitute(extent_of(part), {RANK: num(0)})
    block = Range(sym(RANK) * count, sym(RANK) * count + count)
    region = (*view.region[:place], block, *view.region[place + 1 :])
    return replace(view, region=region)


TRANSFORM = ProgramRule("ADV609", "dealt-out", __doc__, propose)
