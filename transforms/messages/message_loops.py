"""# ADV603 message-per-element

**What it does.** Finds loops that send neighbouring elements or rows one by one to the same rank,
where the other end receives them one by one, and sends all of them in one message. Likewise loops
that broadcast, reduce or exchange something small in every iteration: one call carries all of it.
Pickled objects, and arrays that change, are shown, as are elements that are added to, or read from,
memory of whichever rank has them. Calls in a loop are one where no iteration needs what an earlier
one received.

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
received = comm.allreduce(np.array(sent, dtype=object))
for j, one in zip(range(n), received):
    out[j] = one
```

**When it stays quiet.** Loops of messages that do anything besides; loops of collectives that end
early, send the same each time, differ from rank to rank, or use in one iteration what an earlier
one received; other ends that are not found or may be others; partners that change from message to
message, tags that do not count them alike at both ends; elements that do not lie one after another
in memory, of messages with two ends.

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
from fractions import Fraction
from itertools import compress

from advisor.ir.spmd.memory import Payload, PayloadKind
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import (
    Call,
    Communicate,
    Leave,
    Loop,
    Op,
    Partner,
    PartnerKind,
    Unknown,
    Visit,
    walk,
)
from advisor.source import Span
from costdb.expr import Expr, free_symbols, substitute, sym
from costdb.expr.nodes import Num
from costdb.expr.polynomials import expand
from costdb.records import dataclass, replace
from transforms.kit import memory, rewrite
from transforms.kit.names import argument, bound_in, words
from transforms.kit.programs import ProgramRule, instead, offer
from transforms.kit.ranks import named_rank
from transforms.messages.repeated_collectives import repeated_collectives

# --- message loops --------------------------------------------------------------------------------


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


def _only_pairs(program: Program, *, pickled: bool) -> Iterator[tuple[End, End]]:
    """Yield the sends and receives that can meet nobody but each other.

    Both ends name their partner.
    """
    for sends, receives in meetings(program, pickled=pickled):
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
    if _differ(send.step.dest, receive) or _differ(receive.step.source, send):
        return False
    rank = send.step.communicator.rank
    there, back = (_distance(one, rank) for one in (send.step.dest, receive.step.source))
    return there is None or back is None or there == -back


def _distance(partner: Partner | None, rank: Expr) -> int | Fraction | None:
    """Return how many ranks on the other end is, where that is the same number for all."""
    if partner is None or partner.kind is not PartnerKind.RANK or partner.rank is None:
        return None
    distance = expand(partner.rank - rank)
    return distance.value if isinstance(distance, Num) else None


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


def propose(program: Program) -> Iterator[ProgramProposal]:
    """Yield one message for every pair of loops whose messages meet, one call for many."""
    for pickled in (False, True):
        for send, receive in _only_pairs(program, pickled=pickled):
            yield from _one_message(program, send, receive)
    for function in program.functions:
        yield from repeated_collectives(program, function)


def _one_message(program: Program, send: End, receive: End) -> Iterator[ProgramProposal]:
    """Yield one message, of a stretch of an array or a list, for all that two loops carry."""
    step, sent, got = send.step, send.step.send, receive.step.receive
    giver, taker = _loop(program, send), _loop(program, receive)
    if giver is None or taker is None or sent is None or giver.trips != taker.trips:
        return
    tags = [_tag(send.step, giver), _tag(receive.step, taker)]
    if "tag" in receive.step.places and (tags[0] != tags[1] or giver.low != taker.low):
        return
    edits: rewrite.Edits | str = "what comes has to be taken from the list"
    title = f"send all of `{sent.text}` as one list, not in a message for each"
    many: Payload | None = replace(
        sent, kind=PayloadKind.OBJECT, parts=(sent,), length=giver.trips, view=None, count=None
    )
    if not step.pickled:
        many, comes = _swept(sent, giver), _swept(got, taker)
        if many is None or comes is None or got is None:
            return
        alike = len(send.visit.loops) == len(receive.visit.loops)
        if not alike or (sent.count, sent.dtype) != (got.count, got.dtype):
            return
        texts = _text(program, sent, giver), _text(program, got, taker)
        title = f"send `{texts[0] or sent.text}` in one message, not one for each `{sent.text}`"
        edits = "all that the loop carries, or its first tag, has no name"
        counts = tags[0] is not None and "k" in free_symbols(tags[0])
        if None not in texts and not counts:
            made = [
                _edits(program, send, giver, sent.span, str(texts[0])),
                _edits(program, receive, taker, got.span, str(texts[1])),
            ]
            why = next((one for one in made if isinstance(one, str)), None)
            edits = why or rewrite.together(*(one for one in made if not isinstance(one, str)))
    yield offer(
        send.function,
        send.visit.loops[:-1],
        step.span,
        title,
        "every call costs a start-up time besides its bytes, and the interpreter's time",
        (giver,),
        (replace(step, send=many),),
        "the same comes to the same places; but one large message waits for its receiver, where a"
        " program may rely on small ones being buffered",
        edits,
    )


def _loop(program: Program, end: End) -> Loop | None:
    """Return the loop around one end of messages, all to or from the same rank."""
    step, loops = end.step, end.visit.loops
    if not loops or not step.blocking or step.mode or "status" in step.places:
        return None
    loop = loops[-1]
    if step not in loop.body or loop.trips is None or loop.by_rank or not memory.is_counted(loop):
        return None
    others = tuple(one for one in loop.body if one != step)
    if any(isinstance(one.step, Communicate | Leave | Unknown | Call) for one in walk(others)):
        return None
    if others and not step.pickled:
        return None  # what is in an array may be made meanwhile
    named = ("dest", "source", *(() if step.tag is not None else ("tag",)))
    fixed = " ".join(argument(step, name, program) or "" for name in named)
    return None if words(f"{fixed} {step.receiver}") & bound_in(program, loop) else loop


def _tag(step: Communicate, loop: Loop) -> Expr | None:
    """Return the tag of the message in an iteration, which is `k`."""
    return None if step.tag is None else substitute(step.tag, {loop.variable: sym("k")})


def _swept(payload: Payload | None, loop: Loop) -> Payload | None:
    """Return all that a loop goes through, piece by piece, where that is one stretch of memory."""
    view = memory.plain_array(payload)
    whole = None if view is None else memory.swept(view, loop.variable, loop.low, loop.high)
    if payload is None or whole is None or not memory.is_stretch(whole):
        return None
    return replace(payload, view=whole, count=whole.count)


def _text(program: Program, payload: Payload, loop: Loop) -> str | None:
    """Return what all messages carry, as Python: the loop's index becomes its range."""
    match rewrite.statement_at(loop.span, program.context):
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
    texts = [ast.unparse(part) for part in getattr(one.slice, "elts", [one.slice])]
    own = [place for place, text in enumerate(texts) if name in words(text)]
    if len(own) != 1 or texts[own[0]] not in (name, f"{name}:{name} + 1"):
        return None
    texts[own[0]] = ":".join(bounds[-2:])
    return f"{ast.unparse(one.value)}[{', '.join(texts)}]"


def _edits(program: Program, end: End, loop: Loop, sent: Span, text: str) -> rewrite.Edits | str:
    """Return what puts one message with another text in the place of a loop."""
    context, call = program.context, end.step.statement
    if call.start_line != call.end_line:
        return "the call stands on several lines"
    line = context.text(call)
    ahead, behind = (c - call.start_column for c in (sent.start_column, sent.end_column))
    lines = [f"{line[:ahead]}{text}{line[behind:]}"]
    return instead(program, end.function, loop, lines, end.step)


TRANSFORM = ProgramRule("ADV603", "message-per-element", __doc__, propose)
