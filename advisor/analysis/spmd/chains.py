"""Ranks that wait for one another: each receives from one neighbour, then sends to the other.

Such a chain runs one rank after the other, however many there are. It is looked for by deciding
the conditions of a block for every rank of a few small numbers of ranks, and only what is one for
all of them counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from advisor.ir.spmd.program import RANK, RANKS
from advisor.ir.spmd.ranks import Partner
from advisor.ir.spmd.steps import Branch, Call, Communicate, Leave, Op, Step, walk
from costdb.expr import Expr, ExprError, evaluate

_TRIED = (2, 3, 4, 5)
"""Numbers of ranks that are tried; conditions on odd and even ranks show within them."""

_TWO_SIDED = frozenset({Op.SEND, Op.RECV, Op.SENDRECV})


@dataclass(frozen=True, slots=True)
class Stage:
    """What one rank does: `before` it receives, `between`, and `after` it has sent."""

    before: tuple[Step, ...]
    between: tuple[Step, ...]
    after: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain of all ranks.

    Attributes
    ----------
    message : Communicate
        The send.
    begin : Stage
        Of the rank that waits for nobody; it does nothing before it receives.
    inner : Stage
        Of the ranks between the ends.
    end : Stage
        Of the last one, which sends nothing: all that follows its receive is `after`.
    upwards : bool
        From rank 0 to the last; else from the last to rank 0.
    """

    message: Communicate
    begin: Stage
    inner: Stage
    end: Stage
    upwards: bool


def chain_of(steps: tuple[Step, ...]) -> Chain | None:
    """Return the chain that a block is; None for any other."""
    found = {visit.step.op for visit in walk(steps, into_calls=True)
             if isinstance(visit.step, Communicate)}  # fmt: skip
    if not {Op.SEND, Op.RECV} <= found or Op.SENDRECV in found:
        return None
    for upwards in (True, False):
        chain = _directed(steps, upwards)
        if chain is not None:
            return chain
    return None


def _directed(steps: tuple[Step, ...], upwards: bool) -> Chain | None:
    ends: tuple[Stage, Stage] | None = None
    inner: Stage | None = None
    message: Communicate | None = None
    for ranks in _TRIED:
        order = range(ranks) if upwards else range(ranks - 1, -1, -1)
        stages = [_stage(steps, rank, ranks, place, upwards) for place, rank in enumerate(order)]
        if any(stage is None for stage in stages):
            return None
        known = [stage for stage in stages if stage is not None]
        pair = known[0][0], known[-1][0]
        if ends is None:
            ends = pair
        if pair != ends:
            return None
        for stage, sent in known[1:-1]:
            if inner is None:
                inner, message = stage, sent
            if stage != inner or sent is not message:
                return None
    if ends is None or inner is None or message is None:
        return None
    return Chain(message, ends[0], inner, ends[1], upwards)


def _stage(
    steps: tuple[Step, ...], rank: int, ranks: int, place: int, upwards: bool
) -> tuple[Stage, Communicate | None] | None:
    """Return what one rank does and its send; None where it is no link of a chain."""
    flat = list(_decided(steps, {RANK: rank, RANKS: ranks}))
    if any(step is None for step in flat):
        return None
    line = [step for step in flat if step is not None]
    talks = [
        (position, step)
        for position, step in enumerate(line)
        if isinstance(step, Communicate) and step.op in _TWO_SIDED
    ]
    towards = 1 if upwards else -1
    wanted: list[tuple[Op, int]] = []
    if place > 0:
        wanted.append((Op.RECV, rank - towards))
    if place < ranks - 1:
        wanted.append((Op.SEND, rank + towards))
    if len(talks) != len(wanted) or _talks_within(line):
        return None
    for (_, step), (op, partner) in zip(talks, wanted, strict=True):
        other = step.source if step.op is Op.RECV else step.dest
        here = {RANK: rank, RANKS: ranks}
        if step.op is not op or not step.blocking or _rank_of(other, here) != partner:
            return None
    received = talks[0][0] if place > 0 else -1
    sent = talks[-1][0] if place < ranks - 1 else received
    stage = Stage(
        tuple(line[: max(received, 0)]), tuple(line[received + 1 : sent]), tuple(line[sent + 1 :])
    )
    message = talks[-1][1] if place < ranks - 1 else None
    return stage, message


def _talks_within(line: list[Step]) -> bool:
    """Return whether a step that holds others sends or receives."""
    return any(
        isinstance(visit.step, Communicate) and visit.step.op in _TWO_SIDED
        for step in line
        if not isinstance(step, Communicate)
        for visit in walk((step,), into_calls=True)
    )


def _decided(steps: tuple[Step, ...], here: dict[str, int]) -> Iterator[Step | None]:
    """Yield what a rank does, with branches decided; None once it may leave early."""
    for step in steps:
        match step:
            case Branch(condition=condition, then=then, orelse=orelse):
                value = _number(condition.value, here)
                if value is None:
                    if any(isinstance(v.step, Leave) for v in walk((step,))):
                        yield None
                    yield step
                else:
                    yield from _decided(then if value else orelse, here)
            case Call(body=body):
                yield from _decided(_without_return(body), here)
            case Leave():
                yield None
            case Communicate() if step.op in (Op.SEND, Op.RECV):
                partner = step.source if step.op is Op.RECV else step.dest
                other = _rank_of(partner, here)
                absent = other is not None and not 0 <= other < here[RANKS]
                if not (absent and partner is not None and partner.may_be_nobody):
                    yield step
            case _:
                yield step


def _without_return(body: tuple[Step, ...]) -> tuple[Step, ...]:
    last = body[-1] if body else None
    return body[:-1] if isinstance(last, Leave) and last.how == "return" else body


def _rank_of(partner: Partner | None, here: dict[str, int]) -> int | None:
    return None if partner is None else _number(partner.rank, here)


def _number(expr: Expr | None, here: dict[str, int]) -> int | None:
    if expr is None:
        return None
    try:
        return int(evaluate(expr, here))
    except (ExprError, ArithmeticError):
        return None
