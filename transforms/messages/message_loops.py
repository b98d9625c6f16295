"""# ADV603 message-per-element

**What it does.** Finds loops that send neighbouring elements or rows one by one to the same rank,
where the other end receives them one by one, and sends all of them in one message. Likewise loops
that broadcast or reduce something small in every iteration: one collective carries all of it, and
what only adds up its sums adds first.

**Why it costs.** Every message costs a start-up time, however little it carries: as much as some
thousand bytes. A loop of `n` messages pays for it `n` times, and for `n` calls from Python.

**Example**

```python
for i in range(n):
    comm.Send(a[i, :], dest=1)
```

**Use instead**

```python
comm.Send(a[0:n, :], dest=1)
```

The receiving loop changes in the same edit. Of collectives:

```python
for j in range(n):
    out[j] = comm.allreduce(a[:, j].sum())
```

**Use instead**

```python
sent = [a[:, j].sum() for j in range(n)]
received = np.array(sent, dtype='float64')
comm.Allreduce(MPI.IN_PLACE, received)
out[:len(received)] = received
```

**When it stays quiet.** Loops of messages that do anything besides; loops of collectives that end
early, send the same each time, differ from rank to rank, or use in one iteration what an earlier
one received; other ends that are not found or may be others; tags or partners that change from
message to message; elements that do not lie one after another in memory.

**Fix safety.** The same elements come to the same places. The fix is unsafe, because one large
message waits for its receiver where small ones may be buffered: a program that relies on that,
which MPI does not promise, would then wait for ever. Sums that one collective makes agree to
rounding, and arrays that go by two names are taken to be two.

**Models used.** Lines or message grades (messages), and the interpreter's time for an iteration.

**References.** The latency and bandwidth model of messages, in textbooks on parallel programming.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import compress

from advisor.ir.spmd.memory import View
from advisor.ir.spmd.payloads import Payload
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.ranks import Partner
from advisor.ir.spmd.steps import (
    Communicate,
    Loop,
    Op,
    Visit,
)
from advisor.source import Span
from costdb.expr import Expr, free_symbols, num
from costdb.expr.nodes import Num
from costdb.records import dataclass, replace
from transforms.kit.memory import bounds_of, is_counted, is_stretch, plain_array, swept, symbols_of
from transforms.kit.names import argument, bound_in, is_simple, words
from transforms.kit.programs import ProgramRule, offer
from transforms.kit.ranks import named_rank, on_all_ranks
from transforms.kit.rewrite import (
    Edits,
    in_place_of,
    span_of,
    starts_line,
    statement_at,
    stretch,
    together,
)
from transforms.messages.repeated_collectives import repeated_collectives

_ELEMENTWISE = frozenset({Op.BCAST, Op.REDUCE, Op.ALLREDUCE, Op.SCAN, Op.EXSCAN})
"""Collectives that do the same with every element, whatever else they carry."""


@dataclass(frozen=True, slots=True)
class End:
    """One end of a message, with what is around it."""

    function: SpmdFunction
    visit: Visit
    step: Communicate

    @property
    def partner(self) -> Partner | None:
        """The other end."""
        return self.step.dest if self.step.op is Op.SEND else self.step.source

    @property
    def payload(self) -> Payload | None:
        """What is sent, or where it is received."""
        return self.step.send if self.step.op is Op.SEND else self.step.receive


def meetings(program: Program, *, pickled: bool) -> Iterator[tuple[list[End], list[End]]]:
    """Yield groups of sends and receives that can meet nobody outside of their group in the file.

    An end whose tag is not known, or which takes any, may meet any other on its communicator.
    """
    found = [
        End(function, visit, step)
        for function in program.functions
        for visit, step in function.operations()
        if step.pickled is pickled
    ]
    givers = [end for end in found if end.step.op in (Op.SEND, Op.SENDRECV)]
    takers = [end for end in found if end.step.op in (Op.RECV, Op.SENDRECV)]
    while givers:
        more = [givers.pop(0)]
        sends: list[End] = []
        receives: list[End] = []
        while more:
            sends += more
            met = [any(_may_meet(send, end) for send in more) for end in takers]
            receives += compress(takers, met)
            takers = [end for end, is_met in zip(takers, met, strict=True) if not is_met]
            more = [end for end in givers if any(_may_meet(end, taker) for taker in receives)]
            givers = [end for end in givers if all(end is not other for other in more)]
        yield sends, receives


def _only_pairs(program: Program) -> Iterator[tuple[End, End]]:
    """Yield the sends and receives of buffers that can meet nobody but each other.

    Both ends name their partner.
    """
    for sends, receives in meetings(program, pickled=False):
        if len(sends) == len(receives) == 1:
            (send,), (receive,) = sends, receives
            named = None not in (named_rank(send.partner), named_rank(receive.partner))
            if named and send.step.op is Op.SEND and receive.step.op is Op.RECV:
                yield send, receive


def _may_meet(send: End, receive: End) -> bool:
    if send.step.communicator.text != receive.step.communicator.text:
        return False
    one, other = send.step.tag, receive.step.tag
    if isinstance(one, Num) and isinstance(other, Num) and one.value != other.value:
        return False
    return not (_differ(send.step.dest, receive) or _differ(receive.step.source, send))


def _differ(partner: Partner | None, end: End) -> bool:
    """Return whether an end is on one rank only, and its partner means another."""
    rank, own = partner and partner.rank, _single_rank(end.visit)
    return isinstance(rank, Num) and isinstance(own, Num) and rank.value != own.value


def _single_rank(visit: Visit) -> Expr | None:
    """Return the rank that alone gets to a step, where a branch says so."""
    for branch, first in reversed(visit.branches):
        if first and branch.condition.single_rank is not None:
            return branch.condition.single_rank
    return None


# --- loops of messages ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop that does nothing but send or receive parts of an array.

    Attributes
    ----------
    end : End
    loop : Loop
    payload : Payload
        Of one message.
    whole : View
        What all messages carry.
    text : str or None
        `whole`, as Python; None where that cannot be written.
    """

    end: End
    loop: Loop
    payload: Payload
    whole: View
    text: str | None


def propose(program: Program) -> Iterator[ProgramProposal]:
    """Yield one message for every pair of loops whose messages meet."""
    for send, receive in _only_pairs(program):
        giver, taker = _loop(program, send), _loop(program, receive)
        if giver is not None and taker is not None and _agree(giver, taker):
            yield _proposal(program, giver, taker)
    for function in program.functions:
        yield from _swept(program, function)
        yield from repeated_collectives(program, function)


def _loop(program: Program, end: End) -> _Loop | None:
    """Return the loop around one end, if it walks along one stretch, element by element."""
    step, visit, payload = end.step, end.visit, end.payload
    view = plain_array(payload)
    if not visit.loops or not step.blocking or payload is None or view is None:
        return None
    loop = visit.loops[-1]
    if not is_counted(loop) or loop.trips is None:
        return None
    if loop.body != (step,) or loop.by_rank or "status" in step.places:
        return None
    fixed = [step.tag, None if end.partner is None else end.partner.rank]
    if any(part is not None and loop.variable in free_symbols(part) for part in fixed):
        return None
    whole = swept(view, loop.variable, loop.low, loop.high)
    if whole is None or not is_stretch(whole) or not _is_by_element(view, loop.variable):
        return None
    return _Loop(end, loop, payload, whole, _text(program, payload, loop))


def _swept(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield one collective for a loop that calls one for each piece of an array, in order."""
    for visit, step in function.operations():
        buffers = [one for one in (step.send, step.receive) if one is not None]
        if not visit.loops or step.pickled or step.op not in _ELEMENTWISE or not buffers:
            continue
        loop = visit.loops[-1]
        if step not in loop.body or not is_counted(loop) or loop.by_rank or not step.blocking:
            continue
        others = [one for one in loop.body if one != step]
        if not all(isinstance(one, Communicate) and one.op is Op.BARRIER for one in others):
            continue
        fixed = " ".join(argument(step, name, program) or "" for name in ("root", "op"))
        if words(f"{fixed} {step.receiver}") & bound_in(program, loop):
            continue
        carried: dict[Span, Payload] = {}
        texts: dict[Span, str] = {}
        for one in buffers:
            view = plain_array(one)
            whole = None if view is None else swept(view, loop.variable, loop.low, loop.high)
            if whole is not None and is_stretch(whole):
                carried[one.span] = replace(one, view=whole, count=whole.count)
                text = _text(program, one, loop)
                texts |= {} if text is None else {one.span: text}
        if len(carried) < len(buffers) or not on_all_ranks(function.visits(), visit):
            continue
        yield offer(
            function,
            visit.loops[:-1],
            step.span,
            f"call `{step.method}` once, not once for each `{buffers[0].text}`",
            "every collective costs its start-up time, and a call from Python",
            (loop,),
            (
                replace(
                    step,
                    send=step.send and carried[step.send.span],
                    receive=step.receive and carried[step.receive.span],
                ),
            ),
            "the same elements come to the same places; sums of floating-point numbers may be"
            " collected in another order",
            _in_one(program, loop, step, texts) if len(texts) == len(buffers) else None,
        )


def _in_one(
    program: Program, loop: Loop, step: Communicate, texts: dict[Span, str]
) -> Edits | None:
    context, start = program.context, step.statement
    node, text = statement_at(loop.span, context), context.text(start)
    if not is_simple(step, program) or not starts_line(loop.span, context):
        return None
    if not isinstance(node, ast.For) or node.orelse or start.start_line != start.end_line:
        return None
    for place in sorted(texts, reverse=True):
        ahead, behind = (c - start.start_column for c in (place.start_column, place.end_column))
        text = f"{text[:ahead]}{texts[place]}{text[behind:]}"
    return in_place_of(span_of(node, context.lines), [text], context)


def _is_by_element(view: View, variable: str) -> bool:
    """Return whether the dimension that an index walks along has one element in each piece."""
    moved = [
        index
        for index in view.region or ()
        if symbols_of(replace(view, region=(index,))) & {variable}
    ]
    return all((ends := bounds_of(index))[1] - ends[0] == num(1) for index in moved)


def _text(program: Program, payload: Payload, loop: Loop) -> str | None:
    """Return what all messages carry, as Python: the loop's index becomes its range."""
    match statement_at(loop.span, program.context):
        case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=args)):
            bounds = ["0", *map(ast.unparse, args)]
        case _:
            return None
    try:
        one = ast.parse(payload.text.strip(), mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(one, ast.Subscript) or len(bounds) > 3:
        return None
    parts = one.slice.elts if isinstance(one.slice, ast.Tuple) else [one.slice]
    texts = [ast.unparse(part) for part in parts]
    own = [place for place, text in enumerate(texts) if name in words(text)]
    # the index alone, or the range of it and its neighbour
    if len(own) != 1 or texts[own[0]] not in (name, f"{name}:{name} + 1"):
        return None
    texts[own[0]] = ":".join(bounds[-2:])
    return f"{ast.unparse(one.value)}[{', '.join(texts)}]"


def _agree(giver: _Loop, taker: _Loop) -> bool:
    """Return whether both ends pass on as many elements, of the same type, equally often."""
    return (
        giver.loop.trips == taker.loop.trips
        and giver.payload.count == taker.payload.count
        and giver.payload.dtype == taker.payload.dtype
        and len(giver.end.visit.loops) == len(taker.end.visit.loops)
    )


def _proposal(program: Program, giver: _Loop, taker: _Loop) -> ProgramProposal:
    step, one = giver.end.step, giver.payload.text
    whole = replace(giver.payload, view=giver.whole, count=giver.whole.count)
    edits = [_edit(end, program) for end in (giver, taker)]
    written = [edit for edit in edits if edit is not None]
    return offer(
        giver.end.function,
        giver.end.visit.loops[:-1],
        step.span,
        f"send `{giver.text or one}` in one message, not one for each `{one}`",
        "every message costs a start-up time besides its bytes, and a call from Python",
        (giver.loop,),
        (replace(step, send=whole),),
        "the same elements come to the same places; but one large message waits for its"
        " receiver, where a program may rely on small ones being buffered",
        together(*written) if len(written) == len(edits) else None,
    )


def _edit(one: _Loop, program: Program) -> Edits | None:
    """Return what puts a call in the place of its loop, comments kept above it."""
    context, statement, place = program.context, one.end.step.statement, one.payload.span
    if one.text is None or not is_simple(one.end.step, program):
        return None
    if not starts_line(one.loop.span, context):
        return None
    ahead = Span(*_start(statement), *_start(place))
    behind = Span(place.end_line, place.end_column, statement.end_line, statement.end_column)
    call = f"{context.text(ahead)}{one.text}{context.text(behind)}"
    return in_place_of(stretch(one.loop.span, statement), [call], context)


def _start(span: Span) -> tuple[int, int]:
    return span.start_line, span.start_column


TRANSFORM = ProgramRule("ADV603", "message-per-element", __doc__, propose)
