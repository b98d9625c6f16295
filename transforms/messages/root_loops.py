"""Roots that receive from one rank after the other, or send to one after the other.

What the root does with all ranks, and each of them with it, is one collective:

======== ============================================ ===========
root     what                                         collective
======== ============================================ ===========
receives the piece that its rank tells                `Gather`
receives pieces whose senders tell their lengths      `Gatherv`
receives one buffer, which it copies to such a piece  `Gather`
receives one buffer, which it adds to another         `Reduce`
sends    the piece that the rank tells                `Scatter`
sends    the same to all                              `Bcast`
======== ============================================ ===========
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from advisor.ir.spmd.memory import View
from advisor.ir.spmd.payloads import Payload, PayloadKind
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Branch, Communicate, Compute, Copy, Loop, Op, Step, Visit, walk
from costdb.expr import Expr, ExprError, equal, free_symbols, logical_not, num, substitute, sym
from costdb.expr.nodes import Num
from costdb.records import dataclass, replace
from transforms.kit.memory import (
    by_rank,
    is_counted,
    may_be_written,
    plain_array,
    same_memory,
    symbols_of,
)
from transforms.kit.names import BASE, is_name, is_simple, is_uniform, words
from transforms.kit.programs import collective, offer
from transforms.kit.ranks import named_rank, only_communication, root_arms, same_communicator
from transforms.kit.rewrite import in_place_of, starts_line, stretch, together

ROOT = num(0)
_COLLECTED = (
    "the same elements come to the same places, and both branches show that every rank makes the"
    " call; a collective has to come in the same order on all ranks"
)
_ADDED = (
    "the same terms are added, in another order: floating-point sums agree to rounding; the root's"
    " own part is one of the terms"
)


@dataclass(frozen=True, slots=True)
class _Ends:
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

    @property
    def gathers(self) -> bool:
        """Whether the root receives."""
        return self.root.op is Op.RECV


_Found = tuple[Communicate, tuple[str, ...]]
"""A collective, and its arguments on the root and elsewhere: none where they cannot be written."""


def root_loops(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield the collectives that loops of rank 0 over all other ranks stand for."""
    for visit in function.visits():
        # the loop over ranks is one itself, so that these count outside of other loops, too
        ends = _ends(visit, visit.step) if isinstance(visit.step, Branch) else None
        found = None if ends is None else _collective(program, ends)
        if ends is not None and found is not None:
            yield _proposal(program, function, ends, *found)


def _proposal(
    program: Program, function: SpmdFunction, ends: _Ends, call: Communicate, texts: tuple[str, ...]
) -> ProgramProposal:
    branch, loop, context = ends.branch, ends.loop, program.context
    edits = None
    if (
        texts
        and program.mpi_module is not None
        and is_simple(ends.root, program)
        and is_simple(ends.other, program)
        and all(step == ends.root or isinstance(step, Branch) for step in loop.body)
        and starts_line(loop.span, context)
    ):
        places = (stretch(loop.span, ends.root.statement), ends.other.statement)
        methods = (f"{end.receiver}.{call.method}" for end in (ends.root, ends.other))
        edits = together(
            *(
                in_place_of(place, [f"{method}({text}, root=0)"], context)
                for place, method, text in zip(places, methods, texts, strict=True)
            )
        )

    def changed(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(call if step in (loop, ends.other) else step for step in steps)

    before: tuple[Step, ...] = (branch,)
    after: tuple[Step, ...]
    after = (replace(branch, then=changed(branch.then), orelse=changed(branch.orelse)),)
    if call.pickled or call.varying:
        # branch and loop do more than messages: a message is held against its part of the call
        alone = ends.other if ends.gathers else ends.root
        before, after = (replace(loop, body=(alone,)),), (call,)
    does = f"let one `{call.method}` {'receive from' if ends.gathers else 'send to'} all ranks,"
    does += " not a loop over them"
    if call.op is Op.REDUCE:
        does = "let `Reduce` add up what the root receives and adds one by one"
    return offer(
        function,
        ends.visit,
        ends.root.span,
        does,
        "the root handles one message after the other, and the time grows with the number of ranks",
        before,
        after,
        _ADDED if call.op is Op.REDUCE else _COLLECTED,
        edits,
    )


# --- which collective ---------------------------------------------------------------------------


def _collective(program: Program, ends: _Ends) -> _Found | None:
    if ends.root.pickled:
        return _pickled(program, ends)
    one, other = (ends.root.receive, ends.other.send)
    if not ends.gathers:
        one, other = (ends.root.send, ends.other.receive)
    pieces, single = plain_array(one), plain_array(other)
    if pieces is None or single is None or one is None or other is None:
        return None
    if one.dtype != other.dtype:
        return None
    if one.count != other.count:
        return _uneven(program, ends, one, other) if ends.gathers else None
    if ends.loop.variable in symbols_of(pieces):
        return _pieces(program, ends, pieces, one, other)
    if ends.gathers:
        return _handled(program, ends, one, other)
    if _varies(program, ends, one):
        return None
    return _call(ends, Op.BCAST, one, None), (one.text, other.text)


def _call(ends: _Ends, op: Op, send: Payload | None, receive: Payload | None) -> Communicate:
    call = collective(ends.root, op, send, receive)
    return replace(call, root=ROOT, operation="SUM" if op is Op.REDUCE else None)


def _pieces(
    program: Program, ends: _Ends, view: View, pieces: Payload, single: Payload
) -> _Found | None:
    size = ends.root.communicator.size
    whole = by_rank(view, ends.loop.variable, ends.partner, size)
    if whole is None or whole.region is None:
        return None
    base, extents = BASE.fullmatch(pieces.text), view.buffer.extents
    carried = replace(pieces, view=whole, count=whole.count)
    texts: tuple[str, ...] = ()
    if base is not None and extents is not None and whole.region[0].count == extents[0]:
        texts = (f"{program.mpi_module}.IN_PLACE, {base[1]}", f"{single.text}, None")
        if not ends.gathers:
            texts = (f"{base[1]}, {program.mpi_module}.IN_PLACE", f"None, {single.text}")
    if ends.gathers:
        return _call(ends, Op.GATHER, single, carried), texts
    return _call(ends, Op.SCATTER, carried, single), texts


def _handled(program: Program, ends: _Ends, received: Payload, sent: Payload) -> _Found | None:
    """Return what a root gathers that adds what comes to an array, or copies it to its place."""
    body, view = ends.loop.body, received.view
    assert view is not None
    if len(body) != 2 or body[0] != ends.root:
        return None
    match body[1]:
        case Compute(operation="add", target=View() as total, reads=(_, _) as terms):
            if all(any(same_memory(term, one) for term in terms) for one in (view, total)):
                summed = replace(received, view=total, text=total.text)
                return _call(ends, Op.REDUCE, sent, summed), ()
        case Copy(target=target, source=source, allocates=False):
            alike = (target.count, target.dtype) == (sent.count, sent.dtype)
            plain = source.is_whole and not (target.transposed or target.flat)
            if alike and plain and same_memory(source, view):
                return _pieces(program, ends, target, replace(received, view=target), sent)
    return None


def _uneven(program: Program, ends: _Ends, pieces: Payload, sent: Payload) -> _Found | None:
    """Return a gather of pieces of different lengths, where the sender tells its own."""
    assert sent.count is not None and ends.root.source is not None
    index = ends.root.source.text
    if not (is_name(index) and re.search(rf"\b{index}\b", pieces.text)):
        return None  # nothing shows that each piece has a place of its own
    own = free_symbols(ends.other.communicator.rank)
    lengths = free_symbols(sent.count) - own
    if not own & free_symbols(sent.count) or not is_uniform(program, map(sym, lengths)):
        return None
    return replace(_call(ends, Op.GATHER, sent, None), method="Gatherv", varying=True), ()


def _pickled(program: Program, ends: _Ends) -> _Found | None:
    """Return the lower-case collective that pickled messages of a known kind stand for."""
    payload = ends.other.send if ends.gathers else ends.root.send
    if payload is None or payload.kind not in (PayloadKind.ARRAY, PayloadKind.SCALAR):
        return None
    if payload.count is None or (not ends.gathers and payload.view is None):
        return None  # a number may be another one for each rank
    op, sent = Op.GATHER, payload
    if not ends.gathers:
        assert payload.view is not None
        varies = ends.loop.variable in symbols_of(payload.view) or _varies(program, ends, payload)
        op = Op.SCATTER if varies else Op.BCAST
    if op is Op.SCATTER:
        sent = Payload(
            PayloadKind.OBJECT,
            payload.text,
            payload.span,
            parts=(payload,),
            length=ends.root.communicator.size,
        )
    return replace(_call(ends, op, sent, None), method=op.value), ()


def _varies(program: Program, ends: _Ends, sent: Payload) -> bool:
    """Return whether what a root sends may be another thing for each rank.

    It is named by the index of the loop, or made or written in the loop.
    """
    header = program.context.lines[ends.loop.span.start_line - 1]
    if words(sent.text) & words(header.partition(" in ")[0]):
        return True
    return sent.view is None or any(
        may_be_written(visit.step, sent.view) for visit in walk(ends.loop.body, into_calls=True)
    )


# --- which messages meet ------------------------------------------------------------------------


def _ends(visit: Visit, branch: Branch) -> _Ends | None:
    """Return a root's loop over all other ranks, and what those do for it."""
    for arm, other_arm in ((branch.then, branch.orelse), (branch.orelse, branch.then)):
        other, inner = only_communication(other_arm), only_communication(arm)
        if other is None or inner is None or other not in other_arm:
            continue
        if root_arms(branch, inner.communicator, ROOT) != (arm, other_arm):
            continue
        for loop in arm:
            partner = _over_others(loop, inner) if isinstance(loop, Loop) else None
            if (
                isinstance(loop, Loop)
                and partner is not None
                and _meet(inner, other, loop, partner)
            ):
                return _Ends(visit, branch, loop, inner, other, partner)
    return None


def _over_others(loop: Loop, inner: Communicate) -> Expr | None:
    """Return the partner in a loop in which a message goes to, or comes from, every other rank."""
    if not is_counted(loop) or inner.op not in (Op.SEND, Op.RECV):
        return None
    rank = named_rank(inner.dest if inner.op is Op.SEND else inner.source)
    offset = None if rank is None else rank - sym(loop.variable)
    if rank is None or not isinstance(offset, Num):
        return None
    reached, size = (loop.low + offset, loop.high + offset), inner.communicator.size
    if inner in loop.body:
        return rank if reached == (num(1), size) else None
    # `if i != rank`, in a loop over all ranks
    guards = [step for step in loop.body if isinstance(step, Branch)]
    if len(guards) != 1 or guards[0].then != (inner,) or guards[0].orelse:
        return None
    others = (ROOT, inner.communicator.rank)
    spared = [one for own in others for one in (equal(rank, own), equal(own, rank))]
    holds = guards[0].condition.value in [logical_not(one) for one in spared]
    return rank if holds and reached == (ROOT, size) else None


def _meet(root: Communicate, other: Communicate, loop: Loop, partner: Expr) -> bool:
    """Return whether the messages of both ends are each other's."""
    back, wanted = (other.source, Op.RECV) if root.op is Op.SEND else (other.dest, Op.SEND)
    if other.op is not wanted or named_rank(back) != ROOT or root.pickled != other.pickled:
        return False
    if not same_communicator(root.communicator, other.communicator):
        return False
    if not (root.blocking and other.blocking) or "status" in {*root.places, *other.places}:
        return False
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
