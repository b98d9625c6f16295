"""# ADV610 needless-barrier

**What it does.** Finds barriers in loops in which ranks wait for messages of each other anyway.

**Why it costs.** A barrier is a collective without content: as many messages one after another as
a tree of all ranks is high, and a call from Python. In it all wait for the slowest rank, with
messages only for those that they hear from.

**Example**

```python
for step in range(n):
    exchange(u)
    comm.Barrier()
    norm = comm.allreduce(np.dot(u, u))
```

**Use instead**

```python
for step in range(n):
    exchange(u)
    norm = comm.allreduce(np.dot(u, u))
```

**When it stays quiet.** Files with one-sided communication, receives from anybody, files or shared
memory, where ranks may meet outside of messages; functions that read a clock, and loops that call
one, or print, unless a call in which all wait for all comes right behind the barrier; loops in
which all is sent from one root or to one, which without a barrier may be many messages ahead;
barriers outside loops or on another communicator.

**Fix safety.** Messages come to the same receives without the barrier, as their order between two
ranks stays. It is unsafe because files and processes that the source does not show may rely on it.

**Models used.** Lines (collectives).

**References.** The standard on barriers and on the order of messages between two processes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from advisor.ir.spmd.program import Program, ProgramProposal
from advisor.ir.spmd.steps import (
    Allocate,
    Call,
    Communicate,
    Compute,
    Copy,
    Interpret,
    Loop,
    Op,
    Visit,
    walk,
)
from advisor.source import Span
from costdb.expr import Expr, free_symbols, num
from transforms.kit.names import CLOCKS, is_simple, meet_otherwise, suite_of, timed, words
from transforms.kit.programs import ProgramRule, offer
from transforms.kit.ranks import on_all_ranks, same_communicator
from transforms.kit.rewrite import tree_of, without_statement

_FROM_OTHERS = frozenset(
    {Op.BARRIER, Op.ALLREDUCE, Op.ALLGATHER, Op.ALLTOALL, Op.REDUCE_SCATTER, Op.SENDRECV}
)
_FROM_ALL = _FROM_OTHERS - {Op.SENDRECV}
_ENDS = frozenset({Op.SEND, Op.RECV})
_FROM_ROOT = frozenset({Op.BCAST, Op.SCATTER})
_ROOTED = _FROM_ROOT | {Op.REDUCE, Op.GATHER}


def propose(program: Program) -> Iterator[ProgramProposal]:
    """Yield barriers in loops in which ranks wait for messages of each other anyway."""
    context = program.context
    if meet_otherwise(program):
        return
    measured = timed(program)
    for function in program.functions:
        gone: set[Span] = set()
        if function.name.rpartition(".")[2] in measured:
            continue
        for visit, step in function.operations():
            if step.op is not Op.BARRIER or not visit.loops or not is_simple(step, program):
                continue
            other = _next(visit, step, program)
            loop = visit.loops[-1]
            names = words(context.text(suite_of(loop.span, program)).replace(".", " "))
            if other is None and names.isdisjoint({"print", *measured}):
                other = _other(loop, step, gone)
            if other is not None and on_all_ranks(function.visits(), visit):
                gone.add(step.span)
                yield offer(
                    function,
                    visit,
                    step.span,
                    f"leave out the barrier: in `{other.method}` ranks wait for each other, too",
                    "a barrier costs as many messages one after another as a tree of all ranks is"
                    " high",
                    (step, other),
                    (other,),
                    "messages between two ranks keep their order without it; nothing in this file"
                    " lets ranks meet by anything else",
                    partial(without_statement, step.statement, context),
                )


def _next(visit: Visit, barrier: Communicate, program: Program) -> Communicate | None:
    """Return the call behind a barrier in which each rank waits for all, if nothing is between.

    What ranks did before the barrier then all of them have done behind the call, too. No clock is
    read in between, and nothing printed.
    """
    context, asked = program.context, {"print", *CLOCKS, *timed(program)}
    line, lines = barrier.statement.end_line + 1, list[str]()
    for one in walk(visit.block[visit.position + 1 :], into_calls=True):
        step = one.step
        lines += context.lines[line - 1 : step.span.start_line - 1]
        line = max(line, step.span.start_line)
        match step:
            case Call(body=(first, *_)):
                inside = (f for f in ast.walk(tree_of(context.source)) if _holds(f, first.span))
                line = max((getattr(f, "lineno", 0) for f in inside), default=line)
            case Communicate(op=op, blocking=True) if op in _FROM_ALL:
                same = same_communicator(step.communicator, barrier.communicator)
                named = words(" ".join(lines).replace(".", " "))
                return step if same and named.isdisjoint(asked) else None
            case Compute() | Copy() | Allocate() | Interpret():
                pass
            case _:
                return None
    return None


def _holds(node: ast.AST, place: Span) -> bool:
    """Return whether a function holds a place."""
    if not isinstance(node, ast.FunctionDef):
        return False
    return node.lineno <= place.start_line <= (node.end_lineno or node.lineno)


def _other(loop: Loop, barrier: Communicate, gone: set[Span]) -> Communicate | None:
    """Return the smallest call of a loop in which each rank waits for others, none that is `gone`.

    Not one with the same root each time, unless that waited for all others before it: what the one
    way is sent may be many iterations ahead.
    """
    found: list[Communicate] = []
    roots: list[Expr | None] = []  # that wait for all others
    for visit in walk(loop.body, into_calls=True):
        step = visit.step
        if not isinstance(step, Communicate) or step.span in {barrier.span, *gone}:
            continue
        if step.op in _ENDS:
            partner = step.dest or step.source
            rank = None if partner is None else partner.rank
            found += [step] if rank is not None and loop.variable in free_symbols(rank) else []
        elif step.blocking and not visit.branches:
            moves = step.op in _ROOTED and not _is_the_same(step)
            same = same_communicator(step.communicator, barrier.communicator)
            back = step.op in _FROM_ROOT and step.root in roots
            found += [step] if moves or (same and (back or step.op in _FROM_OTHERS)) else []
            roots += [step.root] if same and step.op in _ROOTED - _FROM_ROOT else []
    return min(found, key=lambda step: not _is_number(step), default=None)


def _is_the_same(step: Communicate) -> bool:
    """Return whether a root is the same rank each time."""
    size = free_symbols(step.communicator.size)
    return step.root is not None and free_symbols(step.root) <= size


def _is_number(step: Communicate) -> bool:
    return step.send is not None and step.send.count == num(1)


TRANSFORM = ProgramRule("ADV610", "needless-barrier", __doc__, propose)
