"""# ADV609 dealt-out

**What it does.** Finds loops whose iterations ranks share out in blocks although later ones have
more to do, or less, as in triangular work, and deals them out in turn.

**Why it costs.** Where an iteration's work grows with its index, the rank with the last block
does most of it, in a triangle nearly twice the mean, and all others wait. Dealt out in turn,
every rank has short and long ones.

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
`tasks[rank::size]`: they mostly deal out tasks, whose work nobody knows. Loops that communicate,
end early, or do what is not understood.

**Fix safety.** Shown only: each rank has other elements of the result, and what collects them has
to follow.

**Models used.** Lines (array statements), and the interpreter's time for an iteration.

**References.** Block and cyclic distributions of triangular work: any text on parallel algorithms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from advisor.ir.spmd.program import RANK, RANKS, Program, ProgramProposal
from advisor.ir.spmd.steps import (
    Branch,
    Communicate,
    Compute,
    Copy,
    Leave,
    Loop,
    Step,
    Unknown,
    walk,
)
from costdb.expr import Expr, free_symbols, sym
from transforms.kit.memory import is_counted
from transforms.kit.programs import ProgramRule, offer
from transforms.kit.ranks import own_block


def propose(program: Program) -> Iterator[ProgramProposal]:
    """Yield the other way to share out loops of uneven work."""
    rank, size = sym(RANK), sym(RANKS)
    for function, visit in ((one, visit) for one in program.functions for visit in one.visits()):
        loop = visit.step
        if not isinstance(loop, Loop) or not is_counted(loop):
            continue
        length = own_block(loop.low, loop.high, rank)
        if length is None or not _is_uneven(loop):
            continue
        dealt = replace(loop, low=rank, high=length * size, trips=length, stride=size)
        yield offer(
            function,
            visit,
            loop.span,
            f"deal the iterations over `{_name(program, loop)}` out in turn, not in blocks",
            "later iterations have more or less to do than earlier ones, so that one rank has most"
            " of the work and the others wait",
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


TRANSFORM = ProgramRule("ADV609", "dealt-out", __doc__, propose)
