"""Loops in which every rank exchanges a piece with every rank: an all-to-all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from advisor.finding import Applicability
from advisor.ir.proposal import Legality
from advisor.ir.spmd.memory import At, Contiguity, Index, Part, View, Whole, contiguity
from advisor.ir.spmd.payloads import Payload, PayloadKind
from advisor.ir.spmd.program import Program, SpmdFunction
from advisor.ir.spmd.proposal import ProgramProposal
from advisor.ir.spmd.ranks import PartnerKind
from advisor.ir.spmd.steps import Communicate, Loop, LoopKind, Op, Visit
from advisor.source import Edit, Span
from costdb.expr import Expr, free_symbols, num, sym
from transforms.programs.spmd_calls import comments_within, is_simple
from transforms.programs.views import may_share

_BASE = re.compile(r"([\w.]+)\s*\[.*\]", re.DOTALL)


def exchange_loops(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield one `Alltoall` for every loop of exchanges with all ranks."""
    for visit, step in function.operations():
        if not visit.loops:
            continue
        loop = visit.loops[-1]
        if loop.body == (step,) and _is_with_all(loop, step):
            found = _proposal(program, function, visit, loop, step)
            if found is not None:
                yield found


def _is_with_all(loop: Loop, step: Communicate) -> bool:
    """Return whether a rank exchanges with each rank, itself included, in the order of ranks."""
    if step.op is not Op.SENDRECV or step.replaces or step.pickled or "status" in step.places:
        return False
    if loop.kind is not LoopKind.COUNTED or loop.step != 1 or loop.stride is not None:
        return False
    if (loop.low, loop.high) != (num(0), step.communicator.size):
        return False
    ends = (step.dest, step.source)
    return all(
        end is not None
        and end.kind is PartnerKind.RANK
        and not end.may_be_nobody
        and end.rank == sym(loop.variable)
        for end in ends
    )


def _proposal(
    program: Program, function: SpmdFunction, visit: Visit, loop: Loop, step: Communicate
) -> ProgramProposal | None:
    sent, received = _whole(step.send, loop, step), _whole(step.receive, loop, step)
    if sent is None or received is None or sent.count != received.count:
        return None
    if sent.dtype != received.dtype or sent.view is None or received.view is None:
        return None
    if may_share(sent.view, received.view):
        return None
    context = program.context
    writable = (
        is_simple(step, program)
        and all(_is_all(payload) for payload in (sent, received))
        and not context.lines[loop.span.start_line - 1][: loop.span.start_column].strip()
    )
    call = replace(
        step, op=Op.ALLTOALL, method="Alltoall", send=sent, receive=received, dest=None, source=None
    )
    text = f"{step.receiver}.Alltoall({sent.text}, {received.text})"
    return ProgramProposal(
        title="let one `Alltoall` exchange with all ranks, not a loop over them",
        reason="in a loop each exchange waits for its partner to come to it; a collective has all"
        " messages under way, and costs one call from Python",
        span=step.span,
        function=function,
        before=(loop,),
        after=(call,),
        legality=Legality(
            Applicability.UNSAFE if writable else Applicability.DISPLAY,
            "the same pieces come to the same places; a collective has to come in the same order"
            " on all ranks",
        ),
        loops=visit.loops[:-1],
        edits=partial(_edits, program, loop, step, text) if writable else tuple,
    )


def _whole(payload: Payload | None, loop: Loop, step: Communicate) -> Payload | None:
    """Return what the pieces of all ranks are together, from the first on, in their order."""
    if payload is None or payload.kind is not PayloadKind.ARRAY or payload.view is None:
        return None
    view = payload.view
    if payload.described or payload.datatype is not None or view.transposed or view.flat:
        return None
    if payload.dtype is None or not view.region:
        return None
    first, *others = view.region
    if any(not isinstance(index, Whole) for index in others):
        return None
    together = _together(first, sym(loop.variable), step.communicator.size)
    base = _BASE.fullmatch(payload.text)
    if together is None:
        return None
    whole: View = replace(view, region=(together, *others))
    if contiguity(whole) is not Contiguity.YES:
        return None
    name = payload.text if base is None else base[1]
    return replace(payload, view=whole, count=whole.count, text=name)


def _together(index: Index, place: Expr, size: Expr) -> Index | None:
    match index:
        case At(index=at) if at == place:
            return Part(num(0), size)
        case Part(low=low, high=high, step=1):
            length = high - low
            if free_symbols(place) & free_symbols(length) or low != length * place:
                return None
            return Part(num(0), size * length)
    return None


def _is_all(payload: Payload) -> bool:
    """Return whether pieces are all of their array, which is named."""
    view = payload.view
    if view is None or view.region is None or view.buffer.extents is None:
        return False
    return view.region[0].count == view.buffer.extents[0] and "[" not in payload.text


def _edits(program: Program, loop: Loop, step: Communicate, text: str) -> tuple[Edit, ...]:
    context, start, end = program.context, loop.span, step.statement
    indent = context.lines[start.start_line - 1][: start.start_column]
    place = Span(start.start_line, start.start_column, end.end_line, end.end_column)
    kept = comments_within(place, program)
    return (Edit(place, f"\n{indent}".join([*kept, text])),)
