"""ADV607: collectives in the place of messages that do their work one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from advisor.ir.spmd.program import Program
from advisor.ir.spmd.proposal import ProgramProposal
from transforms.messages.exchange_loops import exchange_loops
from transforms.messages.rank_chains import chains
from transforms.messages.ring_loops import ring_loops
from transforms.messages.root_loops import root_loops

DOCUMENTATION = """\
# ADV607 hand-written-collective

**What it does.** Finds messages that do by hand what one call does: a root that receives from one
rank after the other (`Gather`, or `Reduce` where it adds up) or sends to one after the other
(`Scatter`, `Bcast`), a loop of exchanges with every rank (`Alltoall`), a loop in which rows go
round a ring until every rank has all of them (`Allgather`), and a chain of blocking messages, in
which each rank waits for the one before it although what it sends is ready (`Sendrecv`).

**Why it costs.** A root that handles its messages one by one needs time in proportion to the
number of ranks, where a tree needs its logarithm, and each message is a call from Python. In a
chain the last rank gets its message after all others have theirs.

**Example**

```python
if rank == 0:
    for i in range(1, size):
        comm.Recv(whole[i], source=i)
else:
    comm.Send(mine, dest=0)
```

**Use instead**

```python
if rank == 0:
    comm.Gather(MPI.IN_PLACE, whole, root=0)
else:
    comm.Gather(mine, None, root=0)
```

**When it stays quiet.** Task farms and whatever else receives from `ANY_SOURCE`; chains outside
loops, which are set-up or output; pieces that are not all as large, or not in the order of ranks;
branches that communicate besides; what a root makes anew, or picks by its index, for each rank and
which is no slice of one array; chains that pass on what they received; programs that would
wait for ever as they stand.

**Fix safety.** The same elements come to the same places. A collective is unsafe, because every
rank of the communicator has to call it, in the same order as all others: the two branches show
that they do, but not what other files do. `Sendrecv` is safe. Where the text of what is sent
cannot be written, where a root does more with what it receives, and where messages are pickled,
the suggestion is shown only.

**Models used.** Lines (messages, collectives), and the interpreter's time for an iteration.

**References.** Algorithms of collective operations: any text on MPI; the standard on `MPI_IN_PLACE`
and on deadlock in blocking exchanges.
"""


@dataclass(frozen=True, slots=True)
class HandWrittenCollective:
    """The rule ADV607; see its page in `documentation`."""

    code: str = "ADV607"
    name: str = "hand-written-collective"
    documentation: str = DOCUMENTATION

    def propose_program(self, program: Program) -> Iterator[ProgramProposal]:
        """Yield the call that does what several messages do."""
        for function in program.functions:
            yield from root_loops(program, function)
            yield from exchange_loops(program, function)
            yield from ring_loops(program, function)
            yield from chains(program, function)


TRANSFORM = HandWrittenCollective()
