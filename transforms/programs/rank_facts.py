"""Which ranks do what: roots, partners and conditions, tried for all ranks of small programs."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.ir.spmd.ranks import Communicator, Partner, PartnerKind
from advisor.ir.spmd.steps import Branch, Call, Communicate, Step, Unknown, walk
from costdb.expr import Expr, ExprError, equal, evaluate, free_symbols, logical_not
from costdb.expr.nodes import Num

TRIED_SIZES = range(2, 7)
"""Numbers of ranks for which a statement about all ranks is tried."""


def root_arms(
    branch: Branch, communicator: Communicator, root: Expr
) -> tuple[tuple[Step, ...], tuple[Step, ...]] | None:
    """Return what the root does and what all others do; None where a branch says otherwise."""
    value = branch.condition.value
    sides = (equal(communicator.rank, root), equal(root, communicator.rank))
    if value in sides:
        return branch.then, branch.orelse
    if value in [logical_not(side) for side in sides]:
        return branch.orelse, branch.then
    # `rank > 0` and its like, which say the same in other words
    holds, own = follow(value, communicator), follow(communicator.rank, communicator)
    if holds is None or own is None or not isinstance(root, Num):
        return None
    at_root = [rank == root.value for rank in own]
    if not any(at_root):
        return None
    if [bool(one) for one in holds] == at_root:
        return branch.then, branch.orelse
    if [not one for one in holds] == at_root:
        return branch.orelse, branch.then
    return None


def same_communicator(one: Communicator, other: Communicator) -> bool:
    """Return whether two communicators are one, wherever they are first seen."""
    return (one.text, one.size, one.rank) == (other.text, other.size, other.rank)


def only_communication(steps: tuple[Step, ...]) -> Communicate | None:
    """Return the one communication of some steps, of which all others stay on their rank."""
    found: Communicate | None = None
    for visit in walk(steps, into_calls=True):
        if isinstance(visit.step, Unknown | Call):
            return None
        if isinstance(visit.step, Communicate):
            if found is not None:
                return None
            found = visit.step
    return found


def places(communicator: Communicator) -> Iterator[dict[str, int]]:
    """Yield the own rank and the number of ranks for all ranks of small communicators."""
    rank, size = free_symbols(communicator.rank), free_symbols(communicator.size)
    if len(rank) != 1 or len(size) != 1:
        return
    (own,), (count,) = rank, size
    for ranks in TRIED_SIZES:
        for place in range(ranks):
            yield {own: place, count: ranks}


def follow(expr: Expr | None, communicator: Communicator) -> list[int] | None:
    """Return what an expression over the own rank and the size is at all `places`.

    None where it holds anything else, or has no value somewhere.
    """
    known = free_symbols(communicator.rank) | free_symbols(communicator.size)
    if expr is None or free_symbols(expr) - known:
        return None
    try:
        return [int(evaluate(expr, place)) for place in places(communicator)]
    except (ExprError, ArithmeticError, ValueError):
        return None


def partners(partner: Partner | None, communicator: Communicator) -> list[int] | None:
    """Return whom a partner means at all `places`."""
    if partner is None or partner.kind is not PartnerKind.RANK or partner.may_be_nobody:
        return None
    return follow(partner.rank, communicator)
