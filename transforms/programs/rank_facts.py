"""Which ranks do what: roots, partners and conditions, for any number of ranks.

What is asked here of an expression depends on a rank only by how far it is from the first and from
the last one, up to `MOST_CONSTANT`, and by whether it and the number of ranks are even: the rank
occurs with a factor of 1 or -1, is compared with constants no larger than that and with the number
of ranks, wraps around at that number, or is halved. Any rank of any larger program then has one of
the same kind among `TRIED_SIZES` ranks, also where two such expressions are applied in turn; what
holds for all ranks of those holds for all. Of anything else nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator

from advisor.ir.spmd.ranks import Communicator, Partner, PartnerKind
from advisor.ir.spmd.steps import Branch, Call, Communicate, Step, Unknown, walk
from costdb.expr import Expr, ExprError, equal, evaluate, free_symbols, logical_not, num
from costdb.expr.functions import Comparison, Conditional
from costdb.expr.nodes import Add, Mod, Mul, Num, Sym, add, multiply

MOST_CONSTANT = 3
"""The largest constant beside a rank."""

TRIED_SIZES = range(1, 4 * MOST_CONSTANT + 6)
"""Numbers of ranks that show what any number of ranks does: both ends twice, and two parities."""


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
    if root.value > MOST_CONSTANT:
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

    None where these do not show what it is elsewhere, or it has no value somewhere.
    """
    if expr is None or slope(expr, communicator) is None:
        return None
    try:
        return [int(evaluate(expr, place)) for place in places(communicator)]
    except (ExprError, ArithmeticError, ValueError):
        return None


def slope(expr: Expr, communicator: Communicator) -> int | None:
    """Return the factor of the own rank in an expression: -1, 0 or 1.

    None where it depends on a rank in any other way than said above.
    """
    rank, size = free_symbols(communicator.rank), free_symbols(communicator.size)
    if len(rank) != 1 or len(size) != 1 or free_symbols(expr) - rank - size:
        return None
    found = _linear(expr, communicator)
    return None if found is None or abs(found[0]) > 1 or found[1] > MOST_CONSTANT else found[0]


def _linear(expr: Expr, communicator: Communicator) -> tuple[int, int] | None:
    """Return the factor of the own rank, and how large the constants beside it are together."""
    match expr:
        case Num(value=value):
            return (0, abs(value)) if isinstance(value, int) else None
        case Sym():
            return int(expr == communicator.rank), 0
        case Add(terms=terms, constant=constant) if isinstance(constant, int):
            parts = [_linear(term, communicator) for term in terms]
            known = [part for part in parts if part is not None]
            if len(known) < len(parts):
                return None
            factor = sum(one for one, _ in known)
            return factor, abs(constant) + sum(beside for _, beside in known)
        case Mul(factors=(factor,), coefficient=1 | -1 as sign):
            found = _linear(factor, communicator)
            return None if found is None else (int(sign) * found[0], found[1])
        case Mod(dividend=inner, divisor=divisor) if divisor in (communicator.size, num(2)):
            found = _linear(inner, communicator)
            if found is None or abs(found[0]) > 1:
                return None
            return found if divisor == communicator.size else (0, max(found[1], 1))
        case Comparison(left=left, right=right):
            found = _linear(add((left, multiply((num(-1), right)))), communicator)
            if found is None or abs(found[0]) > 1 or found[1] > MOST_CONSTANT:
                return None
            return 0, 1
        case Conditional(test=test, then=then, orelse=orelse):
            parts = [_linear(part, communicator) for part in (test, then, orelse)]
            if any(part is None or abs(part[0]) > 1 for part in parts):
                return None
            (_, _), one, other = (part for part in parts if part is not None)
            return (one[0], max(one[1], other[1])) if one[0] == other[0] else None
        case _:
            return None


def partners(partner: Partner | None, communicator: Communicator) -> list[int] | None:
    """Return whom a partner means at all `places`."""
    if partner is None or partner.kind is not PartnerKind.RANK or partner.may_be_nobody:
        return None
    return follow(partner.rank, communicator)
