"""Which rank sends what to which rank: a root and all others, one after the other.

Ends are followed through branches on the rank and loops over ranks, with partners as affine
expressions of the own rank, the number of ranks and the index of a loop. A root receives from each
other rank, which sends once, or sends to each, which receives once.
"""

from __future__ import annotations

from collections.abc import Iterator

from advisor.ir.spmd.program import SpmdFunction
from advisor.ir.spmd.steps import (
    Branch,
    Communicate,
    Communicator,
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
from costdb.expr import Expr, ExprError, equal, logical_not, num, substitute, sym
from costdb.expr.nodes import Num
from costdb.expr.polynomials import expand
from costdb.records import dataclass, replace
from transforms.kit.memory import is_counted
from transforms.kit.names import words
from transforms.kit.ranks import (
    Bound,
    named_rank,
    root_arms,
    same_communicator,
)

ROOT = num(0)
_LAST = Bound(1, -1)


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
    text : str
        The partner, as Python.
    """

    step: Communicate
    loop: Loop | None = None
    partner: Expr | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Pattern:
    """Messages between a root and all other ranks.

    Attributes
    ----------
    visit : Visit
        Of the branch that tells the root from the others.
    gathers : bool
        Whether the root receives.
    send, take : End
    root : Expr
    """

    visit: Visit
    gathers: bool
    send: End
    take: End
    root: Expr

    @property
    def communicator(self) -> Communicator:
        """Who takes part."""
        return self.send.step.communicator

    @property
    def inner(self) -> End:
        """The end of a root."""
        return self.take if self.gathers else self.send

    @property
    def outer(self) -> End:
        """The end of all other ranks than a root."""
        return self.send if self.gathers else self.take


def patterns(function: SpmdFunction) -> Iterator[Pattern]:
    """Yield the patterns of a function's messages."""
    for visit in function.visits():
        found = list(_fan(visit))
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


def _over_ranks(loop: Loop, inner: Communicate, partner: Partner | None, root: Expr) -> End | None:
    """Return the end of a root that reaches every other rank once, in a loop.

    Parameters
    ----------
    loop : Loop
    inner : Communicate
        What it does with a rank, in every iteration but perhaps the root's.
    partner : Partner or None
    root : Expr
    """
    rank, size = named_rank(partner), inner.communicator.size
    if rank is None or partner is None or not is_counted(loop):
        return None
    if any(isinstance(one.step, Leave) for one in walk(loop.body)):
        return None
    others = {num(0): (num(1), size), size - 1: (num(0), size - 1)}.get(root)
    if inner not in loop.body:
        # `if i != rank`, or `if i == rank` with what the root does with its own instead
        guards = [step for step in loop.body if isinstance(step, Branch)]
        if len(guards) != 1 or (inner,) not in (guards[0].then, guards[0].orelse):
            return None
        own = (root, inner.communicator.rank)
        spared = [one for o in own for one in (equal(rank, o), equal(o, rank))]
        if guards[0].then == (inner,):
            spared = [logical_not(one) for one in spared]
        if guards[0].condition.value not in spared:
            return None
        others = (num(0), size)
    offset = expand(rank - sym(loop.variable))
    if not isinstance(offset, Num) or (loop.low + offset, loop.high + offset) != others:
        return None
    return End(inner, loop, rank, partner.text)


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
            gathers = inner.op is Op.RECV
            if inner.op not in (Op.SEND, Op.RECV) or other not in other_arm:
                continue
            partner = inner.source if gathers else inner.dest
            many = _over_ranks(loop, inner, partner, root) if isinstance(loop, Loop) else None
            if many is not None and _meet(many, other, root):
                back = other.dest if gathers else other.source
                once = End(other, text=back.text if back is not None else "")
                send, take = (once, many) if gathers else (many, once)
                found.append(Pattern(visit, gathers, send, take, root))
        if len(found) == len(here):
            yield from found


def _messages(arm: tuple[Step, ...]) -> list[tuple[Step, Communicate]]:
    """Return steps that hold messages, and these; none where one holds several, not in turn."""
    found: list[tuple[Step, Communicate]] = []
    unknown: frozenset[str] = frozenset()
    for step in arm:
        inside = list(walk((step,), into_calls=True))
        unknown = unknown.union(*(x.step.mentions for x in inside if isinstance(x.step, Unknown)))
        messages = [one.step for one in inside if isinstance(one.step, Communicate)]
        if any(one.calls for one in inside if isinstance(one.step, Communicate)):
            return []
        turns = step.body if isinstance(step, Loop) else ()
        in_turn = len({one.op for one in messages}) == 1 and all(one in turns for one in messages)
        if len(messages) > 1 and not in_turn:
            return []
        found += [(step, one) for one in messages]
    # what is not understood may send where it has who sends
    return [] if any(words(one.receiver) & unknown for _, one in found) else found


def _meet(end: End, other: Communicate, root: Expr) -> bool:
    """Return whether a root's messages and those of all others are each other's."""
    inner = end.step
    back, wanted = (other.source, Op.RECV) if inner.op is Op.SEND else (other.dest, Op.SEND)
    if other.op is not wanted or named_rank(back) != root or not _alike(inner, other):
        return False
    receive = inner if inner.op is Op.RECV else other
    if "tag" not in receive.places:
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
