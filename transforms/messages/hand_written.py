"""# ADV607 hand-written-collective

**What it does.** Finds messages that do by hand what one call does: a root that receives from one
rank after the other (`Gather`, or `Reduce` where it adds up) or sends to one after the other
(`Scatter`, `Bcast`), piece by piece too (`Gatherv`, `Scatterv`), or sends on what it added up
(`Allreduce`), loops of messages of every rank with every rank, one by one, in turns or begun at
once, pickled too or by a gather to each (`Alltoall`, `Allgather`), and a chain of blocking
messages, or an exchange in turns, in which ranks wait for others although what they send is ready
(`Sendrecv`).

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
what came. Pickled objects stay pickled: whether they need be is ADV601.

**When it stays quiet.** Task farms and whatever else receives from `ANY_SOURCE`; messages while
others of the function are under way; chains outside loops, which are set-up or output; pieces that
are not in the order of ranks; branches that communicate besides; what a root makes anew, or picks
by its index, for each rank and which is no slice of one array; chains and loops that pass on what
they received; programs that would wait for ever as they stand.

**Fix safety.** The same elements come to the same places. A collective is unsafe, because every
rank of the communicator has to call it, in the same order as all others: the two branches show
that they do, but not what other files do. `Sendrecv` is safe. Where nothing is written, the
finding says why: messages of each rank with each that were only tried, for 2 to 5 ranks, are shown.

**Models used.** Lines (messages, collectives), and the interpreter's time for an iteration.

**References.** Algorithms of collective operations: any text on MPI; the standard on `MPI_IN_PLACE`
and on deadlock in blocking exchanges.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from advisor.ir.spmd.memory import Payload, PayloadKind, elements
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Allocate, Communicate, Loop, LoopKind, Op, Step, walk
from advisor.source import Edit, Span
from costdb.expr import free_symbols, num, substitute
from costdb.records import replace
from transforms.kit.memory import apart, fits, symbols_of, written_sizes
from transforms.kit.names import argument, bound_names, is_simple, used_outside, words
from transforms.kit.programs import ProgramRule, instead, offer, sent_text, shortened
from transforms.kit.rewrite import (
    Edits,
    before,
    comments_within,
    fresh_name,
    in_place_of,
    indent_at,
    line_of,
    span_of,
    starts_line,
    statement_at,
    stretch,
    suite_at,
    together,
)
from transforms.messages.buffers import Instead, at_root, carried, for_each, is_changed, shapes_of
from transforms.messages.patterns import Kind, Pattern, patterns
from transforms.messages.traced import traced

_REASONS = {
    Kind.EACH: "in a loop each exchange waits for its partner to come to it; a collective has all"
    " messages under way, and costs one call from Python",
    Kind.NEXT: "each rank waits for the one before it, although what it sends is ready: the last"
    " one gets its message after all others; `Sendrecv` lets all messages go at once",
}
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
_NEXT = "every rank sends and receives the same messages, and what it sends does not depend on what"
_NEXT += " it receives"


def propose(program: Program) -> Iterator[ProgramProposal]:
    """Yield the call that does what several messages do."""
    for function in program.functions:
        every = list(patterns(function))
        told = {end.step.span for one in every for end in (one.send, one.take)}
        for visit, step, loop, call in traced(program, function):
            if step.span not in told:
                yield offer(
                    function,
                    visit,
                    step.span,
                    f"let one `{call.method}` exchange `{sent_text(step)}` with all ranks",
                    _REASONS[Kind.EACH],
                    (loop,),
                    (call,),
                    _EXCHANGED,
                    "what all ranks are sent has no name together",
                    conditions=("every rank knows how much comes from each",) * call.varying,
                )
        for pattern in every:
            if pattern.kind is Kind.NEXT:
                yield from _exchange(program, function, pattern)
                continue
            if pattern.send.pieces:
                yield _instead_of_pieces(function, pattern)
                continue
            total = _total(program, pattern)
            if total:
                backs = (one for one in every if _follows(program, pattern, one, total))
                yield _instead_of_sum(program, function, pattern, next(backs, None), total)
                continue
            each = pattern.kind is Kind.EACH
            found = (for_each if each else at_root)(program, pattern)
            if found is not None:
                yield (_instead_of_loops if each else _instead_of_fan)(
                    program, function, pattern, found
                )


# --- what is written ------------------------------------------------------------------------------


def _instead_of_loops(
    program: Program, function: SpmdFunction, pattern: Pattern, found: Instead
) -> ProgramProposal:
    first, last = pattern.steps[0], pattern.steps[-1]
    ends = (pattern.send.step, pattern.take.step)
    begins = min([first.span, *(end.statement for end in ends)])
    place = stretch(begins, max([last.span, *(end.statement for end in ends)]))
    method = found.call.method
    edits: Edits | str = "what all ranks send, or receive, has no name, or the loop does more"
    if found.texts:
        line = f"{ends[0].receiver}.{method}({found.texts[0]})"
        edits = instead(program, function, place, [line], [*ends, *pattern.steps])
    return offer(
        function,
        pattern.visit,
        ends[0].span,
        f"let one `{method}` exchange with all ranks, not a loop over them",
        _REASONS[Kind.EACH],
        pattern.steps,
        (found.call,),
        _EXCHANGED,
        edits,
    )


def _instead_of_fan(
    program: Program, function: SpmdFunction, pattern: Pattern, found: Instead
) -> ProgramProposal:
    call, root, other = found.call, pattern.inner, pattern.outer.step
    loop = root.loop
    assert loop is not None
    gathers, method = pattern.kind is Kind.FROM_ALL, call.method
    edits: Edits | str = "pieces may have other lengths, or no name together"
    if root.step.pickled:
        edits = _edits_of_objects(program, pattern, call)
    elif found.texts and fits(other.send or other.receive):
        edits = _edits_of_buffers(program, function, pattern, found)

    # branch and loop may do more: a message is held against its part of the call
    alone: tuple[Step, ...] = (other if gathers and root.step.pickled else root.step,)
    alone += () if found.handled is None else (found.handled,)
    after: tuple[Step, ...] = (shapes_of(call), call) if call.varying else (call,)
    does = f"let one `{method}` {'receive from' if gathers else 'send to'} all ranks,"
    does += " not a loop over them"
    if call.op is Op.REDUCE:
        does = "let `Reduce` add up what the root receives and adds one by one"
    return offer(
        function,
        pattern.visit,
        root.step.span,
        does,
        _REASON,
        (replace(loop, body=alone),),
        after,
        _ADDED if call.op is Op.REDUCE else _COLLECTED,
        edits,
    )


def _follows(program: Program, pattern: Pattern, back: Pattern, total: str) -> bool:
    """Return whether messages to all bring them the sum, next to those that brought its terms."""
    sent, context = back.send.step.send, program.context
    if back.kind is not Kind.TO_ALL or sent is None or sent.text != total:
        return False
    ends = [(one.inner.loop or one.inner.step, one.outer.step) for one in (pattern, back)]
    for first, second in zip(*ends, strict=True):
        places = (getattr(one, "statement", one.span) for one in (first, second))
        found = [suite_at(place, context) or ([], 0) for place in places]
        (nodes, at), (others, other) = found
        if nodes != others or other != at + 1:
            return False
    return True


def _total(program: Program, pattern: Pattern) -> str:
    """Return the name to which a root adds, one by one, the objects that come; empty for none."""
    loop, step = pattern.inner.loop, pattern.inner.step
    if pattern.kind is not Kind.FROM_ALL or loop is None or not step.pickled:
        return ""
    match statement_at(loop.span, program.context):
        case ast.For(
            body=[ast.AugAssign(target=ast.Name(name), op=ast.Add(), value=value)], orelse=[]
        ) if span_of(value, program.context.lines) == step.span:
            return name
    return ""


def _instead_of_sum(
    program: Program, function: SpmdFunction, pattern: Pattern, back: Pattern | None, total: str
) -> ProgramProposal:
    """Return the reduction for what a root adds up, and perhaps sends to all others."""
    sent, step, before = pattern.send.step.send, pattern.inner.step, list[Step]()
    assert sent is not None
    for one in (pattern, *((back,) if back is not None else ())):
        assert one.inner.loop is not None
        message = replace(one.inner.step, comes=sent)
        before.append(replace(one.inner.loop, body=(message,)))
    op = Op.REDUCE if back is None else Op.ALLREDUCE
    numbers = sent.kind is PayloadKind.SCALAR
    shape = () if numbers else (elements(sent),)
    call = replace(carried(step, op, sent.dtype, shape), root=pattern.root, operation="SUM")
    if numbers:
        call = replace(call, method=op.value, pickled=True, send=sent, receive=None)
    return offer(
        function,
        pattern.visit,
        step.span,
        f"let `{call.method}` add up `{shortened(sent.text)}`, not the root one by one",
        _REASON,
        tuple(before),
        (call,),
        _ADDED,
        _edits_of_sum(program, pattern, back, total) if numbers else "arrays may have other types",
    )


def _edits_of_sum(
    program: Program, pattern: Pattern, back: Pattern | None, total: str
) -> Edits | str:
    """Return the edits that let ranks add up numbers, and all of them get the sum."""
    context, step, other = program.context, pattern.inner.step, pattern.outer.step
    assert pattern.inner.loop is not None and other.send is not None
    last = pattern.inner.loop if back is None else back.inner.loop
    nodes = [statement_at(one.span, context) for one in (pattern.inner.loop, last) if one]
    places = [span_of(node, context.lines) for node in nodes if node is not None]
    method, to = ("allreduce", "") if back else ("reduce", f", root={pattern.outer.text}")
    here, there = (
        f"{end.receiver}.{method}({text}, op={program.mpi_module}.SUM{to})"
        for end, text in ((step, total), (other, other.send.text))
    )
    ends = [other] if back is None else [other, back.outer.step]
    text, call = (context.text(place) for place in (ends[-1].statement, ends[-1].span))
    place = stretch(places[0], places[-1])
    if text.count(call) != 1 or program.mpi_module is None or not starts_line(place, context):
        return "a message shares its statement"
    theirs = stretch(other.statement, ends[-1].statement)
    return together(
        in_place_of(place, [f"{total} = {here}"], context),
        in_place_of(theirs, [text.replace(call, there)], context),
    )


def _instead_of_pieces(function: SpmdFunction, pattern: Pattern) -> ProgramProposal:
    """Return the collective for messages piece by piece between a root and each other rank."""
    root, other, loop = pattern.inner, pattern.outer, pattern.inner.loop
    step, gathers = pattern.send.step, pattern.kind is Kind.FROM_ALL
    sent = pattern.send.step.send or pattern.take.step.receive
    if sent is None or sent.count is None:
        # it is a number, at least
        text, span = ("", step.span) if sent is None else (sent.text, sent.span)
        sent = Payload(PayloadKind.SCALAR, text, span, dtype="float64", count=num(1))
    each = replace(root.step, send=sent, receive=None if root.step.pickled else sent)
    trips, before = num(1), tuple[Step, ...]((each,))
    assert loop is not None
    for inner in reversed(root.pieces):
        trips = trips * (num(1) if inner.trips is None else inner.trips)
        before = (replace(inner, body=before),)
    index = root.step.communicator.rank
    shape = (substitute(trips, {loop.variable: index}), elements(sent))
    op = Op.GATHER if gathers else Op.SCATTER
    if not gathers and sent.view is not None and sent.view.region is not None:
        # where only its number tells a piece, all ranks get the same
        sizes = (name for one in sent.view.buffer.extents or () for name in free_symbols(one))
        known = {*sizes, *(inner.variable for inner in root.pieces)}
        same = symbols_of(sent.view) <= known and loop.variable not in known | free_symbols(trips)
        op = Op.BCAST if same and not is_changed(root, sent) else op
    varying = op is not Op.BCAST
    call = carried(replace(step, root=pattern.root), op, sent.dtype, shape, varying=varying)
    return offer(
        function,
        pattern.visit,
        root.step.span,
        f"let one `{call.method}` {'receive from' if gathers else 'send to'} all ranks,"
        " not a message for each piece",
        _REASON,
        (replace(loop, body=before),),
        (call,),
        _COLLECTED,
        f"what `{other.step.method}` takes piece by piece has no name together",
    )


def _edits_of_buffers(
    program: Program, function: SpmdFunction, pattern: Pattern, found: Instead
) -> Edits | str:
    """Return the edits of a root and of all others, or why there are none."""
    context, root, other = program.context, pattern.inner.step, pattern.outer.step
    loop, to = pattern.inner.loop, f"root={pattern.outer.text}"
    assert loop is not None
    if program.mpi_module is None or not (is_simple(root, program) and is_simple(other, program)):
        return "a message shares its statement"
    node = statement_at(loop.span, context)
    if not isinstance(node, ast.For) or node.orelse or not starts_line(loop.span, context):
        return "the loop does not stand alone"
    here, there = (
        f"{end.receiver}.{found.call.method}({text}, {to})"
        for end, text in zip((root, other), found.texts, strict=True)
    )
    gone = [root.statement, *([found.handled.span] if found.handled is not None else [])]
    names = bound_names([node.target])
    if found.handled is not None and root.receive is not None:
        names |= words(root.receive.text)
    kept = used_outside(names, span_of(node, context.lines), function, program)
    if kept is not None:
        return f"`{kept}` is used elsewhere"
    inner = node.body[0].body if isinstance(node.body[0], ast.If) else node.body
    held = [*inner, *node.body[1:]] if inner is not node.body else inner
    if found.handled is not None:
        made = [one.span for one in loop.body if isinstance(one, Allocate)]
        places = [span_of(one, context.lines) for one in held]
        gone += (place for place in places for one in made if place.contains(one))
    place, there_ = span_of(node, context.lines), in_place_of(other.statement, [there], context)
    if all(span_of(one, context.lines) in gone for one in held):
        return together(in_place_of(place, [here], context), there_)
    received = root.receive
    if received is None or found.handled is not None or not _stays_in_piece(held, received.text):
        return "the loop does more than with the piece that came"
    line, message = f"{here}\n{indent_at(place, context)}", root.statement
    gone_ = line_of(message.start_line, message.end_line)
    return together(lambda: (Edit(before(place), line), Edit(gone_, "")), there_)


def _stays_in_piece(nodes: list[ast.stmt], piece: str) -> bool:
    """Return whether statements use of an array nothing but a piece."""
    text = ast.unparse(ast.parse(piece.strip()))
    parts = [part for node in nodes for part in ast.walk(node)]
    uses = [p for p in parts if isinstance(p, ast.Name) and p.id == text.partition("[")[0]]
    pieces = [p for p in parts if isinstance(p, ast.Subscript) and ast.unparse(p) == text]
    return len(uses) == len(pieces)


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
    place, gathers = span_of(loop, context.lines), pattern.kind is Kind.FROM_ALL
    here, there = (f"{end.receiver}.{call.method}({{}}, root=0)" for end in (root, other))
    outer = other if gathers else root
    if context.text(outer.statement) != context.text(outer.span):
        return "the message shares its statement"
    pieces = fresh_name("pieces", context.identifiers)
    ahead, behind = f"{pieces} = {here.format('None')}", ""
    at_call, theirs = f"{pieces}[{argument(root, 'source', program)}]", [there.format(sent.text)]
    if not gathers:
        into = _received(program, other)
        if into is None:
            return "the message shares its statement"
        theirs = [f"{into[0]} = {there.format('None')}", *into[1]]
        ahead, behind = f"{pieces} = [None]", here.format(pieces)
        # what is pickled at once stays as it is
        copied = sent.view is not None and is_changed(pattern.inner, sent)
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


def _received(program: Program, step: Communicate) -> tuple[str, list[str]] | None:
    """Return the name of what other ranks than the root receive, and what follows."""
    node = statement_at(step.statement, program.context)
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as value):
            ended = []
        case ast.Return(value=ast.Call() as value):
            name = fresh_name("received", program.context.identifiers)
            ended = [f"return {name}"]
        case _:
            return None
    return (name, ended) if span_of(value, program.context.lines) == step.span else None


# --- an exchange with neighbours ------------------------------------------------------------------


def _exchange(
    program: Program, function: SpmdFunction, pattern: Pattern
) -> Iterator[ProgramProposal]:
    """Yield an exchange for a chain whose messages do not depend on one another."""
    send, receive = pattern.send.step, pattern.take.step
    sent, got = send.send, receive.receive
    if function.weight(pattern.visit) == 0 or sent is None or got is None:
        return
    if sent.view is None or got.view is None or sent.count is None or sent.count != got.count:
        return
    if not apart(sent.view, got.view, written_sizes(program)):
        return
    exchange = replace(
        send,
        op=Op.SENDRECV,
        method="Sendrecv",
        receive=got,
        source=receive.source,
    )
    waits = pattern.waits
    one_after_another = Loop(LoopKind.COUNTED, "", num(0), waits, 1, waits, (send,), send.span)
    given, nobody = [], f"{program.mpi_module}.PROC_NULL"
    for end, payload, names in (
        (pattern.send, sent, ("", "dest", "sendtag")),
        (pattern.take, got, ("recvbuf=", "source", "recvtag")),
    ):
        tag = argument(end.step, "tag", program)
        given += [f"{names[0]}{payload.text}", f"{names[1]}={end.text.format(nobody=nobody)}"]
        given += [] if tag is None else [f"{names[2]}={tag}"]
    ends = [v.step for v in walk(pattern.steps) if isinstance(v.step, Communicate)]
    nodes, at = suite_at(pattern.steps[0].span, program.context) or ([], 0)
    last = nodes[at : at + len(pattern.steps)][-1:]
    place = stretch(pattern.steps[0].span, max(end.statement for end in ends))
    place = stretch(place, max([place, *(span_of(one, program.context.lines) for one in last)]))
    edits: Edits | str = "a part of an array, or MPI, has no name"
    if program.mpi_module is not None and sent.view.region is not None:
        line = f"{send.receiver}.Sendrecv({', '.join(given)})"
        edits = instead(program, function, place, [line], ends)
    yield offer(
        function,
        pattern.visit,
        send.span,
        "exchange by `Sendrecv`, not by messages that wait for one another",
        _REASONS[Kind.NEXT],
        (one_after_another,),
        (exchange,),
        _NEXT,
        edits,
        safe=True,
    )


TRANSFORM = ProgramRule("ADV607", "hand-written-collective", __doc__, propose)
