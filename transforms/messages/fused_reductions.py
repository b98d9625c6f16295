"""# ADV608 separate-reductions

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

**Fix safety.** Unsafe: sums may be collected in another order, so that they agree to rounding.

**Models used.** Pickle, lines (collectives).

**References.** Merging of reductions in conjugate gradient methods: any text on parallel solvers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from advisor.ir.spmd.payloads import PayloadKind
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Allocate, Communicate, Compute, Interpret, Op, Visit
from advisor.source import Span
from costdb.expr import num
from transforms.kit.memory import new_array, payload_of
from transforms.kit.names import argument, is_simple
from transforms.kit.programs import ProgramRule, offer
from transforms.kit.rewrite import fresh_name, in_place_of, stretch

_OPERATIONS = frozenset({"SUM", "PROD", "MAX", "MIN"})
_NUMBERS = frozenset({"float", "float64"})


def propose(program: Program) -> Iterator[ProgramProposal]:
    """Yield one reduction for every run of independent ones that follow one another."""
    for function in program.functions:
        taken: set[Span] = set()
        for visit, step in function.operations():
            if step.span in taken:
                continue
            run = _run(program, visit)
            taken |= {one.span for one in run}
            if len(run) > 1:
                yield _proposal(program, function, visit, run)


def _run(program: Program, visit: Visit) -> list[Communicate]:
    """Return the reductions from a step on that could be one."""
    found: list[Communicate] = []
    for step in visit.block[visit.position :]:
        if isinstance(step, Compute | Allocate | Interpret):
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


def _results(name: str, run: list[Communicate]) -> str:
    """Return the elements of an array, as numbers of the types that were sent."""
    ours = [step.send is not None and step.send.dtype == "float" for step in run]
    if len(set(ours)) == 1:
        return f"{name}.tolist()" if ours[0] else name
    taken = (f"{name}[{number}]" for number in range(len(run)))
    return ", ".join(f"float({one})" if own else one for one, own in zip(taken, ours, strict=True))


def _proposal(
    program: Program, function: SpmdFunction, visit: Visit, run: list[Communicate]
) -> ProgramProposal:
    first, context = run[0], program.context
    together = payload_of(new_array("reduced", "float64", (num(len(run)),), first.span), first.span)
    fused = replace(
        first, method="Allreduce", pickled=False, send=None, receive=together, in_place=True
    )
    name = fresh_name("reduced", context.identifiers)
    sent = ", ".join(argument(step, "sendobj", program) or "" for step in run)
    operation = argument(first, "op", program)
    given = "" if operation is None else f", op={operation}"
    lines = [
        f"{name} = {context.array_module}.array([{sent}])",
        f"{first.receiver}.Allreduce({program.mpi_module}.IN_PLACE, {name}{given})",
        f"{', '.join(str(step.result) for step in run)} = {_results(name, run)}",
    ]
    place = stretch(first.statement, run[-1].statement)
    writable = context.array_module is not None and program.mpi_module is not None
    return offer(
        function,
        visit,
        first.span,
        f"reduce the {len(run)} numbers at once, as an array",
        "a reduction of a number is all start-up time, and several take as long as one",
        tuple(run),
        (fused,),
        "none of them depends on another; sums may be collected in another order, and agree to"
        " rounding" + "; none of the numbers is NaN" * (first.operation in ("MAX", "MIN")),
        in_place_of(place, lines, context) if writable else "NumPy or MPI has no name",
    )


TRANSFORM = ProgramRule("ADV608", "separate-reductions", __doc__, propose)
