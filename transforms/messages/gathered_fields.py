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
from advisor.ir.values import Point, Reduction
from advisor.source import Edit, Span
from costdb.expr import num, sym
from costdb.expr.polynomials import expand
from transforms.kit.memory import (
    INTEGERS,
    is_stretch,
    may_share,
    payload_of,
    plain_array,
    reads_of,
    same_memory,
)
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
from transforms.kit.rewrite import (
    Edits,
    fresh_name,
    in_place_of,
    span_of,
    together,
    tree_of,
)
from transforms.messages.combined_parts import combined, combining
from transforms.messages.iterations import REDUCTIONS

_BROUGHT = frozenset({Op.GATHER, Op.ALLGATHER, *REDUCTIONS})
_MADE = (Origin.NEW, Origin.COMPUTED)
_OPERATIONS = {"sum": "SUM", "max": "MAX", "amax": "MAX", "min": "MIN", "amin": "MIN"}


def gathered_fields(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield what a gathered field is for: a number, or some planes."""
    for visit, step in function.operations():
        if step.op not in _BROUGHT or not step.blocking:
            continue
        if step.op not in (Op.GATHER, Op.ALLGATHER):
            continue
        if step.op is Op.ALLGATHER:
            yield from _planes(program, function, visit, step)
        if step.pickled and step.send is not None and step.send.kind is PayloadKind.SCALAR:
            yield from _numbers(program, function, visit, step)
        if step.pickled or step.varying or not _is_field(step):
            continue
        assert step.receive is not None and step.receive.view is not None
        name, made = step.receive.text, step.receive.view.buffer.allocation.span
        if name in function.returned or not function.whole.contains(made):
            continue  # somebody else may use it
        uses = uses_of(name, function, program, step.statement)
        statistic = _statistic(program, function, step, *uses) if len(uses) == 1 else None
        if statistic is not None and step.send is not None and step.send.view is not None:
            number, called, place = statistic
            given = f"{program.context.array_module}.{called}({step.send.text})"
            own = replace(number, reads=(step.send.view,))
            of_all = _OPERATIONS[called], given, place, (number,), (own,)
            yield _combined(program, function, visit, step, *of_all)


def _is_field(step: Communicate) -> bool:
    sent, got = plain_array(step.send), plain_array(step.receive)
    if sent is None or got is None or sent.count is None or step.receive is None:
        return False
    return (
        sent.dtype == got.dtype
        and got.is_whole
        and got.count == sent.count * step.communicator.size
        and got.buffer.allocation.origin is Origin.NEW
        and is_name(step.receive.text)
        and is_stretch(sent)
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
    found = [(one, view) for one in visits for view in reads_of(one.step) if may_share(view, got)]
    parts, near = list[Payload](), False
    for one, view in found:
        if _is_near(one, view, step):
            near = True
            continue
        if one.loops != visit.loops or not view.region or not isinstance(view.region[0], Point):
            return
        if any(branch.condition.kind is ConditionKind.RANK for branch, _ in one.branches):
            return  # not all ranks use them
        parts.append(payload_of(view, step.span))
    allowed = (step.statement, *(one.span for one in joined))
    allowed += tuple(view.span for _, view in found if view.span is not None)
    if not found or uses_of(name, function, program, *allowed):
        return
    if near and got.region:
        line = replace(got, region=(Point(num(0)), *got.region[1:]))
        parts += [payload_of(line, step.span)] * 2
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


def _statistic(
    program: Program, function: SpmdFunction, step: Communicate, place: Span
) -> tuple[Compute, str, Span] | None:
    """Return the number that a field is gathered for, NumPy's name of it, and its expression.

    None where the ranks do not get to it that got the field.
    """
    assert step.receive is not None and step.receive.view is not None
    numpy, name, lines = program.context.array_module, step.receive.text, program.context.lines
    texts = {f"{numpy}.{one}({name})": one for one in _OPERATIONS}
    texts |= {f"{name}.{one}()": one for one in ("sum", "max", "min")}
    calls = (one for one in ast.walk(tree_of(program.context.source)) if isinstance(one, ast.Call))
    found = ((span_of(one, lines), texts.get(ast.unparse(one))) for one in calls)
    expression, called = next(
        ((span, one) for span, one in found if one and span.contains(place)), (place, None)
    )
    if called is None:
        return None
    for visit in function.visits():
        made = visit.step
        reduced = isinstance(made, Compute) and isinstance(made.value, Reduction)
        if not isinstance(made, Compute) or not reduced or made.is_product or made.target:
            continue
        if not made.span.start_line <= place.start_line <= made.span.end_line:
            continue
        if any(same_memory(one, step.receive.view) for one in made.reads):
            at_root = step.root is not None and root_only(visit, step.communicator, step.root)
            there = step.op is Op.ALLGATHER or at_root
            return (made, called, expression) if there else None
    return None


def _numbers(
    program: Program, function: SpmdFunction, visit: Visit, step: Communicate
) -> Iterator[ProgramProposal]:
    """Yield a reduction for a list of all ranks' numbers of which one number is made.

    Where the root alone has the list, nobody else gets to what makes a number of it.
    """
    name, context = step.result or "", program.context
    places = occurrences(name, function, program)
    uses = [one for one in places if not step.statement.contains(one)]
    if len(uses) != 1 or name in function.returned or not on_all_ranks(function.visits(), visit):
        return
    if step.span in combined(program):
        return  # what is made of it goes on to all
    texts = combining(step, name, str(context.array_module))
    calls = (one for one in ast.walk(tree_of(context.source)) if isinstance(one, ast.Call))
    for call in calls:
        place, operation = span_of(call, context.lines), texts.get(ast.unparse(call))
        if operation is not None and place.contains(uses[0]):
            given = argument(step, "sendobj", program) or ""
            yield _combined(program, function, visit, step, operation, given, place)


def _combined(
    program: Program,
    function: SpmdFunction,
    visit: Visit,
    step: Communicate,
    operation: str,
    given: str,
    place: Span,
    made: tuple[Compute, ...] = (),
    own: tuple[Compute, ...] = (),
) -> ProgramProposal:
    """Return the reduction of a number of each rank, which work of its own may make."""
    sent, context = step.send, program.context
    assert sent is not None
    op = Op.REDUCE if step.op is Op.GATHER else Op.ALLREDUCE
    number = Payload(PayloadKind.SCALAR, "number", step.span, dtype=sent.dtype, count=num(1))
    combine = replace(
        step, op=op, method=op.value, pickled=True, send=number, receive=None, operation=operation
    )
    edits: Edits | str = "the call shares its statement"
    if is_simple(step, program) and program.mpi_module is not None:
        name = fresh_name(f"{operation.lower()}_of_all", context.identifiers)
        operand = f"op={program.mpi_module}.{operation}"
        rooted = keywords(step, ("root",) if op is Op.REDUCE else (), program)
        call = f"{name} = {step.receiver}.{op.value}({', '.join([given, operand, *rooted])})"
        edits = together(in_place_of(step.statement, [call], context), lambda: (Edit(place, name),))
    if operation == "SUM" and sent.dtype not in INTEGERS:
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
        (step, *made),
        (*own, combine),
        argued,
        edits,
    )
