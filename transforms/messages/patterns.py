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

from advisor.ir.spmd.memory import PayloadKind
from advisor.ir.spmd.program import SpmdFunction
from advisor.ir.spmd.steps import (
    Branch,
    Call,
    Communicate,
    Communicator,
    Copy,
    Interpret,
    Leave,
    Loop,
    Op,
    Partner,
    Step,
    Unknown,
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
    Ranks,
    modulo,
    move_of,
    named_rank,
    only_communication,
    other_ranks,
    ranks_where,
    root_arms,
    same_communicator,
)

ROOT = num(0)
_NOT_FIRST: Ranks = (Interval(Bound(0, 1), END),)
_LAST = Bound(1, -1)
_NOT_LAST: Ranks = (Interval(FIRST, _LAST),)


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
    pieces : tuple of Loop
        Around the message, where one partner is sent several, or sends them.
    """

    step: Communicate
    loop: Loop | None = None
    partner: Expr | None = None
    spares: bool = False
    text: str = ""
    pieces: tuple[Loop, ...] = ()


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
        found = list(_fan(visit))
        found += [one for read in (_each, _next) if not found and (one := read(visit)) is not None]
        if found and is_clear(function, visit):
            yield from found


def is_clear(function: SpmdFunction, visit: Visit) -> bool:
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
    pieces = _pieces(loop.body, inner)
    spares = inner not in loop.body and not pieces
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
        End(inner, loop, rank, True, partner.text, pieces)
        if (low, high) == rest and not spares
        else None
    )


def _pieces(steps: tuple[Step, ...], message: Communicate) -> tuple[Loop, ...]:
    """Return the loops around a message among some steps; none where a branch is around it."""
    found = [one for one in walk(steps) if one.step == message]
    return found[0].loops if found and not found[0].branches else ()


# --- a root and all others ----------------------------------------------------------------------


def _fan(visit: Visit) -> Iterator[Pattern]:
    """Yield a root's loops over all other ranks, and what those do for each."""
    branch = visit.step
    if not isinstance(branch, Branch):
        return
    if branch.then and isinstance(branch.then[-1], Leave) and not branch.orelse:
        # who is not in the branch goes on behind it
        branch = replace(branch, orelse=visit.block[visit.position + 1 :])
    single = branch.condition.single_rank
    root = ROOT if single is None else single
    for arm, other_arm in ((branch.then, branch.orelse), (branch.orelse, branch.then)):
        here, there = _messages(arm), _messages(other_arm)
        if not here or len(here) != len(there):
            continue
        if root_arms(branch, here[0][1].communicator, root) != (arm, other_arm):
            continue
        found = list[Pattern]()
        for (loop, inner), (_, other) in zip(here, there, strict=True):
            gathers, pieces = inner.op is Op.RECV, _pieces(other_arm, other)
            if inner.op not in (Op.SEND, Op.RECV) or not (pieces or other in other_arm):
                continue
            partner = inner.source if gathers else inner.dest
            many = _over_ranks(loop, inner, partner, root) if isinstance(loop, Loop) else None
            if many is None or not many.spares or bool(many.pieces) != bool(pieces):
                continue
            if _meet(many, other, root):
                text = _text(other.dest if gathers else other.source)
                once = End(other, text=text, pieces=pieces)
                kind = Kind.FROM_ALL if gathers else Kind.TO_ALL
                send, take = (once, many) if gathers else (many, once)
                found.append(Pattern(kind, visit, (branch,), send, take, root))
        if len(found) == len(here):
            yield from found


def _messages(arm: tuple[Step, ...]) -> list[tuple[Step, Communicate]]:
    """Return steps that hold one message each, and these; none where some steps hold more."""
    found: list[tuple[Step, Communicate]] = []
    for step in arm:
        inside = [one.step for one in walk((step,))]
        if any(isinstance(one, Unknown | Call) for one in inside):
            return []
        messages = [one for one in inside if isinstance(one, Communicate)]
        if len(messages) > 1:
            return []
        found += [(step, one) for one in messages]
    return found


def _text(partner: Partner | None) -> str:
    return "" if partner is None else partner.text


def _meet(end: End, other: Communicate, root: Expr) -> bool:
    """Return whether a root's messages and those of all others are each other's."""
    inner = end.step
    back, wanted = (other.source, Op.RECV) if inner.op is Op.SEND else (other.dest, Op.SEND)
    if other.op is not wanted or named_rank(back) != root or not _alike(inner, other):
        return False
    receive = inner if inner.op is Op.RECV else other
    if "tag" not in receive.places or end.pieces:
        return True  # the messages of two ranks are all of these
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


@dataclass(frozen=True, slots=True)
class _Act:
    """One end of a message, and the ranks that come to it: all where nothing says which."""

    step: Communicate
    where: Ranks
    condition: str = ""

    @property
    def partner(self) -> Partner | None:
        return self.step.dest if self.step.op is Op.SEND else self.step.source

    @property
    def text(self) -> str:
        """The partner, as Python on any rank."""
        text = _text(self.partner)
        return f"{text} if {self.condition} else {{nobody}}" if self.condition else text


def _next(visit: Visit) -> Pattern | None:
    """Return messages of each rank to the next, of which some wait for those of others.

    All send `k` ranks on and receive from `k` ranks before, with `k` 1 or -1. In one branch some
    ranks send first: where that is one rank, the last one waits for all others; where every other
    one does, as in an exchange of even and odd ranks, all wait for one message. Else all receive
    first but the one at an open end, which has nobody there.
    """
    in_turns = isinstance(visit.step, Branch) and bool(visit.step.orelse)
    steps = visit.block[visit.position : visit.position + (1 if in_turns else 2)]
    acts = [act for step in steps for act in _acts(step)]
    order = [act.step.op for act in acts]
    sends, takes = ([a for a in acts if a.step.op is op] for op in (Op.SEND, Op.RECV))
    turns = [Op.SEND, Op.RECV, Op.RECV, Op.SEND]
    if order not in ((turns, turns[::-1]) if in_turns else ([Op.RECV, Op.SEND],)):
        return None
    send, take = sends[-1], takes[-1]
    if not all(_is_end(act.step) for act in acts) or not _alike(send.step, take.step):
        return None
    if not all(_same_end(*(act.step for act in ends)) for ends in (sends, takes) if in_turns):
        return None
    communicator = send.step.communicator
    waits: Expr | None = communicator.size - 1
    if in_turns:
        first = sends[0] if order == turns else sends[1]
        waits = communicator.size if first.where[0].single in (FIRST, _LAST) else num(2)
    elif {send.where, take.where} != {_NOT_FIRST, _NOT_LAST}:
        waits = _between_nobodies(send.partner, take.partner, communicator)
    on = {_ranks_on(act, communicator) for act in sends}
    back = {_ranks_on(act, communicator) for act in takes}
    if waits is None or (on, back) not in (({num(1)}, {num(-1)}), ({num(-1)}, {num(1)})):
        return None
    ends = End(send.step, text=send.text), End(take.step, text=take.text)
    return Pattern(Kind.NEXT, visit, steps, *ends, waits=waits)


def _acts(step: Step) -> Iterator[_Act]:
    """Yield the ends that a step is, or that its arms consist of."""
    if isinstance(step, Communicate):
        yield _Act(step, ALL)
    elif isinstance(step, Branch):
        if any(not isinstance(one, Communicate | Interpret) for one in arms(step)):
            return  # what comes may change what is sent
        text = "" if step.orelse else step.condition.text
        for arm, first in ((step.then, True), (step.orelse, False)):
            for one in arm:
                if not isinstance(one, Communicate):
                    continue
                holds = ranks_where(step.condition.value, one.communicator)
                where = ALL if holds is None else holds if first else other_ranks(holds)
                yield _Act(one, where or ALL, text)


def _is_end(step: Communicate) -> bool:
    """Return whether a step is one blocking end of a message of an array."""
    payload = step.send if step.op is Op.SEND else step.receive
    known = payload is not None and payload.view is not None
    is_array = payload is not None and payload.kind is PayloadKind.ARRAY
    return known and is_array and not step.pickled and _alike(step, step)


def _ranks_on(act: _Act, communicator: Communicator) -> Expr | None:
    """Return how many ranks on a partner is."""
    partner = act.partner
    if partner is not None and partner.displacement is not None:
        return num(partner.displacement)
    if partner is not None and partner.may_be_nobody and partner.rank is not None:
        return expand(partner.rank - communicator.rank)
    move = move_of(named_rank(partner), communicator, act.where)
    return None if move is None or move.sign != 1 else move.by


def _between_nobodies(
    dest: Partner | None, source: Partner | None, communicator: Communicator
) -> Expr | None:
    """Return how many ranks wait one for the other; around a ring everybody would for ever."""
    if dest is None or source is None or dest.kind is not source.kind:
        return None
    axis, periods, dims = dest.axis, communicator.periods, communicator.dims
    if axis is not None and periods is not None and dims is not None:
        return dims[axis] - 1 if axis == source.axis and periods[axis] is False else None
    return communicator.size - 1 if dest.may_be_nobody and source.may_be_nobody else None


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
