"""# ADV301 interleaved-writes

**What it does.** Finds parallel loops over threads, each of which takes every so many elements of
an array that it writes, and gives each thread a block of neighbours.

**Why it costs.** Elements that lie on one cache line are then written by several threads. A line
can be in one processor's cache only while that processor writes to it, so it goes back and forth
between them, at up to every access. In blocks, only the lines at the blocks' ends are shared, and
a thread uses all of the lines that it reads.

**Example**

```python
for t in prange(threads):
    for i in range(t, n, threads):
        y[i] = 2.0 * x[i]
```

**Use instead**

```python
for t in prange(threads):
    chunk = (n + threads - 1) // threads
    for i in range(t * chunk, min((t + 1) * chunk, n)):
        y[i] = 2.0 * x[i]
```

**When it stays quiet.** Where what is dealt out are rows of an array stored by rows, which are on
lines of their own, or where only the arrays that are read have neighbours. Profiles without
functions for supersteps have no prediction. Blocks of work that grows with the index are not
even; the price counts that.

**Fix safety.** Shown only: results stay what they are where no iteration needs what another one of
its thread makes, nor the number of the thread, and nothing behind the loop asks for its last one.

**Models used.** Supersteps of shared memory: with at least a cache line between a thread's
accesses they are those of the Bad functions, with nothing between them those of the Good ones;
what is between the two is told by the interval.

**References.** Good and Bad cost functions: a study of communication cost functions on the SGI
Power Challenge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import (
    Compute,
    Copy,
    Loop,
    LoopKind,
    Visit,
    follows,
    is_dealt_in_turn,
    walk,
)
from costdb.expr import ceil_div, maximum, minimum, sym
from transforms.kit.programs import ProgramRule, offer


def propose(program: Program) -> Iterator[ProgramProposal]:
    """Yield blocks for each loop that deals elements out to threads in turn."""
    for function in program.functions:
        for visit in function.visits():
            outer = visit.step
            if isinstance(outer, Loop) and outer.kind is LoopKind.THREADS:
                for inner in outer.body:
                    if isinstance(inner, Loop) and is_dealt_in_turn(outer, inner):
                        yield from _in_blocks(function, visit, outer, inner)


def _in_blocks(
    function: SpmdFunction, visit: Visit, outer: Loop, inner: Loop
) -> Iterator[ProgramProposal]:
    names = _written(inner)
    if not names:
        return
    thread, chunk = sym(outer.variable), ceil_div(inner.high, outer.high)
    low, high = thread * chunk, minimum((thread + 1) * chunk, inner.high)
    block = replace(inner, low=low, high=high, step=1, stride=None, trips=maximum(high - low, 0))
    body = tuple(block if step is inner else step for step in outer.body)
    shown = ", ".join(f"`{name}`" for name in names)
    yield offer(
        function,
        visit,
        inner.span,
        f"give each thread neighbouring elements of {shown}, not every so many",
        "several threads write to each cache line, which goes back and forth between them",
        (outer,),
        (replace(outer, body=body),),
        "the same iterations run, each by another thread",
        conditions=("no iteration needs what another one of its thread makes",),
    )


def _written(inner: Loop) -> list[str]:
    """Return the arrays of which the loop writes one element after the other."""
    names: dict[str, None] = {}
    for visit in walk(inner.body):
        if isinstance(visit.step, Compute | Copy) and visit.step.target is not None:
            target = visit.step.target
            if not visit.loops and follows(target, inner.variable):
                names[target.buffer.name] = None
    return list(names)


TRANSFORM = ProgramRule("ADV301", "interleaved-writes", __doc__, propose)
