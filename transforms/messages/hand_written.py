"""# ADV607 hand-written-collective

**What it does.** Finds messages that do by hand what one call does: a root that receives from one
rank after the other (`Gather`, or `Reduce` where it adds up) or sends to one after the other
(`Scatter`, `Bcast`), or piece by piece in whatever loops (`Gatherv`, `Scatterv`), messages of every
rank with every rank, one by one, in turns or begun at once, pickled too or by a gather to each
(`Alltoall`, `Allgather`), and a chain of blocking messages, or an exchange in turns, in which ranks
wait for others although what they send is ready (`Sendrecv`, of memory also where it was pickled).

**Why it costs.** A root that handles its messages one by one needs time in proportion to the
number of ranks, where a tree needs its logarithm, and each message is a call from Python. In a
chain the last rank gets its message after all others have theirs.

**Example**

```python
if rank == 0:
    for i in range(1, size):
        comm.Recv(whole[i], source=i)
else:
    comm.Send(mine, dest=0)
```

**Use instead**

```python
if rank == 0:
    comm.Gather(MPI.IN_PLACE, whole, root=0)
else:
    comm.Gather(mine, None, root=0)
```

Where a root does more with each piece, one call brings all of them first, and the loop goes through
what came. Pickled objects stay pickled: whether they need be is ADV601. Where nothing tells how
large these are, the finding has no factor, and says from how many ranks on it pays.

**When it stays quiet.** Task farms and whatever else receives from `ANY_SOURCE`; messages while
others of the function are under way; chains outside loops, which are set-up or output; exchanges
of two ranks where a clock is read, which may measure these; pieces that
are not in the order of ranks; branches that communicate besides; what a root makes anew, or picks
by its index, for each rank and which is no slice of one array; chains and loops that pass on what
they received; pieces of which the same loop brings answers; programs that would wait for ever as
they stand.

**Fix safety.** The same elements come to the same places. A collective is unsafe, because every
rank of the communicator has to call it, in the same order as all others: the two branches show
that they do, but not what other files do. Where nothing is written, the finding says why: messages
of all ranks, which were only tried, for 2 to 5 ranks, and sums are shown.

**Models used.** Lines (messages, collectives), and the interpreter's time for an iteration.

**References.** Algorithms of collective operations: any text on MPI; the standard on `MPI_IN_PLACE`
and on deadlock in blocking exchanges.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import groupby

from advisor.ir.spmd.memory import (
    Payload,
    PayloadKind,
    View,
    elements,
    extent_of,
    unknown_count,
)
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import (
    Communicate,
    Compute,
    Copy,
    Loop,
    LoopKind,
    Op,
    Step,
    Visit,
    walk,
)
from advisor.ir.values import Point
from advisor.source import Edit, Span
from costdb.expr import free_symbols, num, sym
from costdb.expr.nodes import Num
from costdb.records import dataclass, replace
from transforms.kit import memory
from transforms.kit.names import BASE, argument, bound_in, is_name, is_simple, words
from transforms.kit.programs import ProgramRule, collective, instead, offer, sent_text
from transforms.kit.ranks import named_rank
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
    together,
)
from transforms.messages import message_loops
from transforms.messages.buffers import carried
from transforms.messages.patterns import End, Pattern, patterns
from transforms.messages.traced import traced

_REASON = (
    "the root handles one message after the other, and the time grows with the number of ranks"
)
_COLLECTED = (
    "the same elements come to the same places, and both branches show that every rank makes the"
    " call; a collective has to come in the same order on all ranks"
)
_EXCHANGED = (
    "the same pieces come to the same places; a collective has to come in the same order on all"
    " ranks"
)
_ADDED = (
    "the same terms are added, in another order: floating-point sums agree to rounding; the root's"
    " own part is one of the terms"
)


def propose(program: Program) -> Iterator[ProgramProposal]:
    """Yield the call that does what several messages do."""
    yield from _piece_by_piece(program)
    for function in program.functions:
        every = list(patterns(function))
        told = {end.step.span for one in every for end in (one.send, one.take)}
        for visit, step, loop, calls in traced(program, function):
            if step.span not in told:
                yield _of_all_ranks(function, visit, step, loop, calls)
        for _, group in groupby(every, lambda one: one.inner.loop):
            shared = list(group)
            each = [_at_root(program, one) for one in shared]
            found = each[0]
            if found is not None and len({one and one.call.op for one in each}) == 1:
                yield _instead_of_fan(program, function, shared[0], found, len(shared))


def _of_all_ranks(
    function: SpmdFunction,
    visit: Visit,
    step: Communicate,
    loop: Loop,
    calls: tuple[Communicate, ...],
) -> ProgramProposal:
    """Return the call that does what messages of all ranks do."""
    call = calls[0]
    title = f"let one `{call.method}` exchange `{sent_text(step)}` with all ranks"
    reason = (
        "in a loop each exchange waits for its partner to come to it; a collective has all"
        " messages under way, and costs one call from Python"
    )
    if call.op is Op.SENDRECV:
        buffers = " of memory as it is," * step.pickled
        title = f"exchange by `Sendrecv`,{buffers} not by messages that wait for one another"
        if step.op is Op.SENDRECV:
            title = "send all one way first, then all the other, not with one neighbour at a time"
        waits = "a rank waits for a message before it sends the next one"
        if free_symbols(loop.high):
            waits = "the last rank gets its message after all others, as each waits for one"
        reason = f"{waits}, although what it sends is ready; `Sendrecv` lets all go at once"
    return offer(
        function,
        visit,
        step.span,
        title,
        reason,
        (loop,),
        calls,
        _EXCHANGED,
        "what all ranks are sent has no name together"
        if call.op is not Op.SENDRECV
        else "at an end there is nobody, or other ranks take no part",
        conditions=("every rank knows how much comes from each",) * call.varying
        + ("every rank has lines of its own",) * (call.op is Op.SENDRECV),
    )


# --- which collective it is: by what is sent, and where it comes to ------------------------------


@dataclass(frozen=True, slots=True)
class _Instead:
    """The collective that a pattern stands for.

    Attributes
    ----------
    call : Communicate
    texts : tuple of str
        Its arguments, at the root and elsewhere, or everywhere; none where they cannot be written.
    added : Compute or None
        How a root adds up what comes, which the collective does as well.
    """

    call: Communicate
    texts: tuple[str, ...] = ()
    added: Compute | None = None


def _call(pattern: Pattern, op: Op, send: Payload | None, receive: Payload | None) -> Communicate:
    call = replace(collective(pattern.send.step, op, send, receive), blocking=True, places={})
    operation = "SUM" if op is Op.REDUCE else None
    return replace(call, mode="", root=pattern.root, operation=operation)


def _at_root(program: Program, pattern: Pattern) -> _Instead | None:
    """Return what messages between a root and all others come to.

    ====================================== =========
    root                                   collective
    ====================================== =========
    receives the piece that its rank tells `Gather`
    receives a buffer, added to another    `Reduce`
    sends the piece that the rank tells    `Scatter`
    sends the same to all                  `Bcast`
    ====================================== =========
    """
    if pattern.inner.step.pickled:
        return _of_objects(program, pattern)
    gathers = pattern.gathers
    sent, got = pattern.send.step.send, pattern.take.step.receive
    given, taken = memory.plain_array(sent), memory.plain_array(got)
    if sent is None or got is None or given is None or taken is None:
        return None
    if (sent.dtype, sent.count) != (got.dtype, got.count):
        return None
    mpi, inner, view = f"{program.mpi_module}.IN_PLACE", pattern.inner, taken if gathers else given
    pieces, payload = _pieces(inner, view), got if gathers else sent
    if pieces is None and gathers:
        added = _added(inner)
        target = None if added is None else added.target
        if target is None or (target.count, target.dtype) != (sent.count, sent.dtype):
            return None
        total = replace(got, view=target)
        return _Instead(_call(pattern, Op.REDUCE, sent, total), added=added)
    if pieces is None:
        if inner.loop is None or inner.loop.variable in memory.symbols_of(given):
            return None
        if _varies(program, inner, sent):
            return None
        return _Instead(_call(pattern, Op.BCAST, sent, None), (sent.text, got.text))
    text = _whole_text(inner, payload, pieces)
    whole = replace(payload, view=pieces, count=pieces.count)
    if gathers:
        texts = (f"{mpi}, {text}", f"{sent.text}, None") if text else ()
        return _Instead(_call(pattern, Op.GATHER, sent, whole), texts)
    texts = (f"{text}, {mpi}", f"None, {got.text}") if text else ()
    return _Instead(_call(pattern, Op.SCATTER, whole, got), texts)


def _pieces(end: End, view: View) -> View | None:
    """Return the pieces of all ranks together, if an end walks through them in their order."""
    if end.loop is None or end.partner is None or not view.region:
        return None
    first, variable, partner = view.region[0], end.loop.variable, end.partner
    if isinstance(first, Point) and first.at == partner:
        view, partner = (
            replace(view, region=(Point(sym(variable)), *view.region[1:])),
            sym(variable),
        )
    size = end.step.communicator.size
    if free_symbols(partner) != {variable}:
        return None
    return memory.by_rank(view, variable, partner, size)


def _whole_text(end: End, payload: Payload, whole: View) -> str | None:
    """Return all pieces, as Python: what they are of, or its beginning."""
    base, extents = BASE.fullmatch(payload.text.strip()), whole.buffer.extents
    if base is None or "." in base[1] or whole.region is None or extents is None:
        return None
    stop, size = extent_of(whole.region[0]), end.step.communicator.size
    if stop == extents[0]:
        return base[1]
    return f"{base[1]}[:{end.step.receiver}.Get_size()]" if stop == size else None


def _added(end: End) -> Compute | None:
    """Return how a root adds what comes to an array."""
    got, steps = end.step.receive, () if end.loop is None else end.loop.body
    if got is None or got.view is None or len(steps) != 2 or steps[0] != end.step:
        return None
    match steps[1]:
        case Compute(operation="add", target=View() as total, reads=(_, _) as terms) as added:
            if all(
                any(memory.same_memory(term, one) for term in terms) for one in (got.view, total)
            ):
                return added
    return None


def _of_objects(program: Program, pattern: Pattern) -> _Instead | None:
    """Return the lower-case collective that pickled messages of a known kind stand for.

    Whether it should take arrays as they are in memory is another question, and another rule's.
    """
    sent, gathers = pattern.send.step.send, pattern.gathers
    if sent is None:
        return None
    if _is_object(sent):
        if gathers:
            return _Instead(replace(_call(pattern, Op.GATHER, sent, None), method="gather"))
        # the same for all, where nothing else happens on the way
        loop = pattern.inner.loop
        node = None if loop is None else statement_at(loop.span, program.context)
        if loop is None or not isinstance(node, ast.For):
            return None
        messages = [one for one in walk(loop.body) if isinstance(one.step, Communicate)]
        if len(node.body) > len(messages) or not is_name(sent.text):
            return None  # made anew for each rank
        if words(sent.text) & bound_in(program, loop):
            return None
        return _Instead(replace(_call(pattern, Op.BCAST, sent, None), method="bcast"))
    if sent.kind not in (PayloadKind.ARRAY, PayloadKind.SCALAR):
        return None
    if sent.count is None or (not gathers and sent.view is None):
        return None  # a number may be another one for each rank
    if gathers:
        op = Op.REDUCE if _adds(program, pattern.inner) else Op.GATHER
    else:
        op = Op.SCATTER if _varies(program, pattern.send, sent) else Op.BCAST
    call = replace(_call(pattern, op, sent, None), method=op.value)
    if op is Op.SCATTER:
        size, kind = pattern.communicator.size, PayloadKind.OBJECT
        call = replace(call, send=Payload(kind, sent.text, sent.span, parts=(sent,), length=size))
    return _Instead(call)


def _is_object(sent: Payload | None) -> bool:
    return sent is not None and sent.kind in (PayloadKind.OBJECT, PayloadKind.UNKNOWN)


def _adds(program: Program, end: End) -> bool:
    """Return whether a root adds the objects that come to a total, one by one."""
    match None if end.loop is None else statement_at(end.loop.span, program.context):
        case ast.For(body=[ast.AugAssign(op=ast.Add(), value=value)], orelse=[]):
            return span_of(value, program.context.lines) == end.step.span
    return False


def _varies(program: Program, end: End, sent: Payload) -> bool:
    """Return whether what is sent may be another thing for each rank.

    It is named by what the loop binds, or made or written in the loop.
    """
    named = end.loop is not None and words(sent.text) & bound_in(program, end.loop)
    return bool(named) or _is_changed(end, sent)


def _is_changed(end: End, sent: Payload | None) -> bool:
    """Return whether what is sent may be written to before its loop has ended."""
    if sent is None or sent.view is None or end.loop is None:
        return True
    inside = walk(end.loop.body, into_calls=True)
    return any(memory.may_be_written(one.step, sent.view) for one in inside)


# --- what is written ------------------------------------------------------------------------------


def _instead_of_fan(
    program: Program, function: SpmdFunction, pattern: Pattern, found: _Instead, many: int
) -> ProgramProposal:
    call, root, other = found.call, pattern.inner, pattern.outer.step
    loop = root.loop
    assert loop is not None
    gathers, method = pattern.gathers, call.method
    edits: Edits | str = "pieces may have other lengths, or no name together"
    if many > 1:
        edits = "the loop has several messages for each rank"
    elif call.op is Op.REDUCE:
        edits = "what is added up has another name at the root"
    elif root.step.pickled:
        edits = _edits_of_objects(program, pattern, call)
    elif found.texts and memory.fits(other.send or other.receive):
        edits = _edits_of_buffers(program, function, pattern, found)

    # branch and loop may do more: a message is held against its part of the call
    alone: tuple[Step, ...] = (other if gathers and root.step.pickled else root.step,)
    alone += () if found.added is None else (found.added,)
    which = f" for each of {many} messages" * (many > 1)
    does = f"let one `{method}`{which} {'receive from' if gathers else 'send to'} all ranks,"
    does += " not a loop over them"
    if call.op is Op.REDUCE:
        does = f"let `{method}` add up what the root receives and adds one by one"
    return offer(
        function,
        pattern.visit,
        root.step.span,
        does,
        _REASON,
        (replace(loop, body=alone),),
        (call,),
        _ADDED if call.op is Op.REDUCE else _COLLECTED,
        edits,
        # one call for their lengths, another for them
        ranks_from=8 if call.op is Op.GATHER and _is_object(call.send) else 3,
    )


def _piece_by_piece(program: Program) -> Iterator[ProgramProposal]:
    """Yield a collective for messages piece by piece, all of them to one rank or from it."""
    found: dict[object, tuple[message_loops.End, message_loops.End, tuple[Loop, ...]]] = {}
    for pickled in (False, True):
        for sends, receives in message_loops.meetings(program, pickled=pickled):
            for ends, others in ((sends, receives), (receives, sends)):
                if loops := _pieces_of(ends, others):
                    key = ends[0].function.name, ends[0].step.op
                    found.setdefault(key, (others[0], ends[0], loops))
    for end, other, loops in found.values():
        yield _instead_of_pieces(end, other, loops)


def _pieces_of(ends: list[message_loops.End], others: list[message_loops.End]) -> tuple[Loop, ...]:
    """Return the loops in which each rank but a root sends it pieces, or receives them from it."""
    every, roots = [*ends, *others], {named_rank(one.partner) for one in ends}
    named = [named_rank(one.partner) for one in others]
    plain = all(one.step.blocking and one.step.op in (Op.SEND, Op.RECV) for one in every)
    root = roots.pop() if len(roots) == 1 else None
    sure = plain and isinstance(root, Num) and len({x.function.name for x in every}) == 1
    # all other ranks take part
    if not sure or not named or any(x is None or isinstance(x, Num) for x in named):
        return ()
    shared = set.intersection(*(set(one.visit.loops) for one in every))
    around = [tuple(x for x in one.visit.loops if x not in shared) for one in every]
    for one, loops in zip(every, around, strict=True):
        # what goes the other way may be the answer
        steps = (x.step for x in walk(loops[:1], into_calls=True))
        if any(isinstance(x, Communicate) and x.op is not one.step.op for x in steps):
            return ()
    return max(around[: len(ends)], key=len) if all(around[len(ends) :]) else ()


def _instead_of_pieces(
    end: message_loops.End, other: message_loops.End, loops: tuple[Loop, ...]
) -> ProgramProposal:
    """Return the collective for messages piece by piece between a root and each other rank."""
    step, gathers = end.step, end.step.op is Op.RECV
    sent, trips = other.step.send or step.send, num(1)
    numbers = sent is not None and sent.kind in (PayloadKind.ARRAY, PayloadKind.SCALAR)
    if sent is None or sent.count is None:  # it is a number, at least
        sent = Payload(PayloadKind.SCALAR, "", step.span, dtype="float64", count=num(1))
    for loop in loops:
        trips = trips * (unknown_count("pieces") if loop.trips is None else loop.trips)
    each = replace(step, send=sent, receive=None if step.pickled else sent)
    many = trips * (step.communicator.size - 1)
    before = Loop(LoopKind.COUNTED, "", num(0), many, 1, many, (each,), step.span)
    call = replace(step, root=named_rank(other.partner))
    op, whole = Op.GATHER if gathers else Op.SCATTER, None if gathers else sent.view
    if whole is not None and whole.region is not None:
        # where only its number tells a piece, all ranks get the same
        rank, extents = named_rank(end.partner), whole.buffer.extents or ()
        known = {x.variable for x in end.visit.loops}.union(*map(free_symbols, extents))
        known -= frozenset() if rank is None else free_symbols(rank)
        apart = next((x for x in end.visit.loops if x not in other.visit.loops), None)
        same = memory.symbols_of(whole) <= known and not _is_changed(End(step, apart), sent)
        op = Op.BCAST if same else op
    shape = (trips, elements(sent))
    call = carried(call, op, sent.dtype, shape, varying=op is not Op.BCAST)
    method = call.method if numbers or not step.pickled else op.value
    piece = memory.new_array("piece", sent.dtype, (elements(sent),), step.span)
    taken = replace(before, body=(Copy(piece, piece, step.span, allocates=True),))
    return offer(
        end.function,
        tuple(x for x in end.visit.loops if x in other.visit.loops),
        step.span,
        f"let one `{method}` {'receive from' if gathers else 'send to'} all ranks,"
        " not a message for each piece",
        _REASON,
        (before,),
        (call, taken),
        _COLLECTED,
        "what is sent or received piece by piece has no name together",
    )


def _edits_of_buffers(
    program: Program, function: SpmdFunction, pattern: Pattern, found: _Instead
) -> Edits | str:
    """Return the edits of a root and of all others, or why there are none."""
    context, root, other = program.context, pattern.inner.step, pattern.outer.step
    loop, to = pattern.inner.loop, f"root={pattern.outer.text}"
    assert loop is not None
    if program.mpi_module is None or not (is_simple(root, program) and is_simple(other, program)):
        return "a message shares its statement"
    here, there = (
        f"{end.receiver}.{found.call.method}({text}, {to})"
        for end, text in zip((root, other), found.texts, strict=True)
    )
    edits = instead(program, function, loop, [here], root)
    if isinstance(edits, str):
        return edits
    return together(edits, in_place_of(other.statement, [there], context))


def _edits_of_objects(program: Program, pattern: Pattern, call: Communicate) -> Edits | str:
    """Return the edits that hand a root's loop objects that one call brought, or took along."""
    context, root, other = program.context, pattern.inner.step, pattern.outer.step
    span = pattern.inner.loop.span if pattern.inner.loop is not None else root.span
    loop, sent = statement_at(span, context), pattern.send.step.send
    if not isinstance(loop, ast.For) or loop.orelse or not starts_line(span, context):
        return "the loop does not stand alone"
    if loop.body[0].lineno == loop.lineno or pattern.outer.text != "0" or sent is None:
        return "the loop stands on one line, or the root is another one"
    if comments_within(root.span, context.source) or comments_within(other.span, context.source):
        return "a comment stands within a message"
    place, gathers = span_of(loop, context.lines), pattern.gathers
    here, there = (f"{end.receiver}.{call.method}({{}}, root=0)" for end in (root, other))
    outer = other if gathers else root
    if context.text(outer.statement) != context.text(outer.span):
        return "the message shares its statement"
    pieces = fresh_name("pieces", context.identifiers)
    ahead, behind = f"{pieces} = {here.format('None')}", ""
    given = argument(pattern.send.step, "obj", program) or sent.text
    at_call, theirs = f"{pieces}[{argument(root, 'source', program)}]", [there.format(given)]
    if not gathers:
        if other.result is None or not is_simple(other, program):
            return "the message shares its statement"
        theirs = [f"{other.result} = {there.format('None')}"]
        ahead, behind = f"{pieces} = [None]", here.format(pieces)
        # what is pickled at once stays as it is
        copied = sent.view is not None and _is_changed(pattern.inner, sent)
        at_call = f"{pieces}.append({f'({sent.text}).copy()' if copied else sent.text})"
    there_ = in_place_of(other.statement, theirs, context)
    if call.op is Op.BCAST:
        if len(loop.body) != 1:
            return "the root does more for each rank"
        return together(in_place_of(place, [here.format(sent.text)], context), there_)

    def edits() -> tuple[Edit, ...]:
        indent = indent_at(place, context)
        end = Span(place.end_line, place.end_column, place.end_line, place.end_column)
        last = (Edit(end, f"\n{indent}{behind}"),) if behind else ()
        return (Edit(before(place), f"{ahead}\n{indent}"), Edit(root.span, at_call), *last)

    return together(edits, there_)


TRANSFORM = ProgramRule("ADV607", "hand-written-collective", __doc__, propose)
