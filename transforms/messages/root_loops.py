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

import ast
import re
from collections.abc import Iterator

from advisor.ir.spmd.memory import View
from advisor.ir.spmd.payloads import Payload, PayloadKind
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import (
    Branch,
    Communicate,
    Compute,
    Copy,
    Leave,
    Loop,
    Op,
    Step,
    Visit,
    walk,
)
from advisor.source import Edit, Span
from costdb.expr import Expr, ExprError, equal, free_symbols, logical_not, num, substitute, sym
from costdb.expr.nodes import Num
from costdb.records import dataclass, replace
from transforms.kit.memory import (
    SENDABLE,
    by_rank,
    is_counted,
    may_be_written,
    new_array,
    payload_of,
    plain_array,
    same_memory,
    symbols_of,
)
from transforms.kit.names import BASE, argument, bound_in, is_name, is_simple, is_uniform, words
from transforms.kit.programs import collective, offer
from transforms.kit.ranks import named_rank, only_communication, root_arms, same_communicator
from transforms.kit.rewrite import (
    Edits,
    before,
    comments_within,
    fresh_name,
    in_place_of,
    indent_at,
    span_of,
    starts_line,
    statement_at,
    stretch,
    together,
)

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
    edits = _edits_of_objects(program, ends, call) if ends.root.pickled else None
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
    if ends.root.pickled or call.varying:
        # branch and loop do more than messages: a message is held against its part of the call
        alone = ends.other if ends.gathers else ends.root
        before, after = (replace(loop, body=(alone,)),), (call,)
        if not call.pickled:
            number = Payload(PayloadKind.SCALAR, "shape", loop.span, dtype="int", count=num(1))
            shapes = replace(call, pickled=True, varying=False, send=number, method=call.op.value)
            after = (shapes, call)
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
    """Return the collective that pickled messages of a known kind stand for.

    It takes arrays as they are in memory, once their shapes have been told.
    """
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
    if payload.view is not None and payload.dtype in SENDABLE and payload.view.shape is not None:
        shape = payload.view.shape
        memory = payload_of(new_array("buffer", payload.dtype, shape, payload.span), payload.span)
        received = None if op is Op.BCAST else memory
        if op is not Op.BCAST:
            extents = (ends.root.communicator.size, *shape)
            whole = new_array("buffers", payload.dtype, extents, payload.span)
            whole_payload = payload_of(whole, payload.span)
            memory, received = (
                (memory, whole_payload) if op is Op.GATHER else (whole_payload, memory)
            )
        call = replace(_call(ends, op, memory, received), pickled=False, varying=op is not Op.BCAST)
        return replace(call, method=op.value.capitalize() + "v" * call.varying), ()
    if op is Op.SCATTER:
        sent = Payload(
            PayloadKind.OBJECT,
            payload.text,
            payload.span,
            parts=(payload,),
            length=ends.root.communicator.size,
        )
    return replace(_call(ends, op, sent, None), method=op.value), ()


# --- what is written in the place of pickled messages ---------------------------------------------


def _edits_of_objects(program: Program, ends: _Ends, call: Communicate) -> Edits | None:
    """Return the edits of both ends; None where they cannot be written."""
    context, root, other = program.context, ends.root, ends.other
    loop = statement_at(ends.loop.span, context)
    numpy = context.array_module
    if not isinstance(loop, ast.For) or loop.orelse or not starts_line(ends.loop.span, context):
        return None
    if loop.body[0].lineno == loop.lineno or (numpy is None and not call.pickled):
        return None
    place = span_of(loop, context.lines)
    if comments_within(root.span, context.source) or comments_within(other.span, context.source):
        return None
    dtype = f"dtype={call.send.dtype!r}" if call.send is not None else ""
    received = _received(program, other, call, dtype)
    comm, indent = root.receiver, indent_at(ends.loop.span, context)
    names = {n: fresh_name(n, context.identifiers) for n in ("pieces", "shapes", "sizes", "joined")}
    pieces, shapes, sizes, joined = names.values()
    text, none = argument(root if not ends.gathers else other, "obj", program), "None, root=0"
    if text is None:
        return None
    ahead: list[str] = []
    behind: list[str] = []
    at_call: str
    others: list[str] | None
    if ends.gathers:
        source = argument(root, "source", program)
        others = _alone(program, other)
        if call.pickled:
            ahead, at_call = [f"{pieces} = {comm}.gather({none})"], f"{pieces}[{source}]"
            sent = [f"{other.receiver}.gather({text}, root=0)"]
        else:
            ahead = [
                f"{shapes} = {comm}.gather({none})",
                f"{sizes} = [0] + [int({numpy}.prod(one)) for one in {shapes}[1:]]",
                f"{joined} = {numpy}.empty(sum({sizes}), {dtype})",
                f"{comm}.Gatherv({numpy}.empty(0, {dtype}), ({joined}, {sizes}), root=0)",
                f"{pieces} = {numpy}.split({joined}, {numpy}.cumsum({sizes})[:-1])",
            ]
            at_call = f"{pieces}[{source}].reshape({shapes}[{source}])"
            sent = [
                f"{other.receiver}.gather({text}.shape, root=0)",
                f"{other.receiver}.Gatherv({numpy}.ascontiguousarray({text}), {none})",
            ]
        others = sent if others is not None else None
    elif call.op is Op.BCAST:
        others = received
        if len(loop.body) != 1 or not _alone(program, root):
            return None
        call_lines = [f"{comm}.bcast({text}, root=0)"]
        if not call.pickled:
            call_lines = [
                f"{comm}.bcast({text}.shape, root=0)",
                f"{comm}.Bcast({numpy}.ascontiguousarray({text}), root=0)",
            ]
        if others is None:
            return None
        return together(
            in_place_of(place, call_lines, context), in_place_of(other.statement, others, context)
        )
    else:
        others = received
        if not _alone(program, root):
            return None
        piece = text if call.pickled or not _is_changed(ends) else f"{numpy}.array({text})"
        at_call = f"{pieces}.append({piece})"
        ahead = [f"{pieces} = [None]"]
        behind = [f"{comm}.scatter({pieces}, root=0)"]
        if not call.pickled:
            own = f"{numpy}.empty(0, {dtype})"
            ahead = [f"{pieces} = [{own}]"]
            behind = [
                f"{comm}.scatter([one.shape for one in {pieces}], root=0)",
                f"{joined} = {numpy}.concatenate([one.ravel() for one in {pieces}])",
                f"{comm}.Scatterv(({joined}, [one.size for one in {pieces}]), {own}, root=0)",
            ]
    if others is None:
        return None

    def edits() -> tuple[Edit, ...]:
        first = "".join(f"{line}\n{indent}" for line in ahead)
        last = "".join(f"\n{indent}{line}" for line in behind)
        end = Span(place.end_line, place.end_column, place.end_line, place.end_column)
        return (
            Edit(before(place), first),
            Edit(root.span, at_call),
            *([Edit(end, last)] if last else []),
        )

    return together(edits, in_place_of(other.statement, others, context))


def _alone(program: Program, step: Communicate) -> list[str] | None:
    """Return nothing to add, where a statement is nothing but its call; else None."""
    alone = program.context.text(step.statement) == program.context.text(step.span)
    return [""] if alone and is_simple(step, program) else None


def _received(
    program: Program, step: Communicate, call: Communicate, dtype: str
) -> list[str] | None:
    """Return what receives on other ranks than the root, under the same name, or returned."""
    node, numpy = statement_at(step.statement, program.context), program.context.array_module
    op, comm, ended = call.op.value, step.receiver, list[str]()
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as value):
            pass
        case ast.Return(value=ast.Call() as value):
            name = fresh_name("received", program.context.identifiers)
            ended = [f"return {name}"]
        case _:
            return None
    if span_of(value, program.context.lines) != step.span:
        return None
    if call.pickled:
        return [f"{name} = {comm}.{op}(None, root=0)", *ended]
    given = name if call.op is Op.BCAST else f"None, {name}"
    return [
        f"{name} = {numpy}.empty({comm}.{op}(None, root=0), {dtype})",
        f"{comm}.{call.method}({given}, root=0)",
        *ended,
    ]


def _is_changed(ends: _Ends) -> bool:
    """Return whether what a root sends may be written to before its loop has ended."""
    sent = ends.root.send
    return (
        sent is None
        or sent.view is None
        or any(may_be_written(one.step, sent.view) for one in walk(ends.loop.body, into_calls=True))
    )


def _varies(program: Program, ends: _Ends, sent: Payload) -> bool:
    """Return whether what a root sends may be another thing for each rank.

    It is named by what the loop binds, or made or written in the loop.
    """
    if words(sent.text) & bound_in(program, ends.loop):
        return True
    return sent.view is None or any(
        may_be_written(visit.step, sent.view) for visit in walk(ends.loop.body, into_calls=True)
    )


# --- which messages meet ------------------------------------------------------------------------


def _ends(visit: Visit, branch: Branch) -> _Ends | None:
    """Return a root's loop over all other ranks, and what those do for it."""
    if branch.then and isinstance(branch.then[-1], Leave) and not branch.orelse:
        # who is not in the branch goes on behind it
        branch = replace(branch, orelse=visit.block[visit.position + 1 :])
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
    if any(isinstance(one.step, Leave) for one in walk(loop.body)):
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
