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
floating-point; other operations or communicators; numbers that what stands between the calls asks
for or changes, work that writes to arrays, and messages; reductions outside loops.

**Fix safety.** Unsafe: sums may be collected in another order, so that they agree to rounding.

**Models used.** Pickle, lines (collectives).

**References.** Merging of reductions in conjugate gradient methods: any text on parallel solvers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from advisor.ir.spmd.memory import Buffer, View
from advisor.ir.spmd.payloads import PayloadKind
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Allocate, Communicate, Compute, Copy, Interpret, Op, Step, Visit
from advisor.source import Span
from costdb.expr import num
from transforms.kit.memory import new_array, payload_of
from transforms.kit.names import argument, bound_names, is_name, is_simple, loaded_names
from transforms.kit.programs import ProgramRule, offer
from transforms.kit.rewrite import fresh_name, in_place_of, span_of, stretch, suite_at

_OPERATIONS = frozenset({"SUM", "PROD", "MAX", "MIN"})
_NUMBERS = frozenset({"float", "float64"})


def propose(program: Program) -> Iterator[ProgramProposal]:
    """Yield one reduction for all those that none of them, and nothing in between, waits for."""
    for function in program.functions:
        taken: set[Span] = set()
        for visit, step in function.operations():
            if step.span in taken or not _is_number(program, step):
                continue
            run, between = _run(program, visit, step)
            taken |= {one.span for one in run}
            if len(run) > 1:
                yield _proposal(program, function, visit, run, between)


def _run(
    program: Program, visit: Visit, first: Communicate
) -> tuple[list[Communicate], list[ast.stmt]]:
    """Return the reductions from one on that could be one, and what else stands among them."""
    context = program.context
    nodes, at = suite_at(first.statement, context) or ([], 0)
    steps: dict[int, list[Step]] = {}
    for one in visit.block[visit.position :]:
        steps.setdefault(one.span.start_line, []).append(one)
    run, between, passed = [first], list[ast.stmt](), list[ast.stmt]()
    for node in nodes[at + 1 :]:
        place = span_of(node, context.lines)
        lines = range(place.start_line, place.end_line + 1)
        held = [one for line in lines for one in steps.get(line, ())]
        calls = [one for one in held if isinstance(one, Communicate)]
        harmless = all(_changes_nothing(one, place) for one in held)
        if not isinstance(node, ast.Assign) or not harmless:
            break
        targets = [part for one in node.targets for part in ast.walk(one)]
        if not all(isinstance(one, ast.Name | ast.Tuple | ast.Store) for one in targets):
            break
        if not all(_is_number(program, one) for one in calls):
            break
        given = loaded_names(_sent(one, program) for one in run)
        results = {str(one.result) for one in run}
        if loaded_names([node.value]) & results or bound_names([node]) & (given | results):
            break
        if [one.statement for one in calls] == [place] and _is_alike(first, calls[0]):
            run.append(calls[0])
            between += passed
            passed = []
        else:
            passed.append(node)
    return run, between


def _changes_nothing(step: Step, place: Span) -> bool:
    """Return whether a step at a place writes to no memory that was there before."""
    match step:
        case Compute(target=View(buffer=Buffer(allocation=made))):
            return place.contains(made.span)
        case Copy(allocates=allocates):
            return allocates
    return isinstance(step, Compute | Allocate | Interpret | Communicate)


def _sent(step: Communicate, program: Program) -> ast.AST:
    return ast.parse(argument(step, "sendobj", program) or "", mode="eval")


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


def _is_alike(first: Communicate, step: Communicate) -> bool:
    return (first.communicator.text, first.receiver, first.operation) == (
        step.communicator.text,
        step.receiver,
        step.operation,
    )


def _results(name: str, run: list[Communicate]) -> str:
    """Return the elements of an array, as numbers of the types that were sent."""
    ours = [step.send is not None and step.send.dtype == "float" for step in run]
    if len(set(ours)) == 1:
        return f"{name}.tolist()" if ours[0] else name
    taken = (f"{name}[{number}]" for number in range(len(run)))
    return ", ".join(f"float({one})" if own else one for one, own in zip(taken, ours, strict=True))


def _proposal(
    program: Program,
    function: SpmdFunction,
    visit: Visit,
    run: list[Communicate],
    between: list[ast.stmt],
) -> ProgramProposal:
    first, context = run[0], program.context
    together = payload_of(new_array("reduced", "float64", (num(len(run)),), first.span), first.span)
    fused = replace(
        first, method="Allreduce", pickled=False, send=None, receive=together, in_place=True
    )
    name = fresh_name("reduced", context.identifiers)
    sent: list[str] = []
    others = [span_of(node, context.lines) for node in between]
    lines = [(place, context.text(place)) for place in others]
    for step in run:
        text = argument(step, "sendobj", program) or ""
        if between and step is not run[-1] and not is_name(text):
            # what is sent is computed where it was: what stands behind may draw numbers, too
            here = fresh_name(f"{step.result}_here", context.identifiers)
            lines.append((step.statement, f"{here} = {text}"))
            text = here
        sent.append(text)
    operation = argument(first, "op", program)
    given = "" if operation is None else f", op={operation}"
    written = [
        *(text for _, text in sorted(lines)),
        f"{name} = {context.array_module}.array([{', '.join(sent)}])",
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
        in_place_of(place, written, context) if writable else "NumPy or MPI has no name",
    )


TRANSFORM = ProgramRule("ADV608", "separate-reductions", __doc__, propose)
