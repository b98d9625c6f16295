"""Fields that are gathered from all ranks for less than the whole of them.

Of a field that every rank gets, one number is made, or some planes of it are used.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from advisor.ir.spmd.memory import Origin, Payload, PayloadKind, View
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import (
    Communicate,
    Compute,
    ConditionKind,
    Op,
    Visit,
)
from advisor.ir.values import Point
from advisor.source import Edit, Span, every
from costdb.expr import num, sym
from costdb.expr.polynomials import expand
from transforms.kit import memory, rewrite
from transforms.kit.names import (
    argument,
    is_name,
    is_simple,
    keywords,
    occurrences,
    uses_of,
)
from transforms.kit.programs import offer
from transforms.kit.ranks import on_all_ranks, root_only
from transforms.messages.combined_parts import combined, combining

_MADE = (Origin.NEW, Origin.COMPUTED)
_STATISTICS = ("sum", "max", "min")


def gathered_fields(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield what a gathered field is for: a number, or some planes."""
    for visit, step in function.operations():
        if step.op not in (Op.GATHER, Op.ALLGATHER) or not step.blocking:
            continue
        if step.op is Op.ALLGATHER:
            yield from _planes(program, function, visit, step)
        number = step.send is not None and step.send.kind is PayloadKind.SCALAR
        if number if step.pickled else _is_field(function, step):
            yield from _reduced(program, function, visit, step)


def _is_field(function: SpmdFunction, step: Communicate) -> bool:
    """Return whether all of an array comes, one part after the other, that nobody else has."""
    sent, got = memory.plain_array(step.send), memory.plain_array(step.receive)
    if sent is None or got is None or sent.count is None or step.receive is None or step.varying:
        return False
    made = got.buffer.allocation
    return (
        sent.dtype == got.dtype
        and got.is_whole
        and got.count == sent.count * step.communicator.size
        and made.origin is Origin.NEW
        and function.whole.contains(made.span)
        and is_name(step.receive.text)
        and memory.is_stretch(sent)
    )


# --- some planes --------------------------------------------------------------------------------


def _planes(
    program: Program, function: SpmdFunction, visit: Visit, step: Communicate
) -> Iterator[ProgramProposal]:
    """Yield messages for what is used of an array that all ranks gather.

    That is a few planes, or the own block and what is next to it.
    """
    got, joined = _joined(visit, step)
    if got is None or not got.is_whole or got.buffer.allocation.origin not in _MADE:
        return
    name, made = got.buffer.name, got.buffer.allocation.span
    if not is_name(name) or name in function.returned or not function.whole.contains(made):
        return
    visits = [one for one in function.visits() if one.step not in (step, *joined)]
    found = [
        (one, view)
        for one in visits
        for view in memory.reads_of(one.step)
        if memory.may_share(view, got)
    ]
    parts, near = list[Payload](), False
    for one, view in found:
        if _is_near(one, view, step):
            near = True
            continue
        if one.loops != visit.loops or not view.region or not isinstance(view.region[0], Point):
            return
        if any(branch.condition.kind is ConditionKind.RANK for branch, _ in one.branches):
            return  # not all ranks use them
        parts.append(memory.payload_of(view, step.span))
    allowed = (step.statement, *(one.span for one in joined))
    allowed += tuple(view.span for _, view in found if view.span is not None)
    if not found or uses_of(name, function, program, *allowed):
        return
    if near and got.region:
        line = replace(got, region=(Point(num(0)), *got.region[1:]))
        parts += [memory.payload_of(line, step.span)] * 2
    does = f"send those planes of `{name}` that are used"
    yield offer(
        function,
        visit,
        step.span,
        (f"exchange what is next to the own block of `{name}`" if near else does)
        + ", do not gather all of it",
        "every rank gets all elements, and looks at a few of them",
        (step, *joined),
        tuple(
            replace(
                step,
                op=Op.SENDRECV,
                method="Sendrecv",
                pickled=False,
                varying=False,
                send=one,
                receive=one,
            )
            for one in parts
        ),
        f"nothing else of `{name}` is used; no edit can be written: who has a plane is in no name",
    )


def _joined(visit: Visit, step: Communicate) -> tuple[View | None, tuple[Compute, ...]]:
    """Return the array of all that is gathered, and what makes it of the parts."""
    if not step.pickled:
        return (None if step.receive is None else step.receive.view), ()
    for one in visit.block[visit.position + 1 :]:
        if isinstance(one, Compute) and one.target is not None and one.allocates:
            of = [view.buffer.allocation.span for view in one.reads]
            if of == [step.span]:
                return one.target, (one,)
    return None, ()


def _is_near(one: Visit, view: View, step: Communicate) -> bool:
    """Return whether a view is a line of the own block, or one that is next to it.

    A loop goes through as many lines as the own part has.
    """
    sent = None if step.send is None else step.send.view
    if not view.region or not isinstance(view.region[0], Point) or not (sent and sent.shape):
        return False
    at = view.region[0].at
    return any(
        expand(at - sym(loop.variable)) in (num(-1), num(0), num(1))
        and loop.by_rank
        and expand(loop.high - loop.low) == expand(sent.shape[0])
        for loop in one.loops
        if loop.variable
    )


# --- a number -----------------------------------------------------------------------------------


def _reduced(
    program: Program, function: SpmdFunction, visit: Visit, step: Communicate
) -> Iterator[ProgramProposal]:
    """Yield a reduction for what is gathered to make one number of it.

    Where the root alone has it, nobody else gets to what makes a number of it.
    """
    context, numpy, sent = program.context, str(program.context.array_module), step.send
    name, given = step.result or "", argument(step, "sendobj", program) or ""
    texts = combining(step, name, numpy)
    uses = [o for o in occurrences(name, function, program) if not step.statement.contains(o)]
    if step.receive is not None and sent is not None:
        name, texts = step.receive.text, {}
        for one in _STATISTICS:
            texts |= dict.fromkeys((f"{numpy}.{one}({name})", f"{name}.{one}()"), one.upper())
        uses = uses_of(name, function, program, step.statement)
    if len(uses) != 1 or name in function.returned or not on_all_ranks(function.visits(), visit):
        return
    if step.span in combined(program):
        return  # what is made of it goes on to all
    calls = every(ast.Call, rewrite.tree_of(context.source))
    for call in calls:
        place, operation = rewrite.span_of(call, context.lines), texts.get(ast.unparse(call))
        if operation is None or not place.contains(uses[0]):
            continue
        if step.receive is not None and sent is not None:
            given = f"{numpy}.{operation.lower()}({sent.text})"
            if step.op is Op.GATHER and not _is_at_root(function, step, place):
                return
        yield _combined(program, function, visit, step, operation, given, place)


def _is_at_root(function: SpmdFunction, step: Communicate, place: Span) -> bool:
    """Return whether the root of a call alone gets to a place."""
    there = (
        one
        for one in function.visits()
        if one.step.span.start_line <= place.start_line <= one.step.span.end_line
    )
    root = step.root
    return root is not None and any(root_only(one, step.communicator, root) for one in there)


def _combined(
    program: Program,
    function: SpmdFunction,
    visit: Visit,
    step: Communicate,
    operation: str,
    given: str,
    place: Span,
) -> ProgramProposal:
    """Return the reduction of a number of each rank."""
    sent, context = step.send, program.context
    assert sent is not None
    op = Op.REDUCE if step.op is Op.GATHER else Op.ALLREDUCE
    number = Payload(PayloadKind.SCALAR, "number", step.span, dtype=sent.dtype, count=num(1))
    combine = replace(
        step, op=op, method=op.value, pickled=True, send=number, receive=None, operation=operation
    )
    edits: rewrite.Edits | str = "the call shares its statement"
    if is_simple(step, program) and program.mpi_module is not None:
        name = rewrite.fresh_name(f"{operation.lower()}_of_all", context.identifiers)
        operand = f"op={program.mpi_module}.{operation}"
        rooted = keywords(step, ("root",) if op is Op.REDUCE else (), program)
        call = f"{name} = {step.receiver}.{op.value}({', '.join([given, operand, *rooted])})"
        edits = rewrite.together(
            rewrite.in_place_of(step.statement, [call], context), lambda: (Edit(place, name),)
        )
    if operation == "SUM" and sent.dtype not in memory.INTEGERS:
        argued = "the sum of the ranks' sums agrees with the sum of all to rounding"
    else:
        argued = "the number of the ranks' numbers is that of all; where some are not numbers (NaN)"
        argued += " MPI does not say what it is"
    return offer(
        function,
        visit,
        step.span,
        f"reduce each rank's part, do not gather for `{context.text(place)}`",
        "what all ranks have goes to one place for a single number, which each rank can make of"
        " its own part",
        (step,),
        (combine,),
        argued,
        edits,
    )
