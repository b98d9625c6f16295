"""Which ranks do what, argued for any number of ranks.

Everything here is said of affine expressions ``a*rank + b*P + c`` of the own rank and the number of
ranks, ``P >= 1``, and of what programs make of them: a remainder by the number of ranks, and a
choice by a comparison of such expressions. Of anything else nothing is said. No rank is tried: an
affine expression over an interval of ranks has its extremes at the interval's ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from advisor.ir.spmd.steps import (
    Branch,
    Communicate,
    Communicator,
    ConditionKind,
    Leave,
    Partner,
    PartnerKind,
    Step,
    Visit,
    walk,
)
from costdb.expr import Expr, ExprError, equal, free_symbols, logical_not, num, substitute, sym
from costdb.expr.functions import Comparison, Conditional, Equal, Less
from costdb.expr.nodes import Mod, Num
from costdb.expr.polynomials import expand
from costdb.records import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Bound:
    """``ranks*P + constant``, where `ranks` is 0 or 1: a place counted from either end."""

    ranks: int
    constant: int

    def is_at_most(self, other: Bound, least: int = 1) -> bool:
        """Return whether this is no more than another bound, for any `least` ranks or more."""
        slope, gap = other.ranks - self.ranks, other.constant - self.constant
        return slope >= 0 and slope * least + gap >= 0


@dataclass(frozen=True, slots=True)
class Interval:
    """Ranks ``low <= rank < high``."""

    low: Bound
    high: Bound

    @property
    def least_ranks(self) -> int:
        """The fewest ranks of a program in which there is such a rank."""
        if self.high.ranks:
            low = 0 if self.low.ranks else self.low.constant
            return max(1, low + 1 - self.high.constant)
        return max(1, self.low.constant + 1)

    @property
    def is_empty(self) -> bool:
        """Whether no program has such a rank."""
        return self.high.is_at_most(self.low)

    @property
    def single(self) -> Bound | None:
        """The only rank, where there is just one."""
        one = Bound(self.low.ranks, self.low.constant + 1)
        return self.low if one == self.high else None


Ranks = tuple[Interval, ...]
"""Intervals that do not meet, in ascending order."""

FIRST, END = Bound(0, 0), Bound(1, 0)
ALL: Ranks = (Interval(FIRST, END),)


@dataclass(frozen=True, slots=True)
class _Affine:
    """``rank``, ``ranks`` and ``constant`` of ``rank*r + ranks*P + constant``."""

    rank: int
    ranks: int
    constant: int

    def at(self, bound: Bound, before: int = 0) -> Bound:
        """Return the value at a rank, or at one so many before it."""
        place = bound.constant - before
        ranks = self.ranks + self.rank * bound.ranks
        return Bound(ranks, self.constant + self.rank * place)


def _affine(expr: Expr, communicator: Communicator) -> _Affine | None:
    parts: list[int] = []
    rest = expr
    for symbol in (communicator.rank, communicator.size):
        slope = _slope(rest, symbol)
        if not isinstance(slope, Num) or not isinstance(slope.value, int):
            return None
        parts.append(slope.value)
        rest = expand(rest - symbol * slope.value)
    if not isinstance(rest, Num) or not isinstance(rest.value, int):
        return None
    return _Affine(parts[0], parts[1], rest.value)


def _slope(expr: Expr, symbol: Expr) -> Expr | None:
    """Return by how much an expression grows with a symbol; None where that cannot be said."""
    (name, *others) = free_symbols(symbol) or ("",)
    try:
        return substitute(expr, {name: symbol + 1}) - expr if name and not others else None
    except ExprError:
        return None


def ranks_where(condition: Expr | None, communicator: Communicator) -> Ranks | None:
    """Return the ranks on which a condition holds; None where that cannot be said.

    Parameters
    ----------
    condition : Expr or None
        1 where it holds and 0 elsewhere.
    communicator : Communicator
    """
    if not isinstance(condition, Comparison):
        return None
    if isinstance(condition, Equal) and isinstance(condition.left, Comparison):
        inside = ranks_where(condition.left, communicator)
        negated = condition.right == num(0)
        return other_ranks(inside) if inside is not None and negated else None
    found = _affine(condition.left - condition.right, communicator)
    if found is None or abs(found.rank) != 1:
        return None
    # rank*(r - edge): below the edge it is negative for rank 1, positive for -1
    edge = Bound(-found.ranks * found.rank, -found.constant * found.rank)
    if edge.ranks not in (0, 1):
        return None
    after = Bound(edge.ranks, edge.constant + 1)
    if isinstance(condition, Equal):
        return _kept(Interval(edge, after))
    reached = isinstance(condition, Less)
    if found.rank == 1:
        return _kept(Interval(FIRST, edge if reached else after))
    return _kept(Interval(after if reached else edge, END))


def _kept(one: Interval) -> Ranks | None:
    """Return an interval within the ranks there are; None where it may reach beyond them."""
    low = FIRST if one.low.is_at_most(FIRST) else one.low
    high = END if END.is_at_most(one.high) else one.high
    if high.is_at_most(low):
        return ()
    inside = FIRST.is_at_most(low) and high.is_at_most(END, Interval(low, high).least_ranks)
    return (Interval(low, high),) if inside else None


def other_ranks(ranks: Ranks) -> Ranks:
    """Return all ranks but some."""
    ends = [FIRST, *(end for one in ranks for end in (one.low, one.high)), END]
    pairs = zip(ends[::2], ends[1::2], strict=True)
    return tuple(one for low, high in pairs if not (one := Interval(low, high)).is_empty)


# --- partners -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Move:
    """A rank for each rank, ``(sign*rank + by) % P``; `by` may hold indices and sizes."""

    sign: int
    by: Expr

    def follows(self, other: Move, communicator: Communicator) -> bool:
        """Return whether going there after another move leads back to where one was."""
        if self.sign != other.sign:
            return False
        return modulo(self.by + other.by * self.sign, communicator) == num(0)


def modulo(expr: Expr, communicator: Communicator) -> Expr:
    """Return an expression without what it has of whole numbers of ranks."""
    slope = _slope(expr, communicator.size)
    if isinstance(slope, Num) and isinstance(slope.value, int):
        return expand(expr - communicator.size * slope.value)
    return expand(expr)


def move_of(expr: Expr | None, communicator: Communicator) -> Move | None:
    """Return where a partner is from the own rank, on all ranks, however many there are.

    None where that differs, or is not known.
    """
    found = set(moves_of(expr, communicator, there=True))
    (one, *others) = found or {None}
    return None if others else one


def moves_of(
    expr: Expr | None, communicator: Communicator, where: Ranks = ALL, *, there: bool
) -> Iterator[Move | None]:
    """Yield where a partner may be, for each branch that its expression has."""
    if expr is None:
        yield None
    elif isinstance(expr, Conditional):
        holds = ranks_where(expr.test, communicator)
        sides = (where, where)
        if holds is not None and where == ALL:
            sides = (holds, other_ranks(holds))
        for part, side in zip((expr.then, expr.orelse), sides, strict=True):
            if side:
                yield from moves_of(part, communicator, side, there=there)
    elif isinstance(expr, Mod) and expr.divisor == communicator.size:
        yield _plain_move(expr.dividend, communicator)
    else:
        inside = all(_is_rank(expr, one, communicator) for one in where)
        single = where[0].single if len(where) == 1 else None
        if there and not inside:
            yield None
        elif single is not None:
            own = communicator.size * single.ranks + single.constant
            at = substitute(expr, dict.fromkeys(free_symbols(communicator.rank), own))
            yield Move(1, modulo(at - own, communicator))
        else:
            yield _plain_move(expr, communicator)


def _plain_move(expr: Expr, communicator: Communicator) -> Move | None:
    slope = _slope(expr, communicator.rank)
    if slope is None or slope not in (num(1), num(-1)):
        return None
    by = expand(expr - communicator.rank * slope)
    if free_symbols(by) & free_symbols(communicator.rank):
        return None
    return Move(1 if slope == num(1) else -1, modulo(by, communicator))


def _is_rank(expr: Expr, one: Interval, communicator: Communicator) -> bool:
    """Return whether an affine expression is a rank on all ranks of an interval."""
    found = _affine(expr, communicator)
    if found is None:
        return False
    least = one.least_ranks
    ends = (found.at(one.low), found.at(one.high, before=1))
    last = Bound(1, -1)
    return all(FIRST.is_at_most(end, least) and end.is_at_most(last, least) for end in ends)


def named_rank(partner: Partner | None) -> Expr | None:
    """Return the rank that a partner surely is; None for neighbours of meshes and for nobody."""
    if partner is None or partner.kind is not PartnerKind.RANK or partner.may_be_nobody:
        return None
    return partner.rank


def _is_shift(step: Communicate) -> bool:
    """Return whether every rank receives what the rank that it names sends to it.

    Partners may depend on the own rank and the number of ranks: any other name may stand for
    another value on each rank.
    """
    dest, source = step.dest, step.source
    if dest is None or source is None or dest.kind is not source.kind:
        return False
    there = move_of(dest.rank, step.communicator)
    back = move_of(source.rank, step.communicator)
    if there is None or back is None or not there.follows(back, step.communicator):
        return False
    return free_symbols(there.by) | free_symbols(back.by) <= free_symbols(step.communicator.size)


def is_exchange(step: Communicate) -> bool:
    """Return whether ranks send so far on as they receive from so far back, but at open ends."""
    dest, source, own = step.dest, step.source, step.communicator.rank
    if dest is None or source is None or dest.kind is not source.kind:
        return False
    if dest.displacement is not None and source.displacement is not None:
        return (dest.axis, dest.displacement) == (source.axis, -source.displacement)
    if dest.rank is None or source.rank is None:
        return False
    if not (dest.may_be_nobody and source.may_be_nobody):
        return _is_shift(step)
    there, back = expand(dest.rank - own), expand(source.rank - own)
    return isinstance(there, Num) and there == -back


# --- roots and blocks ---------------------------------------------------------------------------


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
    holds, own = ranks_where(value, communicator), ranks_where(sides[0], communicator)
    if holds is None or own is None:
        return None
    if holds == own:
        return branch.then, branch.orelse
    return (branch.orelse, branch.then) if holds == other_ranks(own) else None


def root_only(visit: Visit, communicator: Communicator, root: Expr) -> bool:
    """Return whether only the root gets to a step."""
    for branch, first in visit.branches:
        arms = root_arms(branch, communicator, root)
        if arms is not None and arms[0] == (branch.then if first else branch.orelse):
            return True
    return False


def on_all_ranks(visits: Iterable[Visit], visit: Visit) -> bool:
    """Return whether a collective is called here by all ranks, not by some of them elsewhere.

    Parameters
    ----------
    visits : iterable of Visit
        All of its function's.
    visit : Visit
        Where it stands.
    """
    for branch, first in visit.branches:
        if branch.condition.kind is ConditionKind.RANK:
            return False
        others = walk(branch.orelse if first else branch.then, into_calls=True)
        if any(isinstance(one.step, Communicate) for one in others):
            return False
    # some may have left before, but not by leaving another loop
    return not any(
        isinstance(one.step, Leave)
        and one.step.span < visit.step.span
        and (one.step.how not in ("break", "continue") or set(one.loops[-1:]) <= set(visit.loops))
        and any(branch.condition.kind is ConditionKind.RANK for branch, _ in one.branches)
        for one in visits
    )


def same_communicator(one: Communicator, other: Communicator) -> bool:
    """Return whether two communicators are one, wherever they are first seen."""
    return (one.text, one.size, one.rank) == (other.text, other.size, other.rank)


def own_block(low: Expr, high: Expr, rank: Expr) -> Expr | None:
    """Return the length of a block, if bounds are those of the own one: all are as long.

    Blocks lie one after the other in the order of ranks.
    """
    (own, *others) = free_symbols(rank) or ("",)
    if others or own not in free_symbols(low):
        return None
    try:
        length = substitute(high, {own: num(0)})
    except ExprError:
        return None
    place = sym(own)
    exact = expand(low - length * place) == num(0) == expand(high - length * (place + 1))
    return length if exact else None
