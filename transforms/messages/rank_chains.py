"""Blocking messages along a chain or a ring of ranks, in which each waits for the one before."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.ir.spmd.payloads import PayloadKind
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.ranks import Partner, PartnerKind
from advisor.ir.spmd.steps import Branch, Communicate, Loop, LoopKind, Op, Step, Visit
from advisor.source import Span
from costdb.expr import Expr, num
from costdb.records import dataclass, replace
from transforms.kit.memory import apart, same_memory, written_sizes
from transforms.kit.names import argument, is_simple
from transforms.kit.programs import offer
from transforms.kit.ranks import (
    ALL,
    END,
    FIRST,
    Bound,
    Interval,
    Move,
    Ranks,
    move_of,
    named_rank,
    ranks_where,
    same_communicator,
    starting_rank,
)
from transforms.kit.rewrite import in_place_of, starts_line, stretch

_NOT_FIRST: Ranks = (Interval(Bound(0, 1), END),)
_NOT_LAST: Ranks = (Interval(FIRST, Bound(1, -1)),)


@dataclass(frozen=True, slots=True)
class _Chain:
    """A send and a receive of every rank that could be one exchange.

    Attributes
    ----------
    send, receive : Communicate
    waits : Expr
        How many messages follow one another.
    dest, source : str
        The partners of the exchange, as Python.
    place : Span or None
        What it replaces; None where that cannot be written.
    """

    send: Communicate
    receive: Communicate
    waits: Expr
    dest: str
    source: str
    place: Span | None


def chains(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield an exchange for every chain whose messages do not depend on one another."""
    sizes = written_sizes(program)
    for visit in function.visits():
        if function.weight(visit) == 0:
            continue
        for found in (_ring(program, visit), _line(program, visit), _mesh(program, visit)):
            if found is None:
                continue
            sent, got = found.send.send, found.receive.receive
            assert sent is not None and got is not None
            assert sent.view is not None and got.view is not None
            known = sent.count is not None and sent.count == got.count
            if known and apart(sent.view, got.view, sizes):
                yield _proposal(program, function, visit, found)


def _proposal(
    program: Program, function: SpmdFunction, visit: Visit, chain: _Chain
) -> ProgramProposal:
    send, receive = chain.send, chain.receive
    exchange = replace(
        send,
        op=Op.SENDRECV,
        method="Sendrecv",
        receive=receive.receive,
        source=receive.source,
    )
    one_after_another = Loop(
        LoopKind.COUNTED, "", num(0), chain.waits, 1, chain.waits, (send,), send.span
    )
    given = []
    for step, payload, names in (
        (send, send.send, ("", "dest", "sendtag")),
        (receive, receive.receive, ("recvbuf=", "source", "recvtag")),
    ):
        assert payload is not None
        partner = chain.dest if step is send else chain.source
        given += [f"{names[0]}{payload.text}", f"{names[1]}={partner}"]
        tag = argument(step, "tag", program)
        given += [] if tag is None else [f"{names[2]}={tag}"]
    call = f"{send.receiver}.Sendrecv({', '.join(given)})"
    return offer(
        function,
        visit,
        send.span,
        "exchange by `Sendrecv`, not by messages that wait for one another",
        "each rank waits for the one before it, although what it sends is ready: the last one gets"
        " its message after all others; `Sendrecv` lets all messages go at once",
        (one_after_another,),
        (exchange,),
        "every rank sends and receives the same messages, and what it sends does not depend on"
        " what it receives",
        None if chain.place is None else in_place_of(chain.place, [call], program.context),
        safe=True,
    )


def _end(step: Step, op: Op) -> Communicate | None:
    """Return a step that is one blocking end of a message of an array."""
    if not isinstance(step, Communicate) or step.op is not op or step.pickled:
        return None
    payload = step.send if op is Op.SEND else step.receive
    plain = (
        step.blocking
        and step.mode in ("", "synchronous")
        and "status" not in step.places
        and payload is not None
        and payload.kind is PayloadKind.ARRAY
        and payload.view is not None
    )
    return step if plain else None


def _place(program: Program, first: Branch, *ends: Communicate) -> Span | None:
    """Return all from a branch to the last of some ends, if that can be replaced."""
    context = program.context
    is_if = context.lines[first.span.start_line - 1][first.span.start_column :].startswith("if")
    if not is_if or not starts_line(first.span, context):
        return None
    if not all(is_simple(end, program) for end in ends):
        return None
    return stretch(first.span, max(end.statement for end in ends))


def _text(partner: Partner | None) -> str:
    return "" if partner is None else partner.text


# --- a ring that one rank starts ----------------------------------------------------------------


def _ring(program: Program, visit: Visit) -> _Chain | None:
    """Return a ring in which some ranks send first, and all others after they have received.

    All send `k` ranks on and receive from `k` ranks before, with `k` 1 or -1: that is one ring.
    Where one rank starts it, the last one waits for all others; where every other one does, as in
    an exchange of even and odd ranks, all wait for one message.
    """
    branch = visit.step
    if not isinstance(branch, Branch) or len(branch.then) != 2 or len(branch.orelse) != 2:
        return None
    first, rest = branch.then, branch.orelse
    if _end(first[0], Op.SEND) is None:
        first, rest = rest, first
    send, receive = _end(first[0], Op.SEND), _end(first[1], Op.RECV)
    taken, passed = _end(rest[0], Op.RECV), _end(rest[1], Op.SEND)
    if send is None or receive is None or taken is None or passed is None:
        return None
    communicator = passed.communicator
    if not (_alike(send, passed) and _alike(receive, taken)):
        return None
    starts, waits = starting_rank(branch, communicator), communicator.size
    if starts is None or starts[1] != (first == branch.then):
        starts, waits = (ALL, True), num(2)
    on = move_of(named_rank(passed.dest), communicator)
    back = move_of(named_rank(taken.source), communicator)
    if on not in (Move(1, num(1)), Move(1, num(-1))) or back != Move(1, -on.by):
        return None
    if move_of(named_rank(send.dest), communicator, starts[0]) != on:
        return None
    if move_of(named_rank(receive.source), communicator, starts[0]) != back:
        return None
    place = _place(program, branch, send, receive, taken, passed)
    dest, source = _text(passed.dest), _text(taken.source)
    return _Chain(passed, taken, waits, dest, source, place)


def _alike(one: Communicate, other: Communicate) -> bool:
    """Return whether two ends are the same, but for their partners."""
    mine = one.send if one.op is Op.SEND else one.receive
    others = other.send if other.op is Op.SEND else other.receive
    assert mine is not None and others is not None
    assert mine.view is not None and others.view is not None
    return (
        same_communicator(one.communicator, other.communicator)
        and one.tag == other.tag
        and ("tag" in one.places) == ("tag" in other.places)
        and mine.text == others.text
        and same_memory(mine.view, others.view)
        and mine.view.region == others.view.region
    )


# --- an open chain: receive from the one before, then send to the next --------------------------


def _next(visit: Visit) -> Step | None:
    return visit.block[visit.position + 1] if visit.position + 1 < len(visit.block) else None


def _line(program: Program, visit: Visit) -> _Chain | None:
    """Return a chain of two conditional ends, of which the receiving one is first."""
    first, second = visit.step, _next(visit)
    if not isinstance(first, Branch) or not isinstance(second, Branch):
        return None
    if first.orelse or second.orelse or len(first.then) != 1 or len(second.then) != 1:
        return None
    receive, send = _end(first.then[0], Op.RECV), _end(second.then[0], Op.SEND)
    if receive is None or send is None:
        return None
    communicator = send.communicator
    if not same_communicator(communicator, receive.communicator):
        return None
    if ranks_where(first.condition.value, communicator) != _NOT_FIRST:
        return None
    if ranks_where(second.condition.value, communicator) != _NOT_LAST:
        return None
    if move_of(named_rank(send.dest), communicator, _NOT_LAST) != Move(1, num(1)):
        return None
    if move_of(named_rank(receive.source), communicator, _NOT_FIRST) != Move(1, num(-1)):
        return None
    known = send.send is not None and send.send.view is not None and send.send.view.region
    place = _place(program, first, receive, send)
    if program.mpi_module is None or not known or not starts_line(second.span, program.context):
        place = None
    nobody = f"{program.mpi_module}.PROC_NULL"
    dest = f"{_text(send.dest)} if {second.condition.text} else {nobody}"
    source = f"{_text(receive.source)} if {first.condition.text} else {nobody}"
    return _Chain(send, receive, communicator.size - 1, dest, source, place)


# --- an open chain whose edges are nobody --------------------------------------------------------


def _mesh(program: Program, visit: Visit) -> _Chain | None:
    """Return a receive from a neighbour and a send to the opposite one, one after the other."""
    second = _next(visit)
    receive = _end(visit.step, Op.RECV)
    send = None if second is None else _end(second, Op.SEND)
    if receive is None or send is None or send.dest is None or receive.source is None:
        return None
    communicator, dest, source = send.communicator, send.dest, receive.source
    if not same_communicator(communicator, receive.communicator):
        return None
    if {dest.kind, source.kind} != {PartnerKind.NEIGHBOUR} or dest.axis != source.axis:
        return None
    if dest.axis is None or (dest.displacement, source.displacement) not in ((1, -1), (-1, 1)):
        return None
    # around a ring everybody would wait for ever
    if communicator.periods is None or communicator.periods[dest.axis] is not False:
        return None
    assert communicator.dims is not None
    simple = is_simple(send, program) and is_simple(receive, program)
    adjacent = send.statement.start_line == receive.statement.end_line + 1
    place = stretch(receive.statement, send.statement) if simple and adjacent else None
    waits = communicator.dims[dest.axis] - 1
    return _Chain(send, receive, waits, dest.text, source.text, place)
