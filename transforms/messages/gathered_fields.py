"""Fields that are gathered from all ranks for less than the whole of them on every rank."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from advisor.finding import Applicability
from advisor.ir.proposal import Legality
from advisor.ir.spmd.memory import Origin
from advisor.ir.spmd.payloads import Payload, PayloadKind
from advisor.ir.spmd.program import Program, SpmdFunction
from advisor.ir.spmd.proposal import ProgramProposal
from advisor.ir.spmd.steps import Communicate, Compute, Op, Visit
from advisor.source import Edit, Span
from costdb.expr import Expr, num
from costdb.expr.nodes import Num
from transforms.programs.spmd_calls import (
    INTEGERS,
    argument,
    is_contiguous,
    is_name,
    is_simple,
    statement_edit,
)
from transforms.programs.uses import is_binding, occurrences, root_lines, root_only, within
from transforms.programs.views import same_memory
from transforms.source.writing import fresh_name

_OPERATIONS = {"sum": "SUM", "max": "MAX", "amax": "MAX", "min": "MIN", "amin": "MIN"}


@dataclass(frozen=True, slots=True)
class _Statistic:
    """A number that is made of a whole field.

    Attributes
    ----------
    step : Compute
    function : str
        NumPy's name: ``"max"``.
    place : Span
        Of the expression.
    """

    step: Compute
    function: str
    place: Span


def gathered_fields(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield what a gathered field is for: a number, or the root alone."""
    for visit, step in function.operations():
        if step.op not in (Op.GATHER, Op.ALLGATHER) or step.pickled or step.varying:
            continue
        if function.weight(visit) == 0 or not step.blocking or not _is_field(step):
            continue
        uses = _uses(program, function, step)
        if uses is None:
            continue
        statistic = _statistic(program, function, step, uses)
        if statistic is not None:
            yield _reduced(program, function, visit, step, statistic)
        elif step.op is Op.ALLGATHER:
            yield from _for_the_root(program, function, visit, step, uses)


def _is_field(step: Communicate) -> bool:
    sent, got = step.send, step.receive
    return (
        sent is not None
        and got is not None
        and sent.view is not None
        and got.view is not None
        and not (sent.described or got.described)
        and sent.dtype is not None
        and sent.dtype == got.dtype
        and sent.count is not None
        and got.view.is_whole
        and got.count == sent.count * step.communicator.size
        and got.view.buffer.allocation.origin is Origin.NEW
        and is_name(got.text)
        and is_contiguous(sent.view)
    )


def _uses(program: Program, function: SpmdFunction, step: Communicate) -> list[Span] | None:
    """Return where the field is used, besides where it is made and gathered."""
    assert step.receive is not None
    name, view = step.receive.text, step.receive.view
    if name in function.returned or view is None:
        return None
    if not function.whole.contains(view.buffer.allocation.span):
        return None  # others have it, too
    found = [
        place
        for place in occurrences(name, function, program)
        if not step.statement.contains(place) and not is_binding(place, program)
    ]
    return found or None


def _statistic(
    program: Program, function: SpmdFunction, step: Communicate, uses: list[Span]
) -> _Statistic | None:
    """Return the one number that a field is gathered for."""
    if len(uses) != 1 or step.receive is None or step.receive.view is None:
        return None
    (place,) = uses
    line = program.context.lines[place.start_line - 1]
    name, numpy = re.escape(step.receive.text), re.escape(program.context.array_module or "-")
    functions = "|".join(_OPERATIONS)
    pattern = rf"\b{numpy}\.({functions})\(\s*{name}\s*\)|(?<![\w.]){name}\.(sum|max|min)\(\)"
    for match in re.finditer(pattern, line):
        if match.start() <= place.start_column < match.end():
            made = _computed(function, step, place)
            if made is None:
                return None
            span = Span(place.start_line, match.start(), place.start_line, match.end())
            return _Statistic(made, match[1] or match[2], span)
    return None


def _computed(function: SpmdFunction, step: Communicate, place: Span) -> Compute | None:
    """Return the step of a reduction to a number, if the ranks get to it that got the field."""
    assert step.receive is not None and step.receive.view is not None
    for visit in function.visits():
        made = visit.step
        if not isinstance(made, Compute) or made.what != "reduction" or made.target is not None:
            continue
        if not any(same_memory(one, step.receive.view) for one in made.reads):
            continue
        if not made.span.start_line <= place.start_line <= made.span.end_line:
            continue
        if step.op is Op.ALLGATHER:
            return made
        assert step.root is not None
        return made if root_only(visit, step.communicator, step.root) else None
    return None


def _reduced(
    program: Program,
    function: SpmdFunction,
    visit: Visit,
    step: Communicate,
    statistic: _Statistic,
) -> ProgramProposal:
    sent = step.send
    assert sent is not None and sent.view is not None
    operation = _OPERATIONS[statistic.function]
    op = Op.REDUCE if step.op is Op.GATHER else Op.ALLREDUCE
    own = replace(statistic.step, reads=(sent.view,), operations=sent.count, length=sent.count)
    number = Payload(PayloadKind.SCALAR, "number", step.span, dtype=sent.dtype, count=num(1))
    combine = replace(
        step,
        op=op,
        method=op.value,
        pickled=True,
        send=number,
        receive=None,
        operation=operation,
    )
    writable = is_simple(step, program) and program.mpi_module is not None
    if operation == "SUM" and sent.dtype not in INTEGERS:
        words = "the sum of the ranks' sums agrees with the sum of all to rounding"
    else:
        words = "the number of the ranks' numbers is that of all; where some are not numbers (NaN)"
        words += " MPI does not say what it is"
    text = program.context.text(statistic.place)
    return ProgramProposal(
        title=f"reduce each rank's part, do not gather the field for `{text}`",
        reason="the whole field goes to one place for a single number, which each rank can make of"
        " its own part",
        span=step.span,
        function=function,
        before=(step, statistic.step),
        after=(own, combine),
        legality=Legality(Applicability.UNSAFE if writable else Applicability.DISPLAY, words),
        loops=visit.loops,
        edits=partial(_edits, program, step, statistic, op) if writable else tuple,
    )


def _edits(program: Program, step: Communicate, statistic: _Statistic, op: Op) -> tuple[Edit, ...]:
    assert step.send is not None
    name = fresh_name(f"{statistic.function}_of_all", program.context.identifiers)
    operation = f"op={program.mpi_module}.{_OPERATIONS[statistic.function]}"
    own = f"{program.context.array_module}.{statistic.function}({step.send.text})"
    given = [own, operation]
    root = argument(step, "root", program)
    if op is Op.REDUCE and root is not None:
        given.append(f"root={root}")
    call = f"{name} = {step.receiver}.{op.value}({', '.join(given)})"
    return statement_edit(step, [call], program), Edit(statistic.place, name)


def _for_the_root(
    program: Program,
    function: SpmdFunction,
    visit: Visit,
    step: Communicate,
    uses: list[Span],
) -> Iterator[ProgramProposal]:
    """Yield a gather to one rank, where no other one uses the field."""
    for root in _roots(function):
        if not all(within(p, root_lines(function, step.communicator, root, program)) for p in uses):
            continue
        value = int(root.value) if isinstance(root, Num) else 0
        gather = replace(step, op=Op.GATHER, method="Gather", root=root)
        writable = is_simple(step, program)
        assert step.send is not None and step.receive is not None
        call = f"{step.receiver}.Gather({step.send.text}, {step.receive.text}, root={value})"
        yield ProgramProposal(
            title=f"gather the field to rank {value}, which alone uses it",
            reason="an all-gather brings the whole field to every rank",
            span=step.span,
            function=function,
            before=(step,),
            after=(gather,),
            legality=Legality(
                Applicability.SAFE if writable else Applicability.DISPLAY,
                "on other ranks nothing uses the array, which the function made itself",
            ),
            loops=visit.loops,
            edits=partial(_only_call, program, step, call) if writable else tuple,
        )
        return


def _only_call(program: Program, step: Communicate, call: str) -> tuple[Edit, ...]:
    return (statement_edit(step, [call], program),)


def _roots(function: SpmdFunction) -> list[Expr]:
    """Return the ranks that branches single out."""
    found: dict[Expr, None] = {}
    for visit in function.visits():
        for branch, _ in visit.branches:
            root = branch.condition.single_rank
            if isinstance(root, Num):
                found.setdefault(root)
    return list(found)
