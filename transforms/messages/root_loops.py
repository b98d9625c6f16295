"""Roots that receive from one rank after the other, or send to one after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from advisor.finding import Applicability
from advisor.ir.proposal import Legality
from advisor.ir.spmd.memory import At, Contiguity, Index, Part, View, Whole, contiguity
from advisor.ir.spmd.payloads import Payload, PayloadKind
from advisor.ir.spmd.program import Program, SpmdFunction
from advisor.ir.spmd.proposal import ProgramProposal
from advisor.ir.spmd.steps import (
    Branch,
    Communicate,
    Compute,
    Copy,
    Op,
    Step,
)
from advisor.source import Edit, Span
from costdb.expr import free_symbols, sym
from transforms.messages.root_ends import ROOT, RootEnds, root_ends, varies
from transforms.programs.spmd_calls import comments_within, is_name, is_simple, is_uniform
from transforms.programs.views import same_memory

_BASE = re.compile(r"([\w.]+)\s*\[.*\]", re.DOTALL)
_COLLECTED = (
    "the same elements come to the same places, and both branches show that every rank makes the"
    " call; a collective has to come in the same order on all ranks"
)


def root_loops(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield the collectives that loops of rank 0 over all other ranks stand for."""
    for visit in function.visits():
        # the loop over ranks is one itself, so that these count outside of other loops, too
        if not isinstance(visit.step, Branch):
            continue
        ends = root_ends(visit, visit.step)
        if ends is not None:
            yield from _proposals(program, function, ends)


def _proposals(
    program: Program, function: SpmdFunction, ends: RootEnds
) -> Iterator[ProgramProposal]:
    if ends.root.pickled:
        yield from _pickled(program, function, ends)
        return
    pieces = ends.root.receive if ends.root.op is Op.RECV else ends.root.send
    single = ends.other.send if ends.root.op is Op.RECV else ends.other.receive
    if not _is_plain(pieces) or not _is_plain(single):
        return
    assert pieces is not None and single is not None
    assert pieces.view is not None and single.view is not None
    if pieces.dtype != single.dtype:
        return
    if pieces.count != single.count:
        if ends.root.op is Op.RECV:
            yield from _uneven(program, function, ends, pieces, single)
        return
    if ends.loop.variable not in _symbols(pieces.view):
        if ends.root.op is Op.SEND:
            if varies(program, ends, pieces):
                return
            yield from _broadcast(program, function, ends, pieces, single)
        else:
            yield from _sum(function, ends, pieces, single)
            yield from _unpacked(program, function, ends, pieces, single)
        return
    whole = _union(pieces.view, ends)
    if whole is None or contiguity(whole) is not Contiguity.YES:
        return
    yield from _pieces(program, function, ends, whole, pieces, single)


def _is_plain(payload: Payload | None) -> bool:
    """Return whether a payload is an array as it stands, of known type and size."""
    return (
        payload is not None
        and payload.kind is PayloadKind.ARRAY
        and payload.view is not None
        and payload.view.region is not None
        and not (payload.described or payload.view.transposed or payload.view.flat)
        and payload.datatype is None
        and payload.dtype is not None
        and payload.count is not None
    )


def _symbols(view: View) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for index in view.region or ():
        match index:
            case At(index=place):
                found |= free_symbols(place)
            case Part(low=low, high=high):
                found |= free_symbols(low) | free_symbols(high)
            case Whole():
                pass
    return found


def _union(view: View, ends: RootEnds) -> View | None:
    """Return what the pieces of all ranks are together: from the first on, in order of ranks."""
    if not view.region:
        return None
    first, *others = view.region
    if any(not isinstance(index, Whole) for index in others):
        return None
    size = ends.root.communicator.size
    together: Index
    match first:
        case At(index=place) if place == ends.partner:
            together = Part(ROOT, size)
        case Part(low=low, step=1):
            length = first.count
            if ends.loop.variable in free_symbols(length) or low != length * ends.partner:
                return None
            together = Part(ROOT, size * length)
        case _:
            return None
    return replace(view, region=(together, *others))


def _written(ends: RootEnds, program: Program) -> bool:
    """Return whether both ends are statements that can be replaced as they stand."""
    context, span = program.context, ends.loop.span
    return (
        program.mpi_module is not None
        and is_simple(ends.root, program)
        and is_simple(ends.other, program)
        and all(step in (ends.root,) or isinstance(step, Branch) for step in ends.loop.body)
        and not context.lines[span.start_line - 1][: span.start_column].strip()
    )


def _legality(writable: bool) -> Legality:
    return Legality(Applicability.UNSAFE if writable else Applicability.DISPLAY, _COLLECTED)


def _called(ends: RootEnds, op: Op, send: Payload | None, receive: Payload | None) -> Communicate:
    return replace(
        ends.root,
        op=op,
        method=op.value.capitalize(),
        send=send,
        receive=receive,
        dest=None,
        source=None,
        root=ROOT,
        tag=None,
        operation="SUM" if op is Op.REDUCE else None,
    )


def _pieces(
    program: Program,
    function: SpmdFunction,
    ends: RootEnds,
    whole: View,
    pieces: Payload,
    single: Payload,
) -> Iterator[ProgramProposal]:
    gathers = ends.root.op is Op.RECV
    op = Op.GATHER if gathers else Op.SCATTER
    base = _BASE.fullmatch(pieces.text)
    assert whole.region is not None
    extents = pieces.view.buffer.extents if pieces.view is not None else None
    is_all = extents is not None and whole.region[0].count == extents[0]
    writable = base is not None and is_all and _written(ends, program)
    carried = replace(pieces, view=whole, count=whole.count)
    send, receive = (single, carried) if gathers else (carried, single)
    name = base[1] if base is not None else pieces.text
    calls = None
    if writable:
        at_root = f"{program.mpi_module}.IN_PLACE, {name}" if gathers else ""
        at_root = at_root or f"{name}, {program.mpi_module}.IN_PLACE"
        elsewhere = f"{single.text}, None" if gathers else f"None, {single.text}"
        method = op.value.capitalize()
        calls = (
            f"{ends.root.receiver}.{method}({at_root}, root=0)",
            f"{ends.other.receiver}.{method}({elsewhere}, root=0)",
        )
    does = "receive from" if gathers else "send to"
    yield _proposal(
        function,
        ends,
        f"let one `{op.value.capitalize()}` {does} all ranks, not a loop over them",
        _called(ends, op, send, receive),
        _legality(writable),
        calls,
        program,
    )


def _broadcast(
    program: Program, function: SpmdFunction, ends: RootEnds, sent: Payload, received: Payload
) -> Iterator[ProgramProposal]:
    writable = _written(ends, program)
    calls = None
    if writable:
        calls = (
            f"{ends.root.receiver}.Bcast({sent.text}, root=0)",
            f"{ends.other.receiver}.Bcast({received.text}, root=0)",
        )
    yield _proposal(
        function,
        ends,
        "let one `Bcast` send to all ranks, not a loop over them",
        _called(ends, Op.BCAST, sent, None),
        _legality(writable),
        calls,
        program,
    )


def _sum(
    function: SpmdFunction, ends: RootEnds, received: Payload, sent: Payload
) -> Iterator[ProgramProposal]:
    """Yield a reduction, where the root adds what comes to an array of its own."""
    at = ends.loop.body.index(ends.root) if ends.root in ends.loop.body else None
    if at is None or at + 2 != len(ends.loop.body):
        return
    added: Step = ends.loop.body[at + 1]
    if not isinstance(added, Compute) or added.operation != "add" or added.target is None:
        return
    view = received.view
    assert view is not None
    if len(added.reads) != 2 or not any(same_memory(one, view) for one in added.reads):
        return
    if not any(same_memory(one, added.target) for one in added.reads):
        return
    total = replace(received, view=added.target, text=added.target.text)
    yield _proposal(
        function,
        ends,
        "let `Reduce` add up what the root receives and adds one by one",
        _called(ends, Op.REDUCE, sent, total),
        Legality(
            Applicability.DISPLAY,
            "the same terms are added, in another order: floating-point sums agree to rounding;"
            " the root's own part is one of the terms",
        ),
        None,
        None,
    )


def _unpacked(
    program: Program, function: SpmdFunction, ends: RootEnds, received: Payload, sent: Payload
) -> Iterator[ProgramProposal]:
    """Yield a gather, where the root copies what came to the place of the rank it came from."""
    at = ends.loop.body.index(ends.root) if ends.root in ends.loop.body else None
    if at is None or at + 2 != len(ends.loop.body):
        return
    unpacking: Step = ends.loop.body[at + 1]
    if not isinstance(unpacking, Copy) or unpacking.allocates or received.view is None:
        return
    if not (same_memory(unpacking.source, received.view) and unpacking.source.is_whole):
        return
    target = unpacking.target
    if target.count != sent.count or target.dtype != sent.dtype:
        return
    whole = None if target.transposed or target.flat else _union(target, ends)
    if whole is not None and contiguity(whole) is Contiguity.YES:
        yield from _pieces(program, function, ends, whole, replace(received, view=target), sent)


def _uneven(
    program: Program, function: SpmdFunction, ends: RootEnds, pieces: Payload, sent: Payload
) -> Iterator[ProgramProposal]:
    """Yield a gather of pieces of different lengths, where the sender tells its own."""
    assert sent.count is not None and ends.root.source is not None
    index = ends.root.source.text
    if not (is_name(index) and re.search(rf"\b{index}\b", pieces.text)):
        return  # nothing shows that each piece has a place of its own
    own = free_symbols(ends.other.communicator.rank)
    lengths = free_symbols(sent.count) - own
    if not own & free_symbols(sent.count) or not is_uniform(program, map(sym, lengths)):
        return
    call = replace(_called(ends, Op.GATHER, sent, None), method="Gatherv", varying=True)
    proposal = _proposal(
        function,
        ends,
        "let one `Gatherv` receive from all ranks, not a loop over them",
        call,
        _legality(writable=False),
        None,
        None,
    )
    one_by_one = replace(ends.loop, body=(ends.other,))
    yield replace(proposal, before=(one_by_one,), after=(call,))


def _pickled(program: Program, function: SpmdFunction, ends: RootEnds) -> Iterator[ProgramProposal]:
    """Yield the lower-case collective that pickled messages of a known kind stand for."""
    gathers = ends.root.op is Op.RECV
    payload = ends.other.send if gathers else ends.root.send
    if payload is None or payload.kind not in (PayloadKind.ARRAY, PayloadKind.SCALAR):
        return
    if payload.count is None:
        return
    varying = payload.view is not None and ends.loop.variable in _symbols(payload.view)
    varying = varying or (not gathers and varies(program, ends, payload))
    if not gathers and payload.view is None:
        return  # a number that may be another one for each rank
    op = Op.GATHER if gathers else Op.SCATTER if varying else Op.BCAST
    sent = payload
    if op is Op.SCATTER:
        size = ends.root.communicator.size
        sent = Payload(
            PayloadKind.OBJECT, payload.text, payload.span, parts=(payload,), length=size
        )
    call = replace(_called(ends, op, sent, None), method=op.value)
    one_by_one = replace(ends.loop, body=(ends.other if gathers else ends.root,))
    does = "receive from" if gathers else "send to"
    proposal = _proposal(
        function,
        ends,
        f"let one `{op.value}` {does} all ranks, not a loop over them",
        call,
        _legality(writable=False),
        None,
        None,
    )
    yield replace(proposal, before=(one_by_one,), after=(call,))


def _proposal(
    function: SpmdFunction,
    ends: RootEnds,
    title: str,
    call: Communicate,
    legality: Legality,
    calls: tuple[str, str] | None,
    program: Program | None,
) -> ProgramProposal:
    edits = (
        tuple
        if calls is None or program is None
        else partial(_edits, ends, calls[0], calls[1], program)
    )
    return ProgramProposal(
        title=title,
        reason="the root handles one message after the other, and the time grows with the number"
        " of ranks",
        span=ends.root.span,
        function=function,
        before=(ends.branch,),
        after=(_without(ends, call),),
        legality=legality,
        loops=ends.visit.loops,
        edits=edits,
    )


def _without(ends: RootEnds, call: Communicate) -> Branch:
    """Return the branch with the call in the place of both ends."""

    def changed(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(call if s in (ends.loop, ends.other) else s for s in steps)

    return replace(ends.branch, then=changed(ends.branch.then), orelse=changed(ends.branch.orelse))


def _edits(ends: RootEnds, at_root: str, elsewhere: str, program: Program) -> tuple[Edit, ...]:
    loop, root, other = ends.loop.span, ends.root.statement, ends.other.statement
    context = program.context
    indent = context.lines[loop.start_line - 1][: loop.start_column]
    place = Span(loop.start_line, loop.start_column, root.end_line, root.end_column)
    kept = comments_within(place, program)
    return (
        Edit(place, f"\n{indent}".join([*kept, at_root])),
        Edit(other, elsewhere),
    )
