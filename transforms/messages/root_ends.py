"""Which loops of a root, and which messages of all others, are the ends of one exchange."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.ir.spmd.payloads import Payload
from advisor.ir.spmd.program import Program
from advisor.ir.spmd.ranks import Partner, PartnerKind
from advisor.ir.spmd.steps import Branch, Communicate, Loop, LoopKind, Op, Visit, walk
from costdb.expr import Expr, ExprError, equal, logical_not, num, substitute, sym
from costdb.expr.nodes import Num
from transforms.programs.bound_names import words
from transforms.programs.rank_facts import only_communication, root_arms, same_communicator
from transforms.programs.views import may_be_written

ROOT = num(0)


@dataclass(frozen=True, slots=True)
class RootEnds:
    """A root's loop of messages, and the one message of every other rank.

    Attributes
    ----------
    visit : Visit
        Of the branch.
    branch : Branch
    loop : Loop
    root, other : Communicate
        What the root does in its loop, and what every other rank does once.
    partner : Expr
        The rank that the root speaks to, over the loop's index.
    """

    visit: Visit
    branch: Branch
    loop: Loop
    root: Communicate
    other: Communicate
    partner: Expr


def root_ends(visit: Visit, branch: Branch) -> RootEnds | None:
    """Return a root's loop over all other ranks, and what those do for it."""
    for root_first in (True, False):
        arm, other_arm = (branch.then, branch.orelse)[:: 1 if root_first else -1]
        other = only_communication(other_arm)
        loops = [step for step in arm if isinstance(step, Loop)]
        inner = only_communication(arm)
        if other is None or inner is None or other not in other_arm:
            continue
        if root_arms(branch, inner.communicator, ROOT) != (arm, other_arm):
            continue
        for loop in loops:
            found = _over_others(loop, inner)
            if found is not None and _meet(inner, other, loop, found):
                return RootEnds(visit, branch, loop, inner, other, found)
    return None


def varies(program: Program, ends: RootEnds, sent: Payload) -> bool:
    """Return whether what a root sends may be another thing for each rank.

    It is named by the index of the loop, or made or written in the loop.
    """
    header = program.context.lines[ends.loop.span.start_line - 1]
    if words(sent.text) & words(header.partition(" in ")[0]):
        return True
    return sent.view is None or any(
        may_be_written(visit.step, sent.view) for visit in walk(ends.loop.body, into_calls=True)
    )


def _over_others(loop: Loop, inner: Communicate) -> Expr | None:
    """Return the partner in a loop in which a message goes to, or comes from, every other rank."""
    partner = inner.dest if inner.op is Op.SEND else inner.source
    if loop.kind is not LoopKind.COUNTED or loop.step != 1 or loop.stride is not None:
        return None
    if inner.op not in (Op.SEND, Op.RECV) or partner is None or not _is_rank(partner):
        return None
    rank = partner.rank
    assert rank is not None
    offset, size = rank - sym(loop.variable), inner.communicator.size
    if not isinstance(offset, Num):
        return None
    low, high = loop.low + offset, loop.high + offset
    if inner in loop.body:
        return rank if (low, high) == (num(1), size) else None
    # `if i != rank`, in a loop over all ranks
    guards = [step for step in loop.body if isinstance(step, Branch)]
    if len(guards) != 1 or guards[0].then != (inner,) or guards[0].orelse:
        return None
    spared = [equal(rank, ROOT), equal(ROOT, rank)]
    spared += [equal(rank, inner.communicator.rank), equal(inner.communicator.rank, rank)]
    value = guards[0].condition.value
    holds = value in [logical_not(one) for one in spared]
    return rank if holds and (low, high) == (ROOT, size) else None


def _is_rank(partner: Partner) -> bool:
    return partner.kind is PartnerKind.RANK and not partner.may_be_nobody


def _meet(root: Communicate, other: Communicate, loop: Loop, partner: Expr) -> bool:
    """Return whether the messages of both ends are each other's."""
    back = other.source if root.op is Op.SEND else other.dest
    wanted = Op.RECV if root.op is Op.SEND else Op.SEND
    if other.op is not wanted or back is None or not _is_rank(back) or back.rank != ROOT:
        return False
    if not same_communicator(root.communicator, other.communicator):
        return False
    if root.pickled != other.pickled:
        return False
    if not (root.blocking and other.blocking) or "status" in {*root.places, *other.places}:
        return False
    return _same_tag(root, other, loop, partner)


def _same_tag(root: Communicate, other: Communicate, loop: Loop, partner: Expr) -> bool:
    receive = root if root.op is Op.RECV else other
    if "tag" not in receive.places:
        return True
    if root.tag is None or other.tag is None:
        return False
    # as the other end sees it: it is the partner
    index = root.communicator.rank - (partner - sym(loop.variable))
    try:
        return substitute(root.tag, {loop.variable: index}) == other.tag
    except ExprError:
        return False  # no such tag on some rank
