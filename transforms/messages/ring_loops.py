"""Loops in which ranks pass pieces on to a neighbour until all have all: gathers round a ring."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from advisor.finding import Applicability
from advisor.ir.proposal import Legality
from advisor.ir.spmd.memory import At, Order, Part, View, Whole
from advisor.ir.spmd.payloads import Payload, PayloadKind
from advisor.ir.spmd.program import Program, SpmdFunction
from advisor.ir.spmd.proposal import ProgramProposal
from advisor.ir.spmd.ranks import Communicator, Partner, PartnerKind
from advisor.ir.spmd.steps import Communicate, Compute, Loop, LoopKind, Op, Visit
from advisor.source import Edit, Span
from costdb.expr import Expr, ExprError, evaluate, free_symbols, num
from transforms.programs.rank_facts import TRIED_SIZES
from transforms.programs.spmd_calls import comments_within
from transforms.programs.views import same_memory

_BASE = re.compile(r"(\w+)\s*\[.*\]", re.DOTALL)


def ring_loops(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield one `Allgather` for every loop that gathers the rows of an array round a ring."""
    for visit, step in function.operations():
        if not visit.loops or step.op is not Op.SENDRECV or step.pickled or not step.blocking:
            continue
        if step.replaces:
            continue
        loop = visit.loops[-1]
        others = [one for one in loop.body if one != step]
        if step not in loop.body or not all(_is_of_numbers(one) for one in others):
            continue
        if _is_counted(loop, step.communicator) and _gathers(loop, step):
            yield _proposal(program, function, visit, loop, step)


def _is_of_numbers(step: object) -> bool:
    return isinstance(step, Compute) and step.target is None and not step.reads


def _is_counted(loop: Loop, communicator: Communicator) -> bool:
    passes = loop.high - loop.low == communicator.size - 1
    return loop.kind is LoopKind.COUNTED and loop.step == 1 and loop.stride is None and passes


def _gathers(loop: Loop, step: Communicate) -> bool:
    """Return whether each rank ends with every row as the rank of that number had it at first.

    Tried for small numbers of ranks, by passing on where a row comes from.
    """
    sent, taken = _row(step.send, step), _row(step.receive, step)
    dest, source = _rank(step.dest), _rank(step.source)
    assert step.send is not None and step.receive is not None
    if sent is None or taken is None or dest is None or source is None:
        return False
    if step.send.view is None or step.receive.view is None or "status" in step.places:
        return False
    if not same_memory(step.send.view, step.receive.view):
        return False
    try:
        return all(
            _ends_whole(loop, step, ranks, (sent, taken, dest, source)) for ranks in TRIED_SIZES
        )
    except (ExprError, ArithmeticError, ValueError):
        return False


def _row(payload: Payload | None, step: Communicate) -> Expr | None:
    """Return which row of an array with a row for every rank a payload is."""
    if payload is None or payload.kind is not PayloadKind.ARRAY or payload.view is None:
        return None
    view = payload.view
    if payload.described or payload.datatype is not None or view.transposed or view.flat:
        return None
    if view.buffer.order is not Order.C or not view.region or view.buffer.extents is None:
        return None
    first, *others = view.region
    if not isinstance(first, At) or not all(isinstance(index, Whole) for index in others):
        return None
    return first.index if view.buffer.extents[0] == step.communicator.size else None


def _rank(partner: Partner | None) -> Expr | None:
    if partner is None or partner.kind is not PartnerKind.RANK or partner.may_be_nobody:
        return None
    return partner.rank


def _ends_whole(
    loop: Loop, step: Communicate, ranks: int, places: tuple[Expr, Expr, Expr, Expr]
) -> bool:
    communicator = step.communicator
    (own,), (count,) = free_symbols(communicator.rank), free_symbols(communicator.size)
    if any(free_symbols(place) - {own, count, loop.variable} for place in places):
        return False

    def at(rank: int, index: int) -> list[int]:
        known: Mapping[str, int] = {own: rank, count: ranks, loop.variable: index}
        return [int(evaluate(place, known)) for place in places]

    rows = [[(rank, row) for row in range(ranks)] for rank in range(ranks)]
    low = int(evaluate(loop.low, {count: ranks}))
    for index in range(low, low + ranks - 1):
        now = [at(rank, index) for rank in range(ranks)]
        before = [list(row) for row in rows]
        for rank, (sent, taken, dest, source) in enumerate(now):
            if not all(0 <= place < ranks for place in (sent, taken, dest, source)):
                return False
            if now[source][2] != rank or (sent == taken and ranks > 1):
                return False
            rows[rank][taken] = before[source][now[source][0]]
    return all(row == [(place, place) for place in range(ranks)] for row in rows)


def _proposal(
    program: Program, function: SpmdFunction, visit: Visit, loop: Loop, step: Communicate
) -> ProgramProposal:
    given = step.receive
    assert given is not None and given.view is not None and given.view.region is not None
    region = (Part(num(0), step.communicator.size), *given.view.region[1:])
    whole: View = replace(given.view, region=region)
    base = _BASE.fullmatch(given.text.strip())
    name = base[1] if base is not None else given.text
    call = replace(
        step,
        op=Op.ALLGATHER,
        method="Allgather",
        send=None,
        receive=replace(given, view=whole, count=whole.count, text=name),
        in_place=True,
        dest=None,
        source=None,
    )
    place = _whole_loop(loop, step, program) if base is not None else None
    text = f"{step.receiver}.Allgather({program.mpi_module}.IN_PLACE, {name})"
    return ProgramProposal(
        title=f"let one `Allgather` collect the rows of `{name}`, not a loop round a ring",
        reason="the library knows algorithms of fewer steps for small pieces, has several messages"
        " under way for large ones, and costs one call from Python",
        span=step.span,
        function=function,
        before=(loop,),
        after=(call,),
        legality=Legality(
            Applicability.DISPLAY if place is None else Applicability.UNSAFE,
            "every rank ends with each row as the rank of that number had it; a collective has to"
            " come in the same order on all ranks",
        ),
        loops=visit.loops[:-1],
        edits=tuple if place is None else partial(_edits, place, text),
    )


def _edits(place: Span, text: str) -> tuple[Edit, ...]:
    return (Edit(place, text),)


def _whole_loop(loop: Loop, step: Communicate, program: Program) -> Span | None:
    """Return the stretch of source to replace; None where something else needs what is in it."""
    context = program.context
    if program.mpi_module is None:
        return None
    try:
        tree = ast.parse(context.source)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and node.lineno == loop.span.start_line:
            break
    else:
        return None
    *before, last = node.body
    named = [part for part in before if isinstance(part, ast.Assign)]
    if len(named) < len(before) or node.orelse or last.lineno != step.statement.start_line:
        return None
    targets = [node.target, *(target for part in named for target in part.targets)]
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    inside = range(node.lineno, step.statement.end_line + 1)
    used_elsewhere = any(
        isinstance(one, ast.Name) and one.id in names and one.lineno not in inside
        for one in ast.walk(tree)
    )
    line = context.lines[node.lineno - 1]
    if len(names) < len(targets) or used_elsewhere or not line.isascii():
        return None
    place = Span(node.lineno, node.col_offset, step.statement.end_line, step.statement.end_column)
    rest = context.lines[place.end_line - 1][place.end_column :].strip()
    if comments_within(place, program) or (rest and not rest.startswith("#")):
        return None
    return place if not line[: node.col_offset].strip() else None
