"""# ADV610 needless-barrier

**What it does.** Finds barriers in loops beside a collective that waits for all ranks. Nothing but
work of the rank's own stands between.

**Why it costs.** A barrier is a collective without content: as many messages one after another as
a tree of all ranks is high, and a call from Python. The collective beside it waits for the same
ranks.

**Example**

```python
for step in range(n):
    comm.Barrier()
    norm = comm.allreduce(np.dot(u, u))
```

**Use instead**

```python
for step in range(n):
    norm = comm.allreduce(np.dot(u, u))
```

**When it stays quiet.** Files with one-sided communication, receives from anybody, clocks, files or
shared memory, where ranks may meet outside of messages; loops that print; barriers outside loops or
on another communicator.

**Fix safety.** Messages come to the same receives without the barrier, as their order between two
ranks stays. It is unsafe because files and processes that the source does not show may rely on it.

**Models used.** Lines (collectives).

**References.** The standard on barriers and on the order of messages between two processes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from advisor.ir.kernel import SourceContext
from advisor.ir.spmd.program import Program, ProgramProposal
from advisor.ir.spmd.steps import Allocate, Communicate, Compute, Copy, Interpret, Op, Step
from advisor.source import Edit, Span
from transforms.kit.names import is_simple, suite_of, words
from transforms.kit.programs import ProgramRule, offer
from transforms.kit.ranks import same_communicator
from transforms.kit.rewrite import Edits, comments_within, in_place_of, line_of, suite_at

_FOR_ALL = frozenset({Op.BARRIER, Op.ALLREDUCE, Op.ALLGATHER, Op.ALLTOALL, Op.REDUCE_SCATTER})
_OWN = Compute | Copy | Allocate | Interpret
_AROUND = frozenset(
    {
        "ANY_SOURCE", "File", "Probe", "Iprobe", "Win", "Wtime", "memmap", "monotonic", "open",
        "perf_counter", "perf_counter_ns", "probe", "iprobe", "process_time", "save", "savez",
        "shared_memory", "sleep", "subprocess", "system", "time", "timeit",
    }
)  # fmt: skip
"""Names of what ranks may meet by, or be timed by, besides messages."""


def propose(program: Program) -> Iterator[ProgramProposal]:
    """Yield barriers in loops that a collective beside them makes needless."""
    context = program.context
    if _AROUND & context.identifiers:
        return
    for function in program.functions:
        gone: set[Span] = set()
        for visit, step in function.operations():
            if step.op is not Op.BARRIER or not visit.loops or not is_simple(step, program):
                continue
            if "print" in words(context.text(suite_of(visit.loops[-1].span, program))):
                continue
            sides = visit.block[visit.position + 1 :], visit.block[: visit.position][::-1]
            beside = [one for side in sides for one in _beside(side) if one.span not in gone]
            other = next((one for one in beside if _waits_as(one, step)), None)
            if other is None:
                continue
            gone.add(step.span)
            yield offer(
                function,
                visit,
                step.span,
                f"leave out the barrier: `{other.method}` beside it waits for all ranks, too",
                "a barrier costs as many messages one after another as a tree of all ranks is high",
                (step, other),
                (other,),
                "messages between two ranks keep their order without it; nothing in this file lets"
                " ranks meet by anything else",
                _without(step.statement, context),
            )


def _without(place: Span, context: SourceContext) -> Edits:
    """Return what leaves out a statement, or puts `pass` where there is no other."""
    nodes, _ = suite_at(place, context) or ([], 0)
    line = line_of(place.start_line, place.end_line)
    if len(nodes) == 1 or comments_within(line, context.source):
        return in_place_of(place, ["pass"], context)
    return lambda: (Edit(line, ""),)


def _beside(steps: Sequence[Step]) -> Iterator[Communicate]:
    """Yield the communication that comes first, if all before it is work of the own rank."""
    for step in steps:
        if isinstance(step, Communicate):
            yield step
        if not isinstance(step, _OWN):
            return


def _waits_as(other: Communicate, barrier: Communicate) -> bool:
    return (
        other.op in _FOR_ALL
        and other.blocking
        and same_communicator(other.communicator, barrier.communicator)
    )


TRANSFORM = ProgramRule("ADV610", "needless-barrier", __doc__, propose)
