"""Which rank sends what to which rank: messages of a few steps as one pattern.

Ends are followed through branches on the rank and loops over ranks, with partners as affine
expressions of the own rank, the number of ranks and the index of a loop.

============= =============================================================================
`FROM_ALL`    every other rank sends once to a root, which receives from one after the other
`TO_ALL`      a root sends to one rank after the other, each of which receives once
`EACH`        every rank sends to every rank, and receives from every rank
`NEXT`        every rank sends once and receives once, and waits for others in between
============= =============================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from advisor.ir.spmd.payloads import PayloadKind
from advisor.ir.spmd.program import SpmdFunction
from advisor.ir.spmd.ranks import Communicator, Partner, PartnerKind
from advisor.ir.spmd.steps import (
    Branch,
    Communicate,
    Copy,
    Leave,
    Loop,
    Op,
    Step,
    Visit,
    Wait,
    walk,
)
from costdb.expr import Expr, ExprError, equal, free_symbols, logical_not, num, substitute, sym
from costdb.expr.nodes import Mod, Num
from costdb.expr.polynomials import expand
from costdb.records import dataclass, replace
from transforms.kit.memory import is_counted, same_memory
from transforms.kit.ranks import (
    ALL,
    END,
    FIRST,
    Bound,
    Interval,
    Move,
    Ranks,
    modulo,
    move_of,
    named_rank,
    only_communication,
    ranks_where,
    root_arms,
    same_communicator,
    starting_rank,
)

ROOT = num(0)
_NOT_FIRST: Ranks = (Interval(Bound(0, 1), END),)
_NOT_LAST: Ranks = (Interval(FIRST, Bound(1, -1)),)


class Kind(StrEnum):
    """Who sends to whom."""

    FROM_ALL = "from all"
    TO_ALL = "to all"
    EACH = "each to each"
    NEXT = "to the next"


@dataclass(frozen=True, slots=True)
class End:
    """One end of messages.

    Attributes
    ----------
    step : Communicate
    loop : Loop or None
        Over the ranks at the other end.
    partner : Expr or None
        The rank at the other end, over that loop's index.
    spares : bool
        The loop leaves out the own rank.
    text : str
        The partner, as Python.
    """

    step: Communicate
    loop: Loop | None = None
    partner: Expr | None = None
    spares: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True)
class Pattern:
    """Messages of some steps that follow one another.

    Attributes
    ----------
    kind : Kind
    visit : Visit
        Of the first step.
    steps : tuple of Step
        Those that hold the messages, and nothing else but what stays on its rank.
    send, take : End
    root : Expr
        Of `Kind.FROM_ALL` and `Kind.TO_ALL`.
    waits : Expr
        Of `Kind.NEXT`: how many messages follow one another.
    """

    kind: Kind
    visit: Visit
    steps: tuple[Step, ...]
    send: End
    take: End
    root: Expr = ROOT
    waits: Expr = ROOT

    @property
    def communicator(self) -> Communicator:
        """Who takes part."""
        return self.send.step.communicator

    @property
    def inner(self) -> End:
        """The end of a root."""
        return self.take if self.kind is Kind.FROM_ALL else self.send

    @property
    def outer(self) -> End:
        """The end of all other ranks than a root."""
        return self.send if self.kind is Kind.FROM_ALL else self.take


def patterns(function: SpmdFunction) -> Iterator[Pattern]:
    """Yield the patterns of a function's messages."""
    for visit in function.visits():
        readers = (_fan, _each, _turns, _line, _row)
        found = next((one for read in readers if (one := read(visit)) is not None), None)
        if found is not None and _is_clear(function, visit):
            yield found


def _is_clear(function: SpmdFunction, visit: Visit) -> bool:
    """Return whether no message of the function is under way that was begun before."""
    under_way = False
    for one in function.visits():
        if one.step is visit.step:
            break
        if isinstance(one.step, Wait):
            under_way = False
        elif isinstance(one.step, Communicate):
            under_way |= not one.step.blocking and one.step.op in (Op.SEND, Op.RECV)
    return not under_way


# --- which ranks a loop reaches -----------------------------------------------------------------


def _over_ranks(loop: Loop, inner: Communicate, partner: Partner | None, own: Expr) -> End | None:
    """Return an end in a loop that reaches every rank once, or every one but the own.

    Parameters
    ----------
    loop : Loop
    inner : Communicate
        What it does with a rank, in every iteration but perhaps the own rank's.
    partner : Partner or None
    own : Expr
        The rank that runs the loop.
    """
    rank, size = named_rank(partner), inner.communicator.size
    if rank is None or partner is None or not is_counted(loop):
        return None
    if any(isinstance(one.step, Leave) for one in walk(loop.body)):
        return None
    guards = [step for step in loop.body if isinstance(step, Branch)]
    spares = inner not in loop.body
    if spares:
        # `if i != rank`, or `if i == rank` with what the rank does with its own instead
        if len(guards) != 1 or (inner,) not in (guards[0].then, guards[0].orelse):
            return None
        others = (own, inner.communicator.rank)
        spared = [one for o in others for one in (equal(rank, o), equal(o, rank))]
        if guards[0].then == (inner,):
            spared = [logical_not(one) for one in spared]
        if guards[0].condition.value not in spared:
            return None
    offset = expand(rank - sym(loop.variable))
    low, high = loop.low + offset, loop.high + offset
    if isinstance(rank, Mod):
        # round all ranks, up or down
        move, trips = move_of(rank, inner.communicator), expand(loop.high - loop.low)
        if move is None or move.sign != 1 or spares:
            return None
        up = expand(substitute(move.by, {loop.variable: sym(loop.variable) + 1}) - move.by)
        begins = substitute(move.by, {loop.variable: loop.low}) - up
        around = trips == size - 1 and modulo(begins, inner.communicator) == num(0)
        if up not in (num(1), num(-1)) or not (around or trips == size):
            return None
        return End(inner, loop, rank, around, partner.text)
    if not isinstance(offset, Num):
        return None
    if (low, high) == (num(0), size):
        return End(inner, loop, rank, spares, partner.text)
    rest = {num(0): (num(1), size), size - 1: (num(0), size - 1)}.get(own)
    return (
        End(inner, loop, rank, True, partner.text) if (low, high) == rest and not spares else None
    )


# --- a root and all others ----------------------------------------------------------------------


def _fan(visit: Visit) -> Pattern | None:
    """Return a root's loop over all other ranks, and what those do for it."""
    branch = visit.step
    if not isinstance(branch, Branch):
        return None
    if branch.then and isinstance(branch.then[-1], Leave) and not branch.orelse:
        # who is not in the branch goes on behind it
        branch = replace(branch, orelse=visit.block[visit.position + 1 :])
    single = branch.condition.single_rank
    root = ROOT if single is None else single
    for arm, other_arm in ((branch.then, branch.orelse), (branch.orelse, branch.then)):
        other, inner = only_communication(other_arm), only_communication(arm)
        if other is None or inner is None or other not in other_arm:
            continue
        if root_arms(branch, inner.communicator, root) != (arm, other_arm):
            continue
        gathers = inner.op is Op.RECV
        if inner.op not in (Op.SEND, Op.RECV):
            continue
        partner = inner.source if gathers else inner.dest
        for loop in arm:
            many = _over_ranks(loop, inner, partner, root) if isinstance(loop, Loop) else None
            if many is None or not many.spares or not _meet(many, other, root):
                continue
            once = End(other, text=_text(other.dest if gathers else other.source))
            kind = Kind.FROM_ALL if gathers else Kind.TO_ALL
            send, take = (once, many) if gathers else (many, once)
            return Pattern(kind, visit, (branch,), send, take, root)
    return None


def _text(partner: Partner | None) -> str:
    return "" if partner is None else partner.text


def _meet(end: End, other: Communicate, root: Expr) -> bool:
    """Return whether a root's messages and those of all others are each other's."""
    inner = end.step
    back, wanted = (other.source, Op.RECV) if inner.op is Op.SEND else (other.dest, Op.SEND)
    if other.op is not wanted or named_rank(back) != root or not _alike(inner, other):
        return False
    receive = inner if inner.op is Op.RECV else other
    if "tag" not in receive.places:
        return True
    if inner.tag is None or other.tag is None or end.loop is None or end.partner is None:
        return False
    # as the other end sees it: it is the partner
    index = inner.communicator.rank - (end.partner - sym(end.loop.variable))
    try:
        return substitute(inner.tag, {end.loop.variable: index}) == other.tag
    except ExprError:
        return False  # no such tag on some rank


def _alike(one: Communicate, other: Communicate) -> bool:
    """Return whether two ends are of messages of one kind, that nobody asks for the status of."""
    return (
        one.pickled == other.pickled
        and same_communicator(one.communicator, other.communicator)
        and (one.blocking and other.blocking)
        and {one.mode, other.mode} <= {"", "synchronous"}
        and "status" not in {*one.places, *other.places}
    )


# --- each rank and each other -------------------------------------------------------------------


def _each(visit: Visit) -> Pattern | None:
    """Return a loop of exchanges with all ranks, or a loop that sends and one that receives."""
    found: list[End] = []
    steps: list[Step] = []
    for step in visit.block[visit.position :]:
        if isinstance(step, Wait) and found:
            steps.append(step)
            break
        if not isinstance(step, Loop) or len(found) == 2:
            break
        inner = only_communication(step.body)
        if inner is None or not _does_nothing_else(step, inner) or "status" in inner.places:
            break
        ends = (
            (inner.dest, inner.source) if inner.op is Op.SENDRECV else (inner.dest or inner.source,)
        )
        if inner.op not in (Op.SEND, Op.RECV, Op.SENDRECV) or inner.replaces:
            break
        reached = [_over_ranks(step, inner, end, inner.communicator.rank) for end in ends]
        found += [one for one in reached if one is not None]
        steps.append(step)
        if inner.op is Op.SENDRECV:
            break
    if len(found) != 2:
        return None
    one, other = found
    send, take = (one, other) if one.step.op is not Op.RECV else (other, one)
    if send.step.op is Op.RECV or take.step.op is Op.SEND or send.spares != take.spares:
        return None
    nobody_waits = send.step.blocking and take.step.blocking
    if nobody_waits is isinstance(steps[-1], Wait):
        return None
    alike = replace(send.step, blocking=True), replace(take.step, blocking=True)
    if not _alike(*alike) or send.step.tag is None or send.step.tag != take.step.tag:
        return None
    indices = {end.loop.variable for end in (send, take) if end.loop is not None}
    if free_symbols(send.step.tag) & {*indices, *free_symbols(send.step.communicator.rank)}:
        return None
    return Pattern(Kind.EACH, visit, tuple(steps), send, take)


def _does_nothing_else(loop: Loop, inner: Communicate) -> bool:
    return all(
        one == inner
        or (isinstance(one, Branch) and all(s == inner or isinstance(s, Copy) for s in arms(one)))
        for one in loop.body
    )


def arms(branch: Branch) -> tuple[Step, ...]:
    """Return the steps of both arms."""
    return (*branch.then, *branch.orelse)


# --- each rank and the next ---------------------------------------------------------------------


def _end(step: Step | None, op: Op) -> Communicate | None:
    """Return a step that is one blocking end of a message of an array."""
    if not isinstance(step, Communicate) or step.op is not op or step.pickled:
        return None
    payload = step.send if op is Op.SEND else step.receive
    if payload is None or payload.kind is not PayloadKind.ARRAY or payload.view is None:
        return None
    return step if _alike(step, step) else None


def _turns(visit: Visit) -> Pattern | None:
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
    if not (_same_end(send, passed) and _same_end(receive, taken)):
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
    ends = End(passed, text=_text(passed.dest)), End(taken, text=_text(taken.source))
    return Pattern(Kind.NEXT, visit, (branch,), *ends, waits=waits)


def _same_end(one: Communicate, other: Communicate) -> bool:
    """Return whether two ends are the same, but for their partners."""
    mine, others = one.send or one.receive, other.send or other.receive
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


def _next(visit: Visit) -> Step | None:
    return visit.block[visit.position + 1] if visit.position + 1 < len(visit.block) else None


def _line(visit: Visit) -> Pattern | None:
    """Return a chain of two conditional ends, of which the receiving one is first."""
    first, second = visit.step, _next(visit)
    if not isinstance(first, Branch) or not isinstance(second, Branch):
        return None
    if first.orelse or second.orelse or len(first.then) != 1 or len(second.then) != 1:
        return None
    receive, send = _end(first.then[0], Op.RECV), _end(second.then[0], Op.SEND)
    if receive is None or send is None or not _alike(receive, send):
        return None
    communicator = send.communicator
    takes = ranks_where(first.condition.value, communicator)
    gives = ranks_where(second.condition.value, communicator)
    on = {_NOT_LAST: 1, _NOT_FIRST: -1}.get(gives or ())
    if on is None or {takes, gives} != {_NOT_FIRST, _NOT_LAST}:
        return None
    if move_of(named_rank(send.dest), communicator, gives or ()) != Move(1, num(on)):
        return None
    if move_of(named_rank(receive.source), communicator, takes or ()) != Move(1, num(-on)):
        return None
    dest = f"{_text(send.dest)} if {second.condition.text} else {{nobody}}"
    source = f"{_text(receive.source)} if {first.condition.text} else {{nobody}}"
    ends, waits = (End(send, text=dest), End(receive, text=source)), communicator.size - 1
    return Pattern(Kind.NEXT, visit, (first, second), *ends, waits=waits)


def _row(visit: Visit) -> Pattern | None:
    """Return a receive from a neighbour and a send to the opposite one, where edges are nobody."""
    receive, send = _end(visit.step, Op.RECV), _end(_next(visit), Op.SEND)
    if receive is None or send is None or not _alike(receive, send):
        return None
    communicator, dest, source = send.communicator, send.dest, receive.source
    if dest is None or source is None or dest.kind is not source.kind:
        return None
    # around a ring everybody would wait for ever
    if dest.kind is PartnerKind.NEIGHBOUR:
        axis, periods, dims = dest.axis, communicator.periods, communicator.dims
        if axis is None or axis != source.axis or periods is None or dims is None:
            return None
        if periods[axis] is not False or dest.displacement not in (1, -1):
            return None
        if source.displacement != -dest.displacement:
            return None
        waits = dims[axis] - 1
    else:
        on, back = (
            expand(one.rank - communicator.rank) if one.rank is not None else None
            for one in (dest, source)
        )
        if (
            on not in (num(1), num(-1))
            or back != -on
            or not (dest.may_be_nobody and source.may_be_nobody)
        ):
            return None
        waits = communicator.size - 1
    ends = End(send, text=dest.text), End(receive, text=source.text)
    return Pattern(Kind.NEXT, visit, (receive, send), *ends, waits=waits)
