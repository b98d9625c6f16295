"""ADV603: one message instead of one for every element or row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from advisor.finding import Applicability
from advisor.ir.proposal import Legality
from advisor.ir.spmd.memory import At, Contiguity, Index, Part, View, contiguity
from advisor.ir.spmd.payloads import Payload, PayloadKind
from advisor.ir.spmd.program import Program
from advisor.ir.spmd.proposal import ProgramProposal
from advisor.ir.spmd.steps import Loop, LoopKind, Op
from advisor.source import Edit, Span
from costdb.expr import Expr, free_symbols, num, sym
from costdb.expr.nodes import Num
from transforms.messages.message_ends import End, only_pairs
from transforms.messages.pipelines import pipelines
from transforms.programs.spmd_calls import is_simple

DOCUMENTATION = """\
# ADV603 message-per-element

**What it does.** Finds loops that send neighbouring elements or rows one by one to the same rank,
where the other end receives them one by one, and sends all of them in one message. Where ranks
form a pipeline, each receiving a row, working on it and passing it on, it tries how many rows to
pass on at once.

**Why it costs.** Every message costs a start-up time, however little it carries: as much as some
thousand bytes. A loop of `n` messages pays for it `n` times, and for `n` calls from Python. In a
pipeline larger pieces let the last rank start later, so that some size is best.

**Example**

```python
for i in range(n):
    comm.Send(a[i, :], dest=1)
```

**Use instead**

```python
comm.Send(a[0:n, :], dest=1)
```

The receiving loop changes in the same edit.

**When it stays quiet.** Loops that do anything besides, but for pipelines as above; other ends
that are not found or may be others; tags or partners that change from message to message; elements
that do not lie one after another in memory.

**Fix safety.** The same elements come to the same places. The fix is unsafe, because one large
message waits for its receiver where small ones may be buffered: a program that relies on that,
which MPI does not promise, would then wait for ever. Pieces of pipelines are shown only.

**Models used.** Lines or message grades (messages), and the interpreter's time for an iteration.

**References.** The latency and bandwidth model of messages, in textbooks on parallel programming.
"""

_RANGE = re.compile(r"for\s+(\w+)\s+in\s+range\s*\((.*)\)\s*:\s*(?:#.*)?", re.DOTALL)


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


@dataclass(frozen=True, slots=True)
class MessagePerElement:
    """The rule ADV603; see its page in `documentation`."""

    code: str = "ADV603"
    name: str = "message-per-element"
    documentation: str = DOCUMENTATION

    def propose_program(self, program: Program) -> Iterator[ProgramProposal]:
        """Yield one message for every pair of loops whose messages meet."""
        for send, receive in only_pairs(program, pickled=False):
            giver, taker = _loop(program, send), _loop(program, receive)
            if giver is None or taker is None or not _agree(giver, taker):
                continue
            yield _proposal(program, giver, taker)
        for function in program.functions:
            yield from pipelines(function)


def _loop(program: Program, end: End) -> _Loop | None:
    """Return the loop around one end, if it only walks along one stretch of memory."""
    step, visit = end.step, end.visit
    payload = step.send if step.op is Op.SEND else step.receive
    if not visit.loops or not step.blocking or payload is None or payload.view is None:
        return None
    loop = visit.loops[-1]
    if loop.kind is not LoopKind.COUNTED or loop.step != 1 or loop.trips is None:
        return None
    if loop.body != (step,) or loop.by_rank or "status" in step.places:
        return None
    if payload.kind is not PayloadKind.ARRAY or payload.datatype is not None or payload.described:
        return None
    varying = {loop.variable}
    partner = step.dest if step.op is Op.SEND else step.source
    fixed = [step.tag, None if partner is None else partner.rank]
    if any(part is not None and free_symbols(part) & varying for part in fixed):
        return None
    whole = _union(payload.view, loop)
    if whole is None or contiguity(whole) is not Contiguity.YES:
        return None
    return _Loop(end, loop, payload, whole, _text(program, payload, loop))


def _union(view: View, loop: Loop) -> View | None:
    """Return what all iterations touch together: one index that moves on by what it spans."""
    if view.region is None or view.transposed or view.flat:
        return None
    found: list[Index] = []
    moved = 0
    for index in view.region:
        if loop.variable not in _symbols(index):
            found.append(index)
            continue
        moved += 1
        low, high = _ends(index)
        # element by element: one index, next to that of the iteration before
        if high - low != num(1) or not isinstance(low - sym(loop.variable), Num):
            return None
        offset = low - sym(loop.variable)
        found.append(Part(loop.low + offset, loop.high + offset))
    return replace(view, region=tuple(found)) if moved == 1 else None


def _symbols(index: Index) -> frozenset[str]:
    low, high = _ends(index)
    return free_symbols(low) | free_symbols(high)


def _ends(index: Index) -> tuple[Expr, Expr]:
    match index:
        case At(index=place):
            return place, place + 1
        case Part(low=low, high=high):
            return low, high
    return num(0), index.high


def _text(program: Program, payload: Payload, loop: Loop) -> str | None:
    """Return what all messages carry, as Python: the loop's index becomes its range."""
    header = _RANGE.fullmatch(_line_of(program, loop))
    if header is None:
        return None
    name, bounds = header[1], _split(header[2])
    if len(bounds) not in (1, 2):
        return None
    low, high = bounds if len(bounds) == 2 else ("0", bounds[0])
    one = re.fullmatch(r"([\w.]+)\s*\[(.*)\]", payload.text, re.DOTALL)
    if one is None or any("\n" in bound for bound in bounds):
        return None
    subscripts = _split(one[2])
    own = [place for place, text in enumerate(subscripts) if re.search(rf"\b{name}\b", text)]
    if len(own) != 1 or not _is_one(subscripts[own[0]], name):
        return None
    subscripts[own[0]] = f"{low}:{high}"
    return f"{one[1]}[{', '.join(subscripts)}]"


def _is_one(subscript: str, name: str) -> bool:
    """Return whether a subscript is the index alone, or the range of it and its neighbour."""
    bare = re.sub(r"\s+", "", subscript)
    return bare in (name, f"{name}:{name}+1")


def _split(text: str) -> list[str]:
    """Return what commas outside of brackets separate."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    return [*parts, text[start:].strip()]


def _line_of(program: Program, loop: Loop) -> str:
    span = loop.span
    lines = program.context.lines[span.start_line - 1 : span.end_line]
    return "\n".join(lines)[span.start_column :].strip()


def _agree(giver: _Loop, taker: _Loop) -> bool:
    """Return whether both ends pass on as many elements, of the same type, equally often."""
    return (
        giver.loop.trips == taker.loop.trips
        and giver.payload.count == taker.payload.count
        and giver.payload.count is not None
        and giver.payload.dtype is not None
        and giver.payload.dtype == taker.payload.dtype
        and len(giver.end.visit.loops) == len(taker.end.visit.loops)
    )


def _proposal(program: Program, giver: _Loop, taker: _Loop) -> ProgramProposal:
    step = giver.end.step
    whole = replace(giver.payload, view=giver.whole, count=giver.whole.count)
    context = program.context
    writable = all(
        one.text is not None
        and is_simple(one.end.step, program)
        and not context.lines[one.loop.span.start_line - 1][: one.loop.span.start_column].strip()
        for one in (giver, taker)
    )
    legality = Legality(
        Applicability.UNSAFE,
        "the same elements come to the same places; but one large message waits for its"
        " receiver, where a program may rely on small ones being buffered",
    )
    if not writable:
        legality = Legality(Applicability.DISPLAY, legality.argument)
    what = giver.text or giver.payload.text
    return ProgramProposal(
        title=f"send `{what}` in one message, not one for each `{giver.payload.text}`",
        reason="every message costs a start-up time besides its bytes, and a call from Python",
        span=step.span,
        function=giver.end.function,
        before=(giver.loop,),
        after=(replace(step, send=whole),),
        legality=legality,
        loops=giver.end.visit.loops[:-1],
        edits=partial(_edits, giver, taker, program) if writable else tuple,
    )


def _edits(giver: _Loop, taker: _Loop, program: Program) -> tuple[Edit, ...]:
    return tuple(_edit(one, program) for one in (giver, taker))


def _edit(one: _Loop, program: Program) -> Edit:
    """Return the edit that puts a call in the place of its loop, comments kept above it."""
    context, step, loop = program.context, one.end.step, one.loop
    statement, place = step.statement, one.payload.span
    first = context.text(Span(*_start(statement), *_start(place)))
    last = context.text(Span(*_end(place), *_end(statement)))
    indent = context.lines[loop.span.start_line - 1][: loop.span.start_column]
    header = context.lines[loop.span.start_line - 1 : statement.start_line - 1]
    comments = [line[line.index("#") :] for line in header if "#" in line]
    lines = [*comments, f"{first}{one.text}{last}"]
    return Edit(Span(*_start(loop.span), *_end(statement)), f"\n{indent}".join(lines))


def _start(span: Span) -> tuple[int, int]:
    return span.start_line, span.start_column


def _end(span: Span) -> tuple[int, int]:
    return span.end_line, span.end_column


TRANSFORM = MessagePerElement()
