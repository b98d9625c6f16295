"""Which receive takes what a send sends: only where no other can."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from advisor.ir.spmd.program import Program, SpmdFunction
from advisor.ir.spmd.ranks import PartnerKind
from advisor.ir.spmd.steps import Communicate, Op, Visit
from costdb.expr import Expr, ExprError, evaluate, free_symbols, substitute
from costdb.expr.nodes import Num

_TRIED_RANKS = range(1, 7)


@dataclass(frozen=True, slots=True)
class End:
    """One end of a message, with what is around it."""

    function: SpmdFunction
    visit: Visit
    step: Communicate


def ends(program: Program, *, pickled: bool) -> Iterator[End]:
    """Yield every send and receive of a file, with or without pickling."""
    for function in program.functions:
        for visit, step in function.operations():
            if step.op in (Op.SEND, Op.RECV, Op.SENDRECV) and step.pickled is pickled:
                yield End(function, visit, step)


def only_pairs(program: Program, *, pickled: bool) -> Iterator[tuple[End, End]]:
    """Yield the sends and receives that can meet nobody but each other within the file.

    Both ends name their partner. An end whose tag is not known, or which takes any, may meet any
    other on its communicator.
    """
    found = list(ends(program, pickled=pickled))
    sends = [end for end in found if end.step.op is Op.SEND]
    receives = [end for end in found if end.step.op is Op.RECV]
    both = [end for end in found if end.step.op is Op.SENDRECV]
    for send in sends:
        takers = [end for end in (*receives, *both) if _may_meet(send, end)]
        if len(takers) != 1 or takers[0].step.op is not Op.RECV:
            continue
        givers = [end for end in (*sends, *both) if _may_meet(end, takers[0])]
        if len(givers) == 1 and _is_named(send) and _is_named(takers[0]):
            yield send, takers[0]


def _is_named(end: End) -> bool:
    partner = end.step.dest if end.step.op is Op.SEND else end.step.source
    return partner is not None and partner.kind is PartnerKind.RANK and not partner.may_be_nobody


def _may_meet(send: End, receive: End) -> bool:
    if send.step.communicator.text != receive.step.communicator.text:
        return False
    one, other = send.step.tag, receive.step.tag
    if isinstance(one, Num) and isinstance(other, Num) and one.value not in (other.value,):
        return False
    return not (_differ(send.step.dest, receive) or _differ(receive.step.source, send))


def _differ(partner: object, end: End) -> bool:
    """Return whether an end is on one rank only, and its partner means another."""
    rank = getattr(partner, "rank", None)
    own = _single_rank(end.visit)
    return isinstance(rank, Num) and isinstance(own, Num) and rank.value != own.value


def _single_rank(visit: Visit) -> Expr | None:
    """Return the rank that alone gets to a step, where a branch says so."""
    for branch, first in reversed(visit.branches):
        if first and branch.condition.single_rank is not None:
            return branch.condition.single_rank
    return None


def is_shift(step: Communicate) -> bool:
    """Return whether every rank receives what the rank that it names sends to it.

    Partners are followed for all ranks of small communicators; anything but ranks, sizes and
    numbers in them leaves it unknown.
    """
    dest, source = step.dest, step.source
    if dest is None or source is None or dest.rank is None or source.rank is None:
        return False
    if PartnerKind.RANK not in (dest.kind,) or source.kind is not PartnerKind.RANK:
        return False
    rank, size = step.communicator.rank, step.communicator.size
    (own,), (all_ranks,) = free_symbols(rank), free_symbols(size)
    if (free_symbols(dest.rank) | free_symbols(source.rank)) - {own, all_ranks}:
        return False
    there_and_back = substitute(dest.rank, {own: source.rank})
    try:
        return all(
            evaluate(there_and_back, {own: place, all_ranks: count}) == place
            and 0 <= evaluate(source.rank, {own: place, all_ranks: count}) < count
            for count in _TRIED_RANKS
            for place in range(count)
        )
    except ExprError:
        return False
