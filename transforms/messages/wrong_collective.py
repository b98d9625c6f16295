"""ADV604: collectives that move only what is used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from advisor.ir.spmd.program import Program
from advisor.ir.spmd.proposal import ProgramProposal
from transforms.messages.gathered_fields import gathered_fields
from transforms.messages.gathers_in_loops import gathered_too_often
from transforms.messages.padded_sums import padded_sums
from transforms.messages.reduced_blocks import reduced_blocks
from transforms.messages.used_blocks import used_blocks

DOCUMENTATION = """\
# ADV604 wrong-collective

**What it does.** Finds collectives that move more than is used of it: a broadcast of a whole array
of which every rank uses its block (`Scatter`), a sum of which every rank uses its block
(`Reduce_scatter_block`), a sum over arrays that are zero but for the own block (`Allgather`), a
field that is gathered for one number (`reduce`, `allreduce`), a field that is gathered on all ranks
but used on one (`Gather`), and a field that is gathered in every step but used behind the loop
only.

**Why it costs.** The time of a collective grows with what it moves. A scatter moves `n` elements
from the root, a broadcast `n` for every rank; a sum of padded arrays moves and adds a zero for
every element and every other rank; and a number is less than a field.

**Example**

```python
full = np.zeros(n * size)
full[rank * n : (rank + 1) * n] = mine
comm.Allreduce(MPI.IN_PLACE, full)
```

**Use instead**

```python
full = np.zeros(n * size)
full[rank * n : (rank + 1) * n] = mine
comm.Allgather(MPI.IN_PLACE, full)
```

**When it stays quiet.** Arrays of which anything else is used anywhere in the function, or that it
returns or was given; blocks of different lengths, or that are not in the order of ranks;
collectives outside loops, which are set-up or output; numbers that are made of more than one
field, or in more than one step; gathers that not every iteration does, or behind which what was
sent is changed; reductions in place, or by an operation of the program's own.

**Fix safety.** Sums of floating-point numbers are collected in another order and agree to
rounding; a padded sum turns a negative zero into a positive one, a gather keeps it; a scatter
leaves the rest of the array as it was; a loop without any iteration gathered nothing. Such fixes
are unsafe. A field that only one rank uses
is gathered there safely. Pickled forms are shown only.

**Models used.** Lines (collectives, array statements), pickle.

**References.** Costs of collective operations by volume: any text on parallel algorithms.
"""


@dataclass(frozen=True, slots=True)
class WrongCollective:
    """The rule ADV604; see its page in `documentation`."""

    code: str = "ADV604"
    name: str = "wrong-collective"
    documentation: str = DOCUMENTATION

    def propose_program(self, program: Program) -> Iterator[ProgramProposal]:
        """Yield a collective that moves what is used, for every one that moves more."""
        for function in program.functions:
            yield from used_blocks(program, function)
            yield from reduced_blocks(program, function)
            yield from padded_sums(program, function)
            yield from gathered_fields(program, function)
            yield from gathered_too_often(program, function)


TRANSFORM = WrongCollective()
