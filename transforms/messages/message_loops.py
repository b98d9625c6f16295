"""# ADV603 message-per-element

**What it does.** Finds loops that send neighbouring elements or rows one by one to the same rank,
where the other end receives them one by one, and sends all of them in one message. Likewise loops
that broadcast, reduce or exchange something small in every iteration: one call carries all of it.
Pickled objects go as one list. Calls in a loop are one where no iteration needs what an
earlier one received. Where each item goes to a rank of its own, what goes to one rank can be
collected.

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
import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import compress

from advisor.ir.spmd.memory import Payload, PayloadKind, elements
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import (
    Call,
    Communicate,
    Leave,
    Loop,
    LoopKind,
    Op,
    Partner,
    PartnerKind,
    Unknown,
    Visit,
    walk,
)
from advisor.source import Edit, Span
from costdb.expr import Expr, ceil_div, free_symbols, minimum, num, substitute, sym
from costdb.expr.nodes import Num
from costdb.expr.polynomials import expand
from costdb.records import dataclass, replace
from transforms.kit.memory import (
    apart,
    is_counted,
    is_stretch,
    plain_array,
    swept,
    written_sizes,
)
from transforms.kit.names import argument, bound_in, bound_names, keywords, used_outside, words
from transforms.kit.programs import ProgramRule, instead, offer, sent_text
from transforms.kit.ranks import is_exchange, named_rank, on_all_ranks
from transforms.kit.rewrite import (
    Edits,
    fresh_name,
    in_place_of,
    python_text,
    span_of,
    starts_line,
    statement_at,
    together,
)
from transforms.messages.iterations import EPOCHS
from transforms.messages.patterns import is_clear
from transforms.messages.repeated_collectives import repeated_collectives

# --- by owner -------------------------------------------------------------------------------------
# Loops that send item after item, each to the rank that it belongs to: one message for each rank.
#
# There are more items than ranks, and nothing is received in the loop: what goes to one rank can be
# collected, and sent together, be it by messages or to windows.


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


# --- message loops --------------------------------------------------------------------------------


_ELEMENTWISE = frozenset({Op.BCAST, Op.REDUCE, Op.ALLREDUCE, Op.SCAN, Op.EXSCAN})
"""Collectives that do the same with every element, whatever else they carry."""
_FIXED = ("root", "op", "dest", "source")


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


@dataclass(frozen=True, slots=True)
class _Sweep:
    """A loop that sends, receives or combines a stretch of an array, piece by piece.

    Attributes
    ----------
    end : End
    loop : Loop
    whole : Communicate
        One call for all pieces.
    piece, shown : str
        What one call carries, and that one.
    edits : Edits or str
        What puts it in the place of the loop, or why nothing can.
    """

    end: End
    loop: Loop
    whole: Communicate
    piece: str
    shown: str
    edits: Edits | str


def propose(program: Program) -> Iterator[ProgramProposal]:
    """Yield one message for every pair of loops whose messages meet, one call for many."""
    for send, receive in _only_pairs(program, pickled=False):
        giver, taker = _sweep(program, send), _sweep(program, receive)
        if giver is not None and taker is not None and _agree(giver, taker):
            yield _one_message(giver, taker)
    for send, receive in _only_pairs(program, pickled=True):
        yield from _one_list(program, send, receive)
    for function in program.functions:
        told: set[Span] = set()
        for visit, step in function.operations():
            exchanges = step.op is Op.SENDRECV and not step.replaces and is_exchange(step)
            exchanges = exchanges and is_clear(function, visit)
            if (step.op in _ELEMENTWISE or exchanges) and on_all_ranks(function.visits(), visit):
                sweep = _sweep(program, End(function, visit, step))
                if sweep is not None:
                    told.add(step.span)
                    yield _once(
                        sweep,
                        f"call `{step.method}` once, not once for each `{sweep.piece}`",
                        "the same elements come to the same places; sums of floating-point numbers"
                        " may be collected in another order",
                        sweep.edits,
                    )
        yield from repeated_collectives(program, function, told)
        yield from by_owner(program, function)


def _sweep(program: Program, end: End) -> _Sweep | None:
    """Return the loop around a call, if it walks along one stretch and does nothing else."""
    step, visit = end.step, end.visit
    payloads = [one for one in (step.send, step.receive) if one is not None]
    if not visit.loops or not step.blocking or step.pickled or "status" in step.places:
        return None
    loop = visit.loops[-1]
    if not is_counted(loop) or loop.trips is None or loop.by_rank or step not in loop.body:
        return None
    # a barrier goes only where all ranks leave it out
    for other in loop.body:
        match other:
            case Communicate(op=Op.BARRIER, receiver=step.receiver) if step.op in _ELEMENTWISE:
                pass
            case _ if other != step:
                return None
    fixed = " ".join(argument(step, name, program) or "" for name in _FIXED)
    if not payloads or words(f"{fixed} {step.receiver}") & bound_in(program, loop):
        return None
    if step.tag is None and words(argument(step, "tag", program) or "") & bound_in(program, loop):
        return None
    texts: dict[Span, str] = {}
    wholes: dict[Span, Payload] = {}
    for one in payloads:
        view = plain_array(one)
        whole = None if view is None else swept(view, loop.variable, loop.low, loop.high)
        if whole is None or not is_stretch(whole):
            return None
        wholes[one.span] = replace(one, view=whole, count=whole.count)
        text = _text(program, one, loop)
        texts |= {} if text is None else {one.span: text}
    if step.op is Op.SENDRECV:
        # what one iteration receives no later one may send on
        given, taken = (whole.view for whole in wholes.values())
        if given is None or taken is None or not apart(given, taken, written_sizes(program)):
            return None
    call = replace(
        step,
        send=step.send and wholes[step.send.span],
        receive=step.receive and wholes[step.receive.span],
    )
    edits: Edits | str = "all that the loop carries, or its first tag, has no name"
    tag = _first_tag(program, step, loop)
    if len(texts) == len(payloads) and tag is not None:
        edits = _edits(program, end, loop, texts | tag)
    piece = payloads[0].text
    return _Sweep(end, loop, call, piece, texts.get(payloads[0].span, piece), edits)


def _first_tag(program: Program, step: Communicate, loop: Loop) -> dict[Span, str] | None:
    """Return the tag of the first message of a loop that counts them; None where it has no text."""
    if step.tag is None or loop.variable not in free_symbols(step.tag):
        return {}
    place, text = step.places["tag"], argument(step, "tag", program) or ""
    first = python_text(substitute(step.tag, {loop.variable: loop.low}), {})
    if first is None:
        return None
    return {place: program.context.text(place).removesuffix(text) + first}


def _text(program: Program, payload: Payload, loop: Loop) -> str | None:
    """Return what all calls carry, as Python: the loop's index becomes its range."""
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
    texts = [ast.unparse(part) for part in getattr(one.slice, "elts", [one.slice])]
    own = [place for place, text in enumerate(texts) if name in words(text)]
    # the index alone, moved by a number, or the range of it and its neighbour
    at = texts[own[0]].replace(f"{name}:{name} + 1", name) if len(own) == 1 else ""
    moved = at.removeprefix(name)
    if at == moved or not re.fullmatch(r"( [+-] \d+)?", moved):
        return None
    if moved:
        # before an array's beginning an index counts from its end
        first = loop.low + int(moved.replace(" ", ""))
        if not isinstance(first, Num) or first.value < 0:
            return None
        bounds = [bound if bound.isalnum() else f"({bound})" for bound in bounds]
    texts[own[0]] = ":".join(f"{bound}{moved}" for bound in bounds[-2:])
    return f"{ast.unparse(one.value)}[{', '.join(texts)}]"


def _edits(program: Program, end: End, loop: Loop, texts: dict[Span, str]) -> Edits | str:
    context, start = program.context, end.step.statement
    if start.start_line != start.end_line:
        return "the call stands on several lines"
    text = context.text(start)
    for place in sorted(texts, reverse=True):
        ahead, behind = (c - start.start_column for c in (place.start_column, place.end_column))
        text = f"{text[:ahead]}{texts[place]}{text[behind:]}"
    node = statement_at(loop.span, context)
    place = loop.span if node is None else span_of(node, context.lines)
    steps = [one for one in loop.body if isinstance(one, Communicate)]
    lines = [text if one == end.step else context.text(one.statement) for one in steps]
    kept = [line for one, line in zip(steps, lines, strict=True) if one.op is not Op.BARRIER]
    return instead(program, end.function, place, kept, steps)


def _agree(giver: _Sweep, taker: _Sweep) -> bool:
    """Return whether both ends pass on as many elements, of the same type, equally often."""
    sent, got = giver.end.payload, taker.end.payload
    one, other = (_tag(each.end.step, each.loop) for each in (giver, taker))
    if "tag" in taker.end.step.places and (one != other or giver.loop.low != taker.loop.low):
        return False
    return (
        sent is not None
        and got is not None
        and giver.loop.trips == taker.loop.trips
        and (sent.count, sent.dtype) == (got.count, got.dtype)
        and len(giver.end.visit.loops) == len(taker.end.visit.loops)
    )


def _tag(step: Communicate, loop: Loop) -> Expr | None:
    """Return the tag of the message in an iteration, which is `k`."""
    return None if step.tag is None else substitute(step.tag, {loop.variable: sym("k")})


def _one_message(giver: _Sweep, taker: _Sweep) -> ProgramProposal:
    why = next((one.edits for one in (giver, taker) if isinstance(one.edits, str)), None)
    edits = [one.edits for one in (giver, taker) if not isinstance(one.edits, str)]
    return _once(
        giver,
        f"send `{giver.shown}` in one message, not one for each `{giver.piece}`",
        "the same elements come to the same places; but one large message waits for its"
        " receiver, where a program may rely on small ones being buffered",
        together(*edits) if why is None else why,
    )


def _once(sweep: _Sweep, title: str, argued: str, edits: Edits | str) -> ProgramProposal:
    return offer(
        sweep.end.function,
        sweep.end.visit.loops[:-1],
        sweep.end.step.span,
        title,
        "every call costs a start-up time besides its bytes, and the interpreter's time",
        (sweep.loop,),
        (sweep.whole,),
        argued,
        edits,
    )


# --- loops of pickled messages --------------------------------------------------------------------


def _one_list(program: Program, send: End, receive: End) -> Iterator[ProgramProposal]:
    """Yield one message that is the list of what a loop sends, object by object."""
    giver, taker = _loop_of_objects(program, send), _loop_of_objects(program, receive)
    sent, step = send.step.send, send.step
    if giver is None or taker is None or sent is None or giver.trips != taker.trips:
        return
    tags = [_tag(send.step, giver), _tag(receive.step, taker)]
    if "tag" in receive.step.places and (tags[0] != tags[1] or giver.low != taker.low):
        return
    # a tag that counts messages is no longer needed where nothing else may take the list
    counts = any("k" in free_symbols(tag) for tag in tags if tag is not None)
    buffers = (end for ends in meetings(program, pickled=False) for side in ends for end in side)
    meets = counts and any(_may_meet(send, one) or _may_meet(one, receive) for one in buffers)
    names = ("dest", "source") if counts else ("dest", "source", "tag")
    given = [", ".join(keywords(end.step, names, program)) for end in (send, receive)]
    node, obj = statement_at(giver.span, program.context), argument(step, "obj", program)
    if not isinstance(node, ast.For) or obj is None or len(node.body) != 1 or node.orelse:
        return
    header = f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}"
    line = f"{step.receiver}.send([{obj} {header}], {given[0]})"
    place = span_of(node, program.context.lines)
    taking = _taken(program, receive.step, taker, f"{receive.step.receiver}.recv({given[1]})")
    kept = used_outside(bound_names([node.target]), place, send.function, program)
    edits: Edits | str = (
        "the loop's index is used elsewhere, or what receives is no loop of its own"
    )
    if meets:
        edits = "what else is sent there is told from it by its tag"
    elif taking is not None and kept is None and starts_line(place, program.context):
        edits = together(in_place_of(place, [line], program.context), taking)
    listed = replace(sent, kind=PayloadKind.OBJECT, parts=(sent,), length=giver.trips)
    yield offer(
        send.function,
        send.visit.loops[:-1],
        step.span,
        f"send all of `{sent.text}` as one list, not in a message for each",
        "every message costs a start-up time besides its bytes, and a pickle",
        (giver,),
        (replace(step, send=replace(listed, view=None, count=None)),),
        "the same objects come in the same order; but one large message waits for its receiver,"
        " where a program may rely on small ones being buffered",
        edits,
    )


def _loop_of_objects(program: Program, end: End) -> Loop | None:
    """Return the loop around one end of pickled messages, all to or from the same rank."""
    step, loops = end.step, end.visit.loops
    if not loops or not step.blocking or step.mode or "status" in step.places:
        return None
    loop, others = loops[-1], [one for one in loops[-1].body if one != step]
    fixed = " ".join(argument(step, name, program) or "" for name in ("dest", "source"))
    if step not in loop.body or loop.trips is None or not is_counted(loop):
        return None
    if any(
        isinstance(one.step, Communicate | Leave | Unknown | Call) for one in walk(tuple(others))
    ):
        return None
    return None if words(f"{fixed} {step.receiver}") & bound_in(program, loop) else loop


def _taken(program: Program, step: Communicate, loop: Loop, call: str) -> Edits | None:
    """Return what takes objects from a list that one message brought."""
    context, lines = program.context, program.context.lines
    node, statement = statement_at(loop.span, context), statement_at(step.statement, context)
    if isinstance(node, ast.For):
        one = fresh_name("one", context.identifiers)
        target, over = span_of(node.target, lines), span_of(node.iter, lines)
        text = f"zip({context.text(over)}, {call})"
        header = f"{ast.unparse(node.target)}, {one}"
        return lambda: (Edit(target, header), Edit(over, text), Edit(step.span, one))
    for part in ast.walk(statement or ast.Pass()):
        found = isinstance(part, ast.ListComp) and span_of(part.elt, lines) == step.span
        if isinstance(part, ast.ListComp) and found and ast.unparse(part).count(" for ") == 1:
            place = span_of(part, lines)
            return lambda: (Edit(place, call),)
    return None


TRANSFORM = ProgramRule("ADV603", "message-per-element", __doc__, propose)
