"""Chains in which each rank passes on what it received: a broadcast, or a running sum."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from advisor.ir.spmd.payloads import PayloadKind
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import (
    Branch,
    Call,
    Communicate,
    Leave,
    Loop,
    LoopKind,
    Op,
    Step,
    Unknown,
    Visit,
    Wait,
    walk,
)
from advisor.source import Edit
from costdb.expr import num
from costdb.records import replace
from transforms.kit.memory import plain_array
from transforms.kit.names import bound_names, loaded_names, used_outside
from transforms.kit.programs import offer
from transforms.kit.ranks import (
    move_of,
    named_rank,
    on_all_ranks,
    only_communication,
    other_ranks,
    ranks_where,
)
from transforms.kit.rewrite import (
    Edits,
    comments_within,
    in_place_of,
    line_of,
    span_of,
    starts_line,
    suite_at,
    together,
)
from transforms.messages.patterns import NOT_FIRST, NOT_LAST, are_ends

_WORDS = {
    Op.BCAST: ("send it to all", "every rank gets what the first one had"),
    Op.SCAN: ("add it up", "every rank gets the sum up to its own part, to rounding"),
    Op.EXSCAN: ("add it up", "every rank gets the sum of the parts before its own, to rounding"),
}


def chains(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield the collective that a chain from the first rank to the last stands for."""
    for visit in function.visits():
        receive = _end(visit.step, Op.RECV)
        send = None if receive is None else _passed_on(visit, receive)
        suite, at = suite_at(visit.step.span, program.context) or ([], 0)
        if receive is None or send is None or not suite or send.send is None:
            continue
        lines = program.context.lines
        end = next((n for n in suite[at + 1 :] if span_of(n, lines).contains(send.span)), None)
        nodes = [] if end is None else suite[at : suite.index(end) + 1]
        found = _means(program, receive, send, suite[:at][-1:], nodes)
        if found is None or not on_all_ranks(function.visits(), visit):
            continue
        op, text, gone = found
        sent, (does, argued) = send.send, _WORDS[op]
        if sent.kind is PayloadKind.UNKNOWN:
            # what is added to itself on the way is not known to be a number
            sent = replace(sent, kind=PayloadKind.SCALAR, dtype="float", count=num(1))
            argued = f"`{sent.text}` is taken for a number; {argued}"
        send, place = replace(send, send=sent), span_of(nodes[0], lines)
        method = op.value if send.pickled else op.value.capitalize()
        call = replace(send, op=op, method=method, operation="SUM", dest=None, root=num(0))
        waits = send.communicator.size - 1
        kept = used_outside(gone, place, function, program)
        yield offer(
            function,
            visit,
            send.span,
            f"do not pass `{sent.text}` on from rank to rank: {does} by `{method}`",
            "in a chain the last rank gets its message after all others; a tree of ranks takes its"
            " logarithm",
            (Loop(LoopKind.COUNTED, "", num(0), waits, 1, waits, (send,), send.span),),
            (replace(call, receive=None if send.pickled or op is Op.BCAST else receive.receive),),
            f"{argued}; a collective has to come in the same order on all ranks",
            _edits(program, nodes, text) if kept is None else f"`{kept}` is used elsewhere",
        )


def _edits(program: Program, nodes: list[ast.stmt], text: list[str]) -> Edits | str:
    context = program.context
    place, last = (span_of(one, context.lines) for one in (nodes[0], nodes[-1]))
    gone = line_of(last.start_line, last.end_line)
    alone = starts_line(place, context) and starts_line(last, context)
    if not alone or comments_within(gone, context.source) or "elif" in context.text(place)[:4]:
        return "the branches share their lines, or hold comments"
    return together(in_place_of(place, text, context), lambda: (Edit(gone, ""),))


def _passed_on(visit: Visit, receive: Communicate) -> Communicate | None:
    """Return the send to the next rank behind a receive, if all between stays on its rank."""
    for step in visit.block[visit.position + 1 :]:
        send = _end(step, Op.SEND)
        if send is not None:
            return send if are_ends(send, receive) else None
        inside = [one.step for one in walk((step,), into_calls=True)]
        if any(isinstance(one, Communicate | Call | Unknown | Leave | Wait) for one in inside):
            break
    return None


def _end(step: Step, op: Op) -> Communicate | None:
    """Return a branch's only message, from the rank before or to the next one, where there is."""
    one = only_communication((*step.then, *step.orelse)) if isinstance(step, Branch) else None
    if one is None or not isinstance(step, Branch) or one.op is not op or "status" in one.places:
        return None
    where = ranks_where(step.condition.value, one.communicator)
    if where is None or not one.blocking or one not in (*step.then, *step.orelse):
        return None
    where = where if one in step.then else other_ranks(where)
    partner, by = (one.dest, 1) if op is Op.SEND else (one.source, -1)
    move = move_of(named_rank(partner), one.communicator, where)
    there = move is not None and (move.sign, move.by) == (1, num(by))
    return one if there and where == (NOT_LAST if op is Op.SEND else NOT_FIRST) else None


def _means(
    program: Program,
    receive: Communicate,
    send: Communicate,
    before: list[ast.stmt],
    nodes: list[ast.stmt],
) -> tuple[Op, list[str], set[str]] | None:
    """Return the collective, its lines, and the names that have another value then."""
    context, mpi, own, payload = program.context, program.mpi_module, send.receiver, send.send
    match nodes:
        case [ast.If() as first, *between, ast.If(body=[_], orelse=[])] if payload and mpi:
            arms = [first.body, first.orelse]
        case _:
            return None
    here = [any(span_of(n, context.lines).contains(receive.span) for n in arm) for arm in arms]
    (arm, other), bound = arms if here[0] else arms[::-1], bound_names(between)
    sent = ast.parse(payload.text.strip(), mode="eval").body
    call = ast.unparse(ast.parse(context.text(receive.span).strip(), mode="eval"))
    given, got, name = plain_array(payload), receive.receive, ast.unparse(sent)
    if not send.pickled:
        taken = plain_array(got)
        if got is None or taken is None or given is None or other or name in bound:
            return None
        if (taken.dtype, taken.count) != (given.dtype, given.count) or not name.isidentifier():
            return None
        adds = f"{name} += {got.text}"
        if [ast.unparse(n) for n in arm] == [call] and name == got.text:
            return Op.BCAST, [f"{own}.Bcast({name}, root=0)"], set()
        if [ast.unparse(n) for n in arm] == [call, adds] and got.text.isidentifier():
            return Op.SCAN, [f"{own}.Scan({mpi}.IN_PLACE, {name}, op={mpi}.SUM)"], {got.text}
        return None
    texts = [ast.unparse(n) for n in arm]
    if texts == [f"{name} += {call}"] and name.isidentifier() and name not in bound and not other:
        return Op.SCAN, [f"{name} = {own}.scan({name}, op={mpi}.SUM)"], set()
    if payload.kind is not PayloadKind.SCALAR or not isinstance(sent, ast.BinOp):
        return None
    name = str(receive.result)
    sides = [ast.unparse(sent.left), ast.unparse(sent.right)]
    begins = [ast.unparse(n) for n in other or before]
    part = sides[sides[0] == name]
    alone = sides.count(name) == 1 and not loaded_names([ast.parse(part)]) & (bound | {name})
    if not isinstance(sent.op, ast.Add) or not alone or name in bound:
        return None
    if begins != [f"{name} = 0"] or texts != [f"{name} = {call}"]:
        return None
    lines = [f"{name} = {own}.exscan({part}, op={mpi}.SUM)", f"if {own}.Get_rank() == 0:"]
    return Op.EXSCAN, [*lines, f"{context.indent}{name} = 0"], set()
