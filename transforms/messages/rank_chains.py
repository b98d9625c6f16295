"""Blocking messages along a chain or a ring of ranks, in which each waits for the one before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from advisor.finding import Applicability
from advisor.ir.proposal import Legality
from advisor.ir.spmd.memory import Origin, View
from advisor.ir.spmd.payloads import Payload, PayloadKind
from advisor.ir.spmd.program import Program, SpmdFunction
from advisor.ir.spmd.proposal import ProgramProposal
from advisor.ir.spmd.ranks import Partner, PartnerKind
from advisor.ir.spmd.steps import Branch, Communicate, Loop, LoopKind, Op, Step, Visit
from advisor.source import Edit, Span
from costdb.expr import Expr, num
from transforms.programs.rank_facts import follow, partners, places, same_communicator
from transforms.programs.spmd_calls import argument, comments_within, is_simple
from transforms.programs.views import disjoint, may_share, same_memory, written_sizes

_NEW = frozenset({Origin.NEW, Origin.COPY, Origin.COMPUTED})
_REASON = (
    "each rank waits for the one before it, although what it sends is ready: the last one gets"
    " its message after all others; `Sendrecv` lets all messages go at once"
)


@dataclass(frozen=True, slots=True)
class _Chain:
    """A send and a receive of every rank that could be one exchange.

    Attributes
    ----------
    visit : Visit
        Of the first step.
    steps : tuple of Step
        What the exchange stands for.
    send, receive : Communicate
    waits : Expr
        How many messages follow one another.
    dest, source : str
        The partners of the exchange, as Python.
    place : Span or None
        What it replaces; None where that cannot be written.
    """

    visit: Visit
    steps: tuple[Step, ...]
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
        for found in (_ring(program, visit), _open(program, visit), _edges(program, visit)):
            if found is not None and _independent(found.send, found.receive, sizes):
                yield _proposal(program, function, found)


def _proposal(program: Program, function: SpmdFunction, chain: _Chain) -> ProgramProposal:
    send = chain.send
    exchange = replace(
        send,
        op=Op.SENDRECV,
        method="Sendrecv",
        receive=chain.receive.receive,
        source=chain.receive.source,
    )
    one_after_another = Loop(
        LoopKind.COUNTED, "", num(0), chain.waits, 1, chain.waits, (send,), send.span
    )
    applicability = Applicability.DISPLAY if chain.place is None else Applicability.SAFE
    return ProgramProposal(
        title="exchange by `Sendrecv`, not by messages that wait for one another",
        reason=_REASON,
        span=send.span,
        function=function,
        before=(one_after_another,),
        after=(exchange,),
        legality=Legality(
            applicability,
            "every rank sends and receives the same messages, and what it sends does not depend"
            " on what it receives",
        ),
        loops=chain.visit.loops,
        edits=tuple if chain.place is None else partial(_edits, program, chain, chain.place),
    )


def _edits(program: Program, chain: _Chain, place: Span) -> tuple[Edit, ...]:
    context, send, receive = program.context, chain.send, chain.receive
    given = [_text(send.send), f"dest={chain.dest}"]
    tag = argument(send, "tag", program)
    if tag is not None:
        given.append(f"sendtag={tag}")
    given += [f"recvbuf={_text(receive.receive)}", f"source={chain.source}"]
    tag = argument(receive, "tag", program)
    if tag is not None:
        given.append(f"recvtag={tag}")
    indent = context.lines[place.start_line - 1][: place.start_column]
    kept = comments_within(place, program)
    call = f"{send.receiver}.Sendrecv({', '.join(given)})"
    return (Edit(place, f"\n{indent}".join([*kept, call])),)


def _text(payload: Payload | None) -> str:
    return "" if payload is None else payload.text


def _is_end(step: Step, op: Op) -> bool:
    """Return whether a step is one blocking end of a message of an array."""
    if not isinstance(step, Communicate) or step.op is not op or step.pickled:
        return False
    payload = step.send if op is Op.SEND else step.receive
    return (
        step.blocking
        and step.mode in ("", "synchronous")
        and "status" not in step.places
        and payload is not None
        and payload.kind is PayloadKind.ARRAY
        and payload.view is not None
    )


def _independent(send: Communicate, receive: Communicate, sizes: Mapping[str, Expr]) -> bool:
    """Return whether what is sent is surely not what is received."""
    assert send.send is not None and receive.receive is not None
    sent, received = send.send.view, receive.receive.view
    assert sent is not None and received is not None
    if send.send.count != receive.receive.count or send.send.count is None:
        return False
    if may_share(sent, received):
        return disjoint(sent, received, sizes)
    return _is_own(sent) and _is_own(received)


def _is_own(view: View) -> bool:
    return view.buffer.allocation.origin in _NEW


def _pair(steps: tuple[Step, ...]) -> tuple[Communicate, Communicate, bool] | None:
    """Return a send and a receive that are all that is done, and whether the send is first."""
    if len(steps) != 2:
        return None
    one, other = steps
    if not isinstance(one, Communicate) or not isinstance(other, Communicate):
        return None
    if _is_end(one, Op.SEND) and _is_end(other, Op.RECV):
        return one, other, True
    if _is_end(one, Op.RECV) and _is_end(other, Op.SEND):
        return other, one, False
    return None


# --- a ring that one rank starts ----------------------------------------------------------------


def _ring(program: Program, visit: Visit) -> _Chain | None:
    """Return a ring in which one rank sends first, and every other one after it has received."""
    branch = visit.step
    if not isinstance(branch, Branch) or branch.condition.value is None:
        return None
    then, orelse = _pair(branch.then), _pair(branch.orelse)
    if then is None or orelse is None or then[2] == orelse[2]:
        return None
    first, rest = (then, orelse) if then[2] else (orelse, then)
    send, receive, _ = rest
    if not (_alike(first[0], send) and _alike(first[1], receive)):
        return None
    holds = follow(branch.condition.value, send.communicator)
    if holds is None:
        return None
    starts = [bool(value) == (first is then) for value in holds]
    tried = list(places(send.communicator))
    at_once = [
        sum(start for start, other in zip(starts, tried, strict=True) if _sizes(other) == size)
        for size in {_sizes(place): None for place in tried}
    ]
    # with several that start, as in an exchange of even and odd ranks, nobody waits for long
    if at_once != [1] * len(at_once):
        return None
    ends = [(_whom(a.dest, a), _whom(b.source, b)) for a, b in (first[:2], rest[:2])]
    (dest, source), (other_dest, other_source) = ends
    if not dest or not source or not other_dest or not other_source:
        return None
    there = [a if s else b for s, a, b in zip(starts, dest, other_dest, strict=True)]
    back = [a if s else b for s, a, b in zip(starts, source, other_source, strict=True)]
    if there != other_dest or back != other_source:
        return None
    if not _is_permutation(there, back, tried):
        return None
    place = None
    ends_at = max((orelse[0].statement, orelse[1].statement), key=lambda span: span.end_line)
    simple = all(is_simple(step, program) for step in (*then[:2], *orelse[:2]))
    if simple and _starts_line(program, branch.span):
        place = Span(
            branch.span.start_line, branch.span.start_column, ends_at.end_line, ends_at.end_column
        )
    texts = _partner_text(send.dest), _partner_text(receive.source)
    return _Chain(
        visit, (branch,), send, receive, send.communicator.size, texts[0], texts[1], place
    )


def _sizes(place: dict[str, int]) -> int:
    """Return the number of ranks of a place, which is named second."""
    return list(place.values())[1]


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


def _whom(partner: Partner | None, step: Communicate) -> list[int] | None:
    return partners(partner, step.communicator)


def _is_permutation(there: list[int], back: list[int], tried: list[dict[str, int]]) -> bool:
    """Return whether all ranks are one ring, and each hears from the one that sends to it."""
    sizes = [_sizes(place) for place in tried]
    for size in dict.fromkeys(sizes):
        to = [t for t, n in zip(there, sizes, strict=True) if n == size]
        by = [b for b, n in zip(back, sizes, strict=True) if n == size]
        if sorted(to) != list(range(size)) or any(by[to[r]] != r for r in range(size)):
            return False
        seen, place = {0}, to[0]
        while place not in seen:
            seen.add(place)
            place = to[place]
        if len(seen) != size:
            return False
    return True


def _starts_line(program: Program, span: Span) -> bool:
    before = program.context.lines[span.start_line - 1][: span.start_column]
    rest = program.context.lines[span.start_line - 1][span.start_column :]
    return not before.strip() and rest.startswith("if")


def _partner_text(partner: Partner | None) -> str:
    return "" if partner is None else partner.text


# --- an open chain: receive from the one before, then send to the next --------------------------


def _open(program: Program, visit: Visit) -> _Chain | None:
    """Return a chain of two conditional ends, of which the receiving one is first."""
    first = visit.step
    if not isinstance(first, Branch) or visit.position + 1 >= len(visit.block):
        return None
    second = visit.block[visit.position + 1]
    if not isinstance(second, Branch) or first.orelse or second.orelse:
        return None
    if len(first.then) != 1 or len(second.then) != 1:
        return None
    receive, send = first.then[0], second.then[0]
    if not _is_end(receive, Op.RECV) or not _is_end(send, Op.SEND):
        return None
    assert isinstance(receive, Communicate) and isinstance(send, Communicate)
    if not same_communicator(send.communicator, receive.communicator):
        return None
    receives = follow(first.condition.value, send.communicator)
    sends = follow(second.condition.value, send.communicator)
    there, back = _whom(send.dest, send), _whom(receive.source, receive)
    if receives is None or sends is None or there is None or back is None:
        return None
    tried = list(places(send.communicator))
    if not _is_line(tried, receives, sends, there, back):
        return None
    place = None
    if (
        program.mpi_module is not None
        and is_simple(send, program)
        and is_simple(receive, program)
        and _starts_line(program, first.span)
        and _starts_line(program, second.span)
        and send.send is not None
        and send.send.view is not None
        and send.send.view.region is not None
    ):
        ends_at = send.statement
        place = Span(
            first.span.start_line, first.span.start_column, ends_at.end_line, ends_at.end_column
        )
    nobody = f"{program.mpi_module}.PROC_NULL"
    return _Chain(
        visit,
        (first, second),
        send,
        receive,
        send.communicator.size - 1,
        f"{_partner_text(send.dest)} if {second.condition.text} else {nobody}",
        f"{_partner_text(receive.source)} if {first.condition.text} else {nobody}",
        place,
    )


def _is_line(
    tried: list[dict[str, int]],
    receives: list[int],
    sends: list[int],
    there: list[int],
    back: list[int],
) -> bool:
    """Return whether messages go from each rank to the next, and none from the last."""
    for place, gets, gives, to, by in zip(tried, receives, sends, there, back, strict=True):
        rank, size = place.values()
        if bool(gets) != (rank > 0) or bool(gives) != (rank < size - 1):
            return False
        if (gets and by != rank - 1) or (gives and to != rank + 1):
            return False
    return True


# --- an open chain whose edges are nobody --------------------------------------------------------


def _edges(program: Program, visit: Visit) -> _Chain | None:
    """Return a receive from a neighbour and a send to the opposite one, one after the other."""
    if visit.position + 1 >= len(visit.block):
        return None
    receive, send = visit.step, visit.block[visit.position + 1]
    if not _is_end(receive, Op.RECV) or not _is_end(send, Op.SEND):
        return None
    assert isinstance(receive, Communicate) and isinstance(send, Communicate)
    communicator = send.communicator
    dest, source = send.dest, receive.source
    if dest is None or source is None:
        return None
    if not same_communicator(communicator, receive.communicator):
        return None
    if dest.kind is not PartnerKind.NEIGHBOUR or source.kind is not PartnerKind.NEIGHBOUR:
        return None
    axis = dest.axis
    if axis is None or source.axis != axis or dest.displacement is None:
        return None
    if source.displacement != -dest.displacement or abs(dest.displacement) != 1:
        return None
    # around a ring everybody would wait for ever
    if communicator.periods is None or communicator.periods[axis] is not False:
        return None
    assert communicator.dims is not None
    simple = is_simple(send, program) and is_simple(receive, program)
    adjacent = send.statement.start_line == receive.statement.end_line + 1
    one, other = receive.statement, send.statement
    place = Span(one.start_line, one.start_column, other.end_line, other.end_column)
    return _Chain(
        visit,
        (receive, send),
        send,
        receive,
        communicator.dims[axis] - 1,
        dest.text,
        source.text,
        place if simple and adjacent else None,
    )
