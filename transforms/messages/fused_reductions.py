"""ADV608: reduce several numbers at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from advisor.finding import Applicability
from advisor.ir.proposal import Legality
from advisor.ir.spmd.memory import Allocation, Buffer, Order, Origin, View, Whole
from advisor.ir.spmd.payloads import Payload, PayloadKind
from advisor.ir.spmd.program import Program, SpmdFunction
from advisor.ir.spmd.proposal import ProgramProposal
from advisor.ir.spmd.steps import Allocate, Communicate, Compute, Op, Visit
from advisor.source import Edit, Span
from costdb.expr import num
from transforms.programs.spmd_calls import argument, is_simple
from transforms.source.writing import fresh_name

DOCUMENTATION = """\
# ADV608 separate-reductions

**What it does.** Finds numbers that are reduced over all ranks one after another, none of them
depending on the one before, and reduces them as one small array.

**Why it costs.** A reduction of one number is all latency: a tree of messages, each with its
start-up time. Two numbers in one array take as long as one. The lower-case form serialises each
number besides, and combines them in Python.

**Example**

```python
error = comm.allreduce(error_here, op=MPI.SUM)
norm = comm.allreduce(norm_here, op=MPI.SUM)
```

**Use instead**

```python
reduced = np.array([error_here, norm_here])
comm.Allreduce(MPI.IN_PLACE, reduced, op=MPI.SUM)
error, norm = reduced
```

**When it stays quiet.** Numbers whose type the source does not tell, or that are not all
floating-point; other operations or communicators; anything between the calls; reductions outside
loops.

**Fix safety.** Unsafe: sums may be collected in another order, so that they agree to rounding, and
the results are NumPy's numbers of the same value, not Python's.

**Models used.** Pickle, lines (collectives).

**References.** Merging of reductions in conjugate gradient methods: any text on parallel solvers.
"""

_OPERATIONS = frozenset({"SUM", "PROD", "MAX", "MIN"})
_NUMBERS = frozenset({"float", "float64"})


@dataclass(frozen=True, slots=True)
class SeparateReductions:
    """The rule ADV608; see its page in `documentation`."""

    code: str = "ADV608"
    name: str = "separate-reductions"
    documentation: str = DOCUMENTATION

    def propose_program(self, program: Program) -> Iterator[ProgramProposal]:
        """Yield one reduction for every run of independent ones that follow one another."""
        for function in program.functions:
            taken: set[Span] = set()
            for visit, step in function.operations():
                if step.span in taken or function.weight(visit) == 0:
                    continue
                run = _run(program, visit)
                taken |= {one.span for one in run}
                if len(run) > 1:
                    yield _proposal(program, function, visit, run)


def _run(program: Program, visit: Visit) -> list[Communicate]:
    """Return the reductions from a step on that could be one."""
    found: list[Communicate] = []
    for step in visit.block[visit.position :]:
        if isinstance(step, Compute | Allocate):
            continue  # of an argument: the calls stand on lines that follow one another
        if not isinstance(step, Communicate) or not _is_number(program, step):
            break
        if found and not _follows(program, found, step):
            break
        found.append(step)
    return found


def _is_number(program: Program, step: Communicate) -> bool:
    """Return whether a step reduces one floating-point number on all ranks, into a name."""
    sent = step.send
    return (
        step.op is Op.ALLREDUCE
        and step.pickled
        and step.blocking
        and step.operation in _OPERATIONS
        and step.result is not None
        and sent is not None
        and sent.kind is PayloadKind.SCALAR
        and sent.dtype in _NUMBERS
        and is_simple(step, program)
    )


def _follows(program: Program, before: list[Communicate], step: Communicate) -> bool:
    last = before[-1]
    text = argument(step, "sendobj", program) or ""
    results = [one.result for one in before]
    return (
        step.statement.start_line == last.statement.end_line + 1
        and step.communicator.text == last.communicator.text
        and step.receiver == last.receiver
        and step.operation == last.operation
        and step.result not in results
        and not any(re.search(rf"\b{re.escape(str(name))}\b", text) for name in results)
    )


def _proposal(
    program: Program, function: SpmdFunction, visit: Visit, run: list[Communicate]
) -> ProgramProposal:
    first = run[0]
    memory = Buffer(
        "reduced",
        -1,
        "float64",
        (num(len(run)),),
        Order.C,
        Allocation(Origin.PYTHON, "reduced", first.span),
    )
    whole = View(memory, (Whole(num(len(run))),), "reduced", first.span)
    payload = Payload(
        PayloadKind.ARRAY, "reduced", first.span, view=whole, dtype="float64", count=num(len(run))
    )
    fused = replace(
        first, method="Allreduce", pickled=False, send=None, receive=payload, in_place=True
    )
    writable = program.context.array_module is not None and program.mpi_module is not None
    return ProgramProposal(
        title=f"reduce the {len(run)} numbers at once, as an array",
        reason="a reduction of a number is all start-up time, and several take as long as one",
        span=first.span,
        function=function,
        before=tuple(run),
        after=(fused,),
        legality=Legality(
            Applicability.UNSAFE if writable else Applicability.DISPLAY,
            "none of them depends on another; sums may be collected in another order, and agree"
            " to rounding",
        ),
        loops=visit.loops,
        edits=partial(_edits, program, run) if writable else tuple,
    )


def _edits(program: Program, run: list[Communicate]) -> tuple[Edit, ...]:
    context, first, last = program.context, run[0], run[-1]
    name = fresh_name("reduced", context.identifiers)
    sent = [argument(step, "sendobj", program) or "" for step in run]
    operation = argument(first, "op", program)
    given = "" if operation is None else f", op={operation}"
    lines = [
        f"{name} = {context.array_module}.array([{', '.join(sent)}])",
        f"{first.receiver}.Allreduce({program.mpi_module}.IN_PLACE, {name}{given})",
        f"{', '.join(str(step.result) for step in run)} = {name}",
    ]
    # comments at the ends of the lines stay above what takes their place
    ends = [context.lines[step.statement.end_line - 1] for step in run[:-1]]
    comments = [line[line.index("#") :] for line in ends if "#" in line]
    indent = context.lines[first.statement.start_line - 1][: first.statement.start_column]
    place = Span(
        first.statement.start_line,
        first.statement.start_column,
        last.statement.end_line,
        last.statement.end_column,
    )
    return (Edit(place, f"\n{indent}".join([*comments, *lines])),)


TRANSFORM = SeparateReductions()
