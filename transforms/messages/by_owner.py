"""Loops that send item after item, each to the rank that it belongs to: one message for each rank.

There are more items than ranks, and nothing is received in the loop: what goes to one rank can be
collected, and sent together, be it by messages or to windows.
"""

from __future__ import annotations

from collections.abc import Iterator

from advisor.ir.spmd.payloads import PayloadKind, elements
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Call, Communicate, Leave, Loop, LoopKind, Op, Unknown, walk
from costdb.expr import ceil_div, minimum, num, sym
from costdb.expr.nodes import Num
from costdb.expr.polynomials import expand
from costdb.records import replace
from transforms.kit.names import argument, bound_in, words
from transforms.kit.programs import offer, sent_text
from transforms.messages.iterations import EPOCHS

_ONE_WAY = frozenset({Op.SEND, Op.PUT, Op.ACCUMULATE})
_PARTNERS = ("dest", "target_rank")


def by_owner(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield one message for each rank in the place of one for each item."""
    for visit in function.visits():
        loop = visit.step
        if not isinstance(loop, Loop) or loop.trips is None or loop.timing:
            continue
        step = _only_sent(loop)
        if step is None or step.send is None or loop.kind is LoopKind.THREADS:
            continue
        size, partners = step.communicator.size, (argument(step, n, program) for n in _PARTNERS)
        if not words(" ".join(filter(None, partners))) & bound_in(program, loop):
            continue
        rank = None if step.dest is None else step.dest.rank
        if (
            loop.variable
            and rank is not None
            and isinstance(expand(rank - sym(loop.variable)), Num)
        ):
            continue  # one for each rank
        each = ceil_div(loop.trips, size)
        many = replace(step.send, view=None, count=elements(step.send) * each)
        if step.pickled:
            listed = replace(step.send, kind=PayloadKind.OBJECT, parts=(step.send,), length=each)
            many = replace(listed, view=None, count=None)
        trips = minimum(size, loop.trips)
        ranks = replace(loop, variable="", low=num(0), high=trips, trips=trips, by_rank=False)
        ranks = replace(ranks, kind=LoopKind.COUNTED, step=1, stride=None)
        yield offer(
            function,
            visit,
            step.span,
            f"collect `{sent_text(step)}` for each rank, and call `{step.method}` once for it",
            "every call costs its start-up time, however little it carries, and a call from Python",
            (replace(loop, body=(step,)),),
            (replace(ranks, body=(replace(step, send=many),)),),
            "the same items come to the same ranks; nothing is received in between that others wait"
            " for",
            "both ends change: what comes is several items then, or was added up before",
        )


def _only_sent(loop: Loop) -> Communicate | None:
    """Return the call of a loop that sends, if nothing else communicates there."""
    found: list[Communicate] = []
    for visit in walk(loop.body):
        step = visit.step
        if isinstance(step, Leave | Unknown):
            return None
        inside = [one.step for one in walk((step,), into_calls=True) if isinstance(step, Call)]
        inside = inside or [step]
        talks = [one for one in inside if isinstance(one, Communicate) and one.op not in EPOCHS]
        if talks and (visit.loops or talks != [step]):
            return None
        found += talks
    if len(found) != 1 or found[0].op not in _ONE_WAY or found[0].receive is not None:
        return None
    return found[0]
