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
    Interpret,
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
from costdb.records import dataclass, replace
from transforms.kit.memory import plain_array
from transforms.kit.names import bound_names, loaded_names, used_outside
from transforms.kit.programs import offer
from transforms.kit.ranks import (
    ALL,
    END,
    FIRST,
    Bound,
    Interval,
    Ranks,
    move_of,
    named_rank,
    on_all_ranks,
    only_communication,
    other_ranks,
    ranks_where,
    root_arms,
    same_communicator,
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

_NOT_FIRST: Ranks = (Interval(Bound(0, 1), END),)
_NOT_LAST: Ranks = (Interval(FIRST, Bound(1, -1)),)
_NUMBERS = (PayloadKind.SCALAR, PayloadKind.UNKNOWN)
_WORDS = {
    Op.BCAST: ("send it to all by", "every rank gets what the first one had"),
    Op.SCAN: ("add it up by", "every rank gets the sum up to its own part"),
    Op.EXSCAN: ("add it up by", "every rank gets the sum of the parts before its own"),
}


@dataclass(frozen=True, slots=True)
class _Link:
    """What a rank does between the one before it and the one behind it.

    Attributes
    ----------
    receive, send : Communicate
    nodes : list of ast.stmt
        From the branch that receives to the one that sends.
    before : ast.stmt or None
        The statement ahead of them.
    """

    receive: Communicate
    send: Communicate
    nodes: list[ast.stmt]
    before: ast.stmt | None


def chains(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield the collective that a chain from the first rank to the last stands for."""
    for visit in function.visits():
        yield from _from_a_root(program, function, visit)
        link = _link(program, visit)
        found = None if link is None else _means(program, link)
        if link is None or found is None or not on_all_ranks(function.visits(), visit):
            continue
        op, lines, gone = found
        send, first, last = link.send, link.nodes[0], link.nodes[-1]
        kept = used_outside(gone, span_of(first, program.context.lines), function, program)
        edits: Edits | str = f"`{kept}` is used elsewhere"
        if kept is None:
            edits = _edits(program, first, last, lines)
        yield _instead(function, visit, send, link.receive, op, edits)


def _instead(
    function: SpmdFunction,
    visit: Visit,
    send: Communicate,
    receive: Communicate,
    op: Op,
    edits: Edits | str,
) -> ProgramProposal:
    call = replace(
        send,
        op=op,
        method=op.value if send.pickled else op.value.capitalize(),
        dest=None,
        tag=None,
        root=num(0) if op is Op.BCAST else None,
        operation=None if op is Op.BCAST else "SUM",
        receive=None if send.pickled or op is Op.BCAST else receive.receive,
    )
    waits = send.communicator.size - 1
    chain = Loop(LoopKind.COUNTED, "", num(0), waits, 1, waits, (send,), send.span)
    does, argued = _WORDS[op]
    if send.send is not None and send.send.kind is PayloadKind.UNKNOWN:
        number = replace(send.send, kind=PayloadKind.SCALAR, dtype="float", count=num(1))
        chain, call = replace(chain, body=(replace(send, send=number),)), replace(call, send=number)
        argued = f"`{number.text}` is taken for a number; {argued}"
    sent = "" if send.send is None else send.send.text
    rounded = "" if op is Op.BCAST else "; floating-point sums agree to rounding"
    return offer(
        function,
        visit,
        send.span,
        f"do not pass `{sent}` on from rank to rank: {does} `{call.method}`",
        "in a chain the last rank gets its message after all others; a tree of ranks takes its"
        " logarithm",
        (chain,),
        (call,),
        f"{argued}{rounded}; a collective has to come in the same order on all ranks",
        edits,
    )


def _from_a_root(
    program: Program, function: SpmdFunction, visit: Visit
) -> Iterator[ProgramProposal]:
    """Yield a broadcast for a root that sends to the next rank, and ranks that send on."""
    branch, context = visit.step, program.context
    calls = [v.step for v in walk((branch,), into_calls=True) if isinstance(v.step, Communicate)]
    if not isinstance(branch, Branch) or len(calls) != 3:
        return
    arms = root_arms(branch, calls[0].communicator, num(0))
    ours = None if arms is None else only_communication(arms[0])
    if arms is None or ours is None or ours not in arms[0] or named_rank(ours.dest) != num(1):
        return
    theirs = [one for one in arms[1] if not isinstance(one, Interpret)]
    match theirs:
        case [Communicate(op=Op.RECV) as receive, Branch() as more, *rest]:
            send = _end(more, Op.SEND, _NOT_LAST, 1)
        case _:
            return
    if send is None or any(isinstance(one.step, Unknown | Leave) for one in walk(tuple(rest))):
        return
    move = move_of(named_rank(receive.source), receive.communicator, _NOT_FIRST)
    if move is None or (move.sign, move.by) != (1, num(-1)) or ours.op is not Op.SEND:
        return
    payloads = [ours.send, receive.receive, send.send]
    known = [one for one in payloads if one is not None and plain_array(one) is not None]
    texts = {one.text for one in known}
    sizes = {(one.dtype, one.count) for one in known}
    tags = {str(one.tag) for one in calls if one.tag is not None}
    if len(known) < 3 or not len(texts) == len(sizes) == len(tags) == 1:
        return
    plain = all(c.blocking and not c.pickled and "status" not in c.places for c in calls)
    same = all(same_communicator(c.communicator, ours.communicator) for c in calls)
    if not (plain and same) or not on_all_ranks(function.visits(), visit):
        return
    suite, at = suite_at(more.span, context) or ([], 0)
    node = suite[at] if suite else None
    line = f"{ours.receiver}.Bcast({texts.pop()}, root=0)"
    edits: Edits | str = "the branches do more"
    if isinstance(node, ast.If) and not node.orelse and len(node.body) == 1:
        place = span_of(node, context.lines)
        gone = line_of(place.start_line, place.end_line)
        if starts_line(place, context) and not comments_within(gone, context.source):
            both = [in_place_of(one.statement, [line], context) for one in (ours, receive)]
            edits = together(*both, lambda: (Edit(gone, ""),))
    yield _instead(function, visit, send, receive, Op.BCAST, edits)


def _edits(program: Program, first: ast.stmt, last: ast.stmt, lines: list[str]) -> Edits | str:
    context = program.context
    place, sends = (span_of(one, context.lines) for one in (first, last))
    gone = line_of(sends.start_line, sends.end_line)
    if not (starts_line(place, context) and starts_line(sends, context)):
        return "the branches share their lines"
    if comments_within(gone, context.source) or context.text(place).startswith("elif"):
        return "comments, or other branches, stand within"
    return together(in_place_of(place, lines, context), lambda: (Edit(gone, ""),))


# --- a link of a chain ----------------------------------------------------------------------------


def _link(program: Program, visit: Visit) -> _Link | None:
    receive = _end(visit.step, Op.RECV, _NOT_FIRST, -1)
    if receive is None or not isinstance(visit.step, Branch):
        return None
    for step in visit.block[visit.position + 1 :]:
        send = _end(step, Op.SEND, _NOT_LAST, 1)
        if send is not None:
            break
        inside = [one.step for one in walk((step,), into_calls=True)]
        if any(isinstance(one, Communicate | Call | Unknown | Leave | Wait) for one in inside):
            return None
    else:
        return None
    alike = same_communicator(send.communicator, receive.communicator)
    tagged = "tag" not in receive.places or (send.tag is not None and send.tag == receive.tag)
    if not (alike and tagged) or send.pickled != receive.pickled:
        return None
    context, nodes = program.context, suite_at(visit.step.span, program.context)
    if nodes is None or send.send is None:
        return None
    suite, at = nodes
    ends = [
        n for n in range(at, len(suite)) if span_of(suite[n], context.lines).contains(send.span)
    ]
    before = suite[at - 1] if at else None
    return _Link(receive, send, suite[at : ends[0] + 1], before) if ends else None


def _end(step: Step, op: Op, where: Ranks, by: int) -> Communicate | None:
    """Return the only message of a branch, if some ranks send it so far, or get it from there."""
    if not isinstance(step, Branch):
        return None
    one = only_communication((*step.then, *step.orelse))
    if one is None or one.op is not op or not one.blocking or "status" in one.places:
        return None
    holds = ranks_where(step.condition.value, one.communicator)
    if holds is None or one not in (*step.then, *step.orelse):
        return None
    if (holds if one in step.then else other_ranks(holds)) != where:
        return None
    move = move_of(named_rank(one.dest if op is Op.SEND else one.source), one.communicator, where)
    away = None if move is None or move.sign != 1 else move.by
    return one if away == num(by) and where != ALL else None


# --- what it comes to -----------------------------------------------------------------------------

_Found = tuple[Op, list[str], set[str]]
"""The collective, lines in the place of the receive, and names that have another value then."""


def _means(program: Program, link: _Link) -> _Found | None:
    receive, send, context = link.receive, link.send, program.context
    first, *between, last = link.nodes if len(link.nodes) > 1 else [link.nodes[0], *link.nodes]
    if not isinstance(first, ast.If) or not isinstance(last, ast.If) or first is last:
        return None
    if last.orelse or len(last.body) != 1 or send.send is None:
        return None
    arms = (first.body, first.orelse)
    held = [any(span_of(n, context.lines).contains(receive.span) for n in arm) for arm in arms]
    arm, other = arms if held[0] else arms[::-1]
    sent, bound = ast.unparse(ast.parse(send.send.text.strip(), mode="eval")), bound_names(between)
    if send.pickled:
        return _of_objects(program, link, arm, other, sent, bound)
    got, given = receive.receive, plain_array(send.send)
    if got is None or plain_array(got) is None or given is None or other:
        return None
    if (got.dtype, got.count) != (given.dtype, given.count) or not got.text.isidentifier():
        return None
    name, mpi, own = got.text, program.mpi_module, send.receiver
    match arm:
        case [ast.Expr()] if sent == name and name not in bound:
            return Op.BCAST, [f"{own}.Bcast({name}, root=0)"], set()
        case [ast.Expr(), ast.AugAssign(target=ast.Name(id=total), op=ast.Add(), value=added)]:
            alone = sent == total and total not in bound and ast.unparse(added) == name
            line = f"{own}.Scan({mpi}.IN_PLACE, {total}, op={mpi}.SUM)"
            return (Op.SCAN, [line], {name}) if alone and name != total and mpi else None
    return None


def _of_objects(
    program: Program,
    link: _Link,
    arm: list[ast.stmt],
    other: list[ast.stmt],
    sent: str,
    bound: frozenset[str],
) -> _Found | None:
    """Return what a chain of pickled numbers comes to."""
    receive, own, mpi = link.receive, link.send.receiver, program.mpi_module
    call = ast.unparse(ast.parse(program.context.text(receive.span).strip(), mode="eval"))
    is_first, kind = f"{own}.Get_rank() == 0", link.send.send and link.send.send.kind
    if mpi is None or len(arm) != 1:
        return None
    match arm[0]:
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
            adds = ast.unparse(value) == call
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            adds = ast.unparse(value) in (f"{name} + {call}", f"{call} + {name}")
            if not adds and ast.unparse(value) != call:
                return None
        case _:
            return None
    if adds:
        # what is added to itself on the way is not known to be a number
        alone = sent == name and name not in bound and not other and kind in _NUMBERS
        line = f"{name} = {own}.scan({name}, op={mpi}.SUM)"
        return (Op.SCAN, [line], set()) if alone else None
    begins = other if other else [link.before]
    match begins:
        case [ast.Assign(targets=[ast.Name(id=begun)], value=start)] if begun == name:
            pass
        case _:
            return None
    if kind is not PayloadKind.SCALAR:
        return None
    if sent == name and name not in bound and other:
        text = ast.unparse(start)
        line = f"{name} = {own}.bcast({text} if {is_first} else None, root=0)"
        return Op.BCAST, [line], set()
    match ast.parse(sent, mode="eval").body:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            sides = [ast.unparse(left), ast.unparse(right)]
        case _:
            return None
    if sides.count(name) != 1 or ast.unparse(start) != "0":
        return None
    (part,) = (side for side in sides if side != name)
    uses = loaded_names([ast.parse(part)])
    if uses & (bound | {name}) or name in bound:
        return None
    indent = program.context.indent
    lines = [f"{name} = {own}.exscan({part}, op={mpi}.SUM)", f"if {is_first}:"]
    return Op.EXSCAN, [*lines, f"{indent}{name} = 0"], set()
