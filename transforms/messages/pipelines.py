"""Pipelines of ranks that pass on one row at a time: how many to pass on at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from advisor.finding import Applicability
from advisor.ir.proposal import Legality
from advisor.ir.spmd.memory import At, Part, View
from advisor.ir.spmd.payloads import Payload, PayloadKind
from advisor.ir.spmd.program import SpmdFunction
from advisor.ir.spmd.proposal import ProgramProposal
from advisor.ir.spmd.ranks import Partner, PartnerKind
from advisor.ir.spmd.steps import (
    Allocate,
    Branch,
    Communicate,
    Compute,
    Copy,
    Loop,
    LoopKind,
    Op,
    Step,
    Visit,
)
from costdb.expr import Expr, ceil_div, free_symbols, num
from costdb.expr.nodes import Num
from transforms.programs.rank_facts import same_communicator

PIECES = (4, 16, 64, 256)
"""Rows at once that are tried."""


def pipelines(function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield larger pieces for every loop that receives a row, works on it and passes it on."""
    for visit in function.visits():
        if isinstance(visit.step, Loop):
            yield from _larger(function, visit, visit.step)


def _larger(function: SpmdFunction, visit: Visit, loop: Loop) -> Iterator[ProgramProposal]:
    if loop.kind is not LoopKind.COUNTED or loop.step != 1 or loop.stride is not None:
        return
    found = _stages(loop)
    if found is None or loop.by_rank or loop.trips is None:
        return
    send, work = found
    assert send.send is not None and send.send.count is not None
    # the last rank starts when the first row has come through all others
    late = send.communicator.size - 1
    before = replace(loop, trips=loop.trips + late, body=(send, *work))
    for piece in PIECES:
        if isinstance(loop.trips, Num) and loop.trips.value < 2 * piece:
            continue
        rows = Loop(LoopKind.COUNTED, "", num(0), num(piece), 1, num(piece), work, loop.span)
        payload = replace(send.send, count=send.send.count * piece)
        turns = ceil_div(loop.trips, num(piece)) + late
        after = replace(loop, trips=turns, body=(replace(send, send=payload), rows))
        yield ProgramProposal(
            title=f"pass on {piece} rows at once along the pipeline, not each by itself",
            reason="every message costs a start-up time besides its bytes; larger pieces need"
            " fewer of them, but let the last rank start later",
            span=send.span,
            function=function,
            before=(before,),
            after=(after,),
            legality=Legality(
                Applicability.DISPLAY,
                "rows come in the same order, so many at once; both ends change together",
            ),
            loops=visit.loops,
            conditions=("no rank needs a row back from the next one before it goes on",),
        )


def _stages(loop: Loop) -> tuple[Communicate, tuple[Step, ...]] | None:
    """Return the send of a loop that receives, works and sends, in this order, and the work."""
    receive: Communicate | None = None
    send: Communicate | None = None
    work: list[Step] = []
    for step in loop.body:
        end = _end(step)
        if end is None and send is None and _is_work(step):
            work.append(step)
        elif end is not None and end.op is Op.RECV and receive is None and not work:
            receive = end
        elif end is not None and end.op is Op.SEND and send is None and work:
            send = end
        else:
            return None
    if send is None or receive is None:
        return None
    return (send, tuple(work)) if _is_passed_on(loop, send, receive) else None


def _end(step: Step) -> Communicate | None:
    """Return an end of a message, alone or where only some ranks have that neighbour."""
    if isinstance(step, Branch):
        if len(step.then) != 1 or step.orelse:
            return None
        (step,) = step.then
    if not isinstance(step, Communicate) or step.pickled or not step.blocking:
        return None
    return step


def _is_work(step: Step) -> bool:
    """Return whether a step works on its rank's arrays and does nothing else."""
    if isinstance(step, Loop):
        return all(_is_work(inner) for inner in step.body)
    return isinstance(step, Compute | Copy | Allocate)


def _is_passed_on(loop: Loop, send: Communicate, receive: Communicate) -> bool:
    """Return whether rows come from one neighbour and go to the opposite one."""
    if not same_communicator(send.communicator, receive.communicator):
        return False
    there = _apart(send.dest, send.communicator.rank)
    back = _apart(receive.source, receive.communicator.rank)
    if there is None or back is None or there != (back[0], -back[1]):
        return False
    payloads = (send.send, receive.receive)
    counts = [payload.count for payload in payloads if payload is not None]
    return (
        len(counts) == len(payloads)
        and counts[0] is not None
        and counts[0] == counts[1]
        and all(_is_row(payload, loop) for payload in payloads)
    )


def _apart(partner: Partner | None, rank: Expr) -> tuple[int | None, int] | None:
    """Return along which axis of a mesh a neighbour is, if it is one, and on which side."""
    if partner is None:
        return None
    if partner.kind is PartnerKind.NEIGHBOUR and partner.displacement in (1, -1):
        assert partner.displacement is not None
        return partner.axis, partner.displacement
    if partner.kind is PartnerKind.RANK and partner.rank is not None:
        difference = partner.rank - rank
        if isinstance(difference, Num) and difference.value in (1, -1):
            return None, int(difference.value)
    return None


def _is_row(payload: Payload | None, loop: Loop) -> bool:
    """Return whether a payload is another piece of an array in each iteration."""
    if payload is None or payload.kind is not PayloadKind.ARRAY or payload.view is None:
        return False
    if payload.count is None or loop.variable in free_symbols(payload.count):
        return False
    return loop.variable in _symbols(payload.view)


def _symbols(view: View) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for index in view.region or ():
        match index:
            case At(index=place):
                found |= free_symbols(place)
            case Part(low=low):
                found |= free_symbols(low)
            case _:
                pass
    return found
