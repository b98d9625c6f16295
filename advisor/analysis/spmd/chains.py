"""Ranks that wait for one another: each receives from one neighbour, then sends to the other.

Such a chain runs one rank after the other, however many there are. It is looked for by deciding
the conditions of a block for every rank of a few small numbers of ranks, and only what is one for
all of them counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from advisor.ir.spmd.program import RANK, RANKS, number_of
from advisor.ir.spmd.steps import Branch, Call, Communicate, Leave, Op, Step, walk
from costdb.records import dataclass

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
    visits = walk(steps, into_calls=True)
    found = {visit.step.op for visit in visits if isinstance(visit.step, Communicate)}
    if not {Op.SEND, Op.RECV} <= found or Op.SENDRECV in found:
        return None
    return _directed(steps, upwards=True) or _directed(steps, upwards=False)


Link = tuple[Stage, Communicate | None]
"""What one rank does, and what it sends."""


def _directed(steps: tuple[Step, ...], *, upwards: bool) -> Chain | None:
    ends: list[tuple[Stage, Stage]] = []
    inner: list[Link] = []
    for ranks in _TRIED:
        order = range(ranks) if upwards else range(ranks - 1, -1, -1)
        tried = (_link(steps, rank, ranks, place, upwards) for place, rank in enumerate(order))
        links = [link for link in tried if link is not None]
        if len(links) < ranks:
            return None
        ends.append((links[0][0], links[-1][0]))
        inner += links[1:-1]
    (begin, end), (stage, message) = ends[0], inner[0]
    alike = all(one == ends[0] for one in ends) and all(one == inner[0] for one in inner)
    return Chain(message, begin, stage, end, upwards) if alike and message is not None else None


def _link(steps: tuple[Step, ...], rank: int, ranks: int, place: int, upwards: bool) -> Link | None:
    """Return what one rank does and its send; None where it is no link of a chain."""
    here = {RANK: rank, RANKS: ranks}
    decided = list(_decided(steps, here))
    line = [step for step in decided if step is not None]
    towards = 1 if upwards else -1
    wanted: list[tuple[Op, int]] = []
    if place > 0:
        wanted.append((Op.RECV, rank - towards))
    if place < ranks - 1:
        wanted.append((Op.SEND, rank + towards))
    talks = [(at, step) for at, step in enumerate(line) if _talks(step)]
    if len(line) < len(decided) or len(talks) != len(wanted) or any(map(_talks_within, line)):
        return None
    for (_, step), (op, partner) in zip(talks, wanted, strict=True):
        if step.op is not op or not step.blocking or _partner_of(step, here) != partner:
            return None
    received = talks[0][0] if place > 0 else -1
    sent = talks[-1][0] if place < ranks - 1 else received
    stage = Stage(
        tuple(line[: max(received, 0)]), tuple(line[received + 1 : sent]), tuple(line[sent + 1 :])
    )
    return stage, talks[-1][1] if place < ranks - 1 else None


def _talks(step: Step) -> TypeGuard[Communicate]:
    return isinstance(step, Communicate) and step.op in _TWO_SIDED


def _talks_within(step: Step) -> bool:
    """Return whether a step that holds others sends or receives."""
    inside = walk((step,), into_calls=True)
    return any(visit.step is not step and _talks(visit.step) for visit in inside)


def _decided(steps: tuple[Step, ...], here: dict[str, int]) -> Iterator[Step | None]:
    """Yield what a rank does, with branches decided; None once it may leave early."""
    for step in steps:
        match step:
            case Branch(condition=condition, then=then, orelse=orelse):
                value = number_of(condition.value, here)
                if value is not None:
                    yield from _decided(then if value else orelse, here)
                    continue
                if any(isinstance(visit.step, Leave) for visit in walk((step,))):
                    yield None
                yield step
            case Call(body=(*body, Leave(how="return"))) | Call(body=body):
                yield from _decided(tuple(body), here)
            case Leave():
                yield None
            case Communicate(op=Op.SEND | Op.RECV):
                partner = step.source if step.op is Op.RECV else step.dest
                other = _partner_of(step, here)
                absent = other is not None and not 0 <= other < here[RANKS]
                if not (absent and partner is not None and partner.may_be_nobody):
                    yield step
            case _:
                yield step


def _partner_of(step: Communicate, here: dict[str, int]) -> int | None:
    partner = step.source if step.op is Op.RECV else step.dest
    return None if partner is None else number_of(partner.rank, here)
