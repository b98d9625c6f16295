"""# ADV601 pickled-array

**What it does.** Finds arrays that go through mpi4py's lower-case methods again and again, and
proposes the upper-case ones, which take memory as it is. Both ends of a message change in one
edit, and the memory that is received into is allocated. An array that is sent as a list of its
elements, by a name or not, is shown, as are lists of numbers that all exchange, several arrays that
go as one object, and lists of arrays whose element type the source does not tell.

**Why it costs.** Lower-case methods take any Python object. They turn it into bytes, send how many
there are, send them, and make a new object of them. For an array that is two copies and an
allocation on top of the message. Collectives cost more: `allreduce` combines in Python, pickle by
pickle along a tree to rank 0, and broadcasts a pickle of the result, where `Allreduce` runs the
algorithm that the MPI library chose for the size.

**Example**

```python
total = comm.allreduce(counts, op=MPI.SUM)
```

**Use instead**

```python
total = np.empty_like(counts)
comm.Allreduce(counts, total, op=MPI.SUM)
```

Where ranks have arrays of other shapes, or only the root knows the shape, shapes are told first:

```python
shapes = comm.allgather(mine.shape)
sizes = [int(np.prod(one)) for one in shapes]
joined = np.empty(sum(sizes), dtype=mine.dtype)
comm.Allgatherv(np.ascontiguousarray(mine), (joined, sizes))
```

**When it stays quiet.** Numbers, text and other objects, which upper-case methods cannot send;
arrays by themselves whose element type the source does not tell; messages of two ends whose shapes
differ, or whose other end is not found, or may be another; lists that may hold something else than
arrays; calls that only some ranks make there; what runs once and saves nothing to speak of; loops
that only repeat a measurement.

**Fix safety.** Results are the same where elements only move, and where whole numbers are summed.
Sums of floating-point numbers are collected in another order, so they agree to rounding, and the
fix is unsafe. It is unsafe, too, where the arrays of a list become rows of one, or shapes are told
first. Where the memory to receive into cannot be written, the suggestion is shown only.

**Models used.** Pickle (serialisation, copies, the algorithms of the lower-case collectives), lines
or message grades (buffers).

**References.** mpi4py's own documentation on communicating Python objects and buffer-like objects.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from advisor.finding import Applicability
from advisor.ir.spmd.memory import Payload, PayloadKind, View, elements, unknown_count
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Communicate, Compute, Copy, Op, PartnerKind, Visit, Wait, walk
from advisor.source import Edit, Span, every
from costdb.expr import num
from costdb.expr.nodes import Num
from transforms.kit import memory, rewrite
from transforms.kit.names import (
    argument,
    is_name,
    is_simple,
    is_uniform,
    keywords,
    shape_text,
    uses_of,
)
from transforms.kit.programs import ProgramRule, offer, sent_text, shortened
from transforms.kit.ranks import is_exchange, named_rank, on_all_ranks
from transforms.messages.buffers import LISTS, Writer, as_buffers, carried, shapes_of, told_first
from transforms.messages.combined_parts import combined
from transforms.messages.message_loops import End, meetings

_MAYBE = (
    ast.ListComp
    | ast.SetComp
    | ast.DictComp
    | ast.GeneratorExp
    | ast.Lambda
    | ast.IfExp
    | ast.BoolOp
)
"""Expressions whose parts are evaluated as often as data say."""
_SUMS = frozenset({"SUM", "PROD"})
_BITS = frozenset({"BAND", "BOR", "BXOR"})
_REASON = (
    "a lower-case method serialises the array, and makes a new one of the bytes at the other end;"
    " an upper-case one sends its memory as it is"
)
_MOVED = "the same elements come to the same ranks"
_KEEPS = frozenset({Op.BCAST, Op.GATHER, Op.ALLGATHER, Op.SENDRECV, Op.SEND})
"""Calls that bring what they are given: a reduction joins lists."""
_ALIKE = frozenset({Op.SENDRECV, Op.REDUCE, Op.ALLREDUCE})
_WHOLE = frozenset({Op.BCAST, Op.GATHER, Op.ALLGATHER})
_LISTED = ".tolist()"
_UNWRITTEN = "; the memory to receive into cannot be written from here"


def propose(program: Program) -> Iterator[ProgramProposal]:
    """Yield the buffer form of every pickled array that is sent in a loop."""
    others = combined(program)
    for function in program.functions:
        for visit, step in function.operations():
            if not step.pickled or not step.blocking or step.span in others:
                continue
            yield from _listed_arrays(program, function, visit, step)
            yield from _listed_numbers(function, visit, step)
            if not on_all_ranks(function.visits(), visit):
                continue
            view = memory.array_payload(step.send)
            found: list[ProgramProposal] = []
            uniform = view is not None and is_uniform(program, view.shape or ())
            # parts that are combined are alike, or the program would fail
            if view is not None and (uniform or step.op in _ALIKE):
                found = list(_collective(program, function, visit, step, view))
            shown = all(one.legality.applicability is Applicability.DISPLAY for one in found)
            told = list(announced(program, function, visit, step)) if shown else []
            yield from told or found
    yield from _messages(program)


def _collective(
    program: Program, function: SpmdFunction, visit: Visit, step: Communicate, view: View
) -> Iterator[ProgramProposal]:
    """Yield the buffer form of a call that is both ends of its messages."""
    safe, form, ended = False, "same", list[str]()
    match step.op:
        case Op.ALLREDUCE | Op.REDUCE if step.operation in _SUMS | _BITS:
            whole = view.dtype in memory.INTEGERS or step.operation in _BITS
            safe = whole and is_uniform(program, view.shape or ())
            words = (
                "whole numbers give the same result in whatever order they are combined"
                if whole
                else "terms are collected in another order: floating-point sums are not"
                " associative, so results agree only to rounding"
            )
        case Op.BCAST:
            words = f"{_MOVED}; the root goes on with its own array, where `bcast` gave it a copy"
        case Op.GATHER | Op.ALLGATHER if not step.varying:
            words, form = f"{_MOVED}, as the rows of one array that a list is made of", "rows"
        case Op.SENDRECV if is_exchange(step):
            safe, words = True, f"{_MOVED}: every rank makes this exchange"
            if step.source is not None and step.source.may_be_nobody:
                if program.mpi_module is None:
                    return
                # memory is left as it is where nobody sends
                text = step.source.text
                whom = text if text.replace(".", "").isidentifier() else f"({text})"
                ended = [
                    f"if {whom} == {program.mpi_module}.PROC_NULL:",
                    f"{program.context.indent}{step.result} = None",
                ]
        case _:
            return
    lines = None
    same = _is_alike(program, step.send, view)
    alike = same or step.operation is not None
    words += f"; if `{sent_text(step)}` is as long on every rank" * (not same)
    plain = is_simple(step, program) and bool(step.result)
    writer, edits = Writer(program, step, step.op), None
    name = str(step.result) if plain else writer.name("received")
    if alike and step.op is Op.BCAST and plain:
        lines = _broadcast(program, function, step, view)
    elif alike and step.op is not Op.BCAST and step.receive is None and "status" not in step.places:
        if form == "rows":
            ended = [writer.made(name, f"list({name})")]
        lines = writer.alike(view, name, form, ended)
    if lines is not None:
        edits = _placed(program, step, lines, name)
    yield offer(
        function,
        visit,
        step.span,
        f"send `{sent_text(step)}` as a buffer, by `{step.method.capitalize()}`",
        _REASON,
        (step,),
        as_buffers(step, view),
        words + _UNWRITTEN * (edits is None),
        edits,
        safe=safe,
    )


def _is_alike(program: Program, sent: Payload | None, view: View) -> bool:
    """Return whether a part is surely as long at both ends: no slice is cut by its array's end."""
    return is_uniform(program, view.shape or ()) and (view.is_whole or memory.fits(sent))


def _broadcast(
    program: Program, function: SpmdFunction, step: Communicate, view: View
) -> list[str] | None:
    """Return a broadcast into memory of a shape that every rank knows."""
    numpy, sent = program.context.array_module, argument(step, "obj", program)
    if numpy is None or sent is None or not is_name(sent):
        return None
    if step.result != sent or not view.is_whole:
        return None  # the name that is sent keeps its value on other ranks
    shape, writer = shape_text(view, function, program, step.span), Writer(program, step, step.op)
    if shape is None:
        return None
    return [
        f"if {step.receiver}.Get_rank() != {writer.root}:",
        f"{program.context.indent}{sent} = {numpy}.empty({shape}, dtype={view.dtype!r})",
        f"{step.receiver}.Bcast({', '.join([sent, *keywords(step, ('root',), program)])})",
    ]


# --- messages with two ends ---------------------------------------------------------------------


def _messages(program: Program) -> Iterator[ProgramProposal]:
    for sends, receives in meetings(program, pickled=True):
        ends = [*sends, *receives]
        if any(end.step.op is Op.SENDRECV or end.step.mode for end in ends) or not receives:
            continue
        views = [view for end in sends if (view := memory.array_payload(end.step.send)) is not None]
        if len(views) < len(sends) or len({(view.dtype, view.shape) for view in views}) > 1:
            continue
        if not is_uniform(program, views[0].shape or ()):
            continue
        made = [_sending(program, end, view) for end, view in zip(sends, views, strict=True)]
        made += [_receiving(program, end, views[0]) for end in receives]
        edits = [edit for edit in made if edit is not None]
        # a pickle is sent as it was made, memory as it is when the message leaves
        later = [
            end.step.send.text
            for end, view in zip(sends, views, strict=True)
            if end.step.send is not None and not end.step.blocking and memory.is_stretch(view)
        ]
        words = f"{_MOVED}: within the file these receives take these sends' messages and no others"
        if any(_changes(end, view) for end, view in zip(sends, views, strict=True)):
            continue
        absent = [
            end.partner.text
            for end in receives
            if end.partner is not None
            and end.partner.kind is not PartnerKind.ANY
            and named_rank(end.partner) is None
        ]
        if absent:
            words += f"; if `{absent[0]}` is never PROC_NULL, from which `recv` gives None"
        alike = all(_is_alike(program, end.step.send, views[0]) for end in sends)
        words += f"; if `{sent_text(sends[0].step)}` is as long at both ends" * (not alike)
        if later:
            words += f"; if `{later[0]}` is not changed until the request has been waited for"
        first = sends[0]
        both = [
            (one.step, as_buffers(replace(one.step, result=receives[0].step.result), view))
            for one, view in zip(sends, views, strict=True)
            if one.function is first.function and one.visit.loops == first.visit.loops
        ]
        edits *= alike
        yield offer(
            first.function,
            first.visit,
            first.step.span,
            f"send `{sent_text(first.step)}` as a buffer, by `{first.step.method.capitalize()}`"
            " and `Recv`",
            _REASON,
            tuple(step for step, _ in both),
            tuple(step for _, steps in both for step in steps),
            words + _UNWRITTEN * (len(edits) < len(made)),
            rewrite.together(*edits) if len(edits) == len(made) else None,
            safe=not (later or absent),
        )


def _sending(program: Program, end: End, view: View) -> rewrite.Edits | None:
    """Return the edit of one end that sends; None where it cannot be written."""
    step, context = end.step, program.context
    # the object's keyword is called otherwise in the upper-case form
    sent = argument(step, "obj", program)
    if sent is None or "#" in context.text(step.span):
        return None
    if not memory.is_stretch(view):
        if context.array_module is None:
            return None
        sent = f"{context.array_module}.ascontiguousarray({sent})"
    given = ", ".join([sent, *keywords(step, ("dest", "tag"), program)])
    call = f"{step.receiver}.{step.method.capitalize()}({given})"
    return rewrite.in_place_of(step.span, [call], context)


def _receiving(program: Program, end: End, view: View) -> rewrite.Edits | None:
    """Return the edit of one end that receives; None where it cannot be written."""
    step, context = end.step, program.context
    if not step.blocking or step.receive is not None or "status" in step.places:
        return None
    numpy, lines = context.array_module, list[str]()
    into = _stored(end, view, program)
    if not into:
        shape = shape_text(view, end.function, program, step.span)
        if not (is_simple(step, program) and shape and numpy and step.result):
            return None
        into = step.result
        lines = [f"{into} = {numpy}.empty({shape}, dtype={view.dtype!r})"]
    given = ", ".join([into, *keywords(step, ("source", "tag"), program)])
    lines.append(f"{step.receiver}.Recv({given})")
    return rewrite.in_place_of(step.statement, lines, context)


def _changes(end: End, view: View) -> bool:
    """Return whether an array surely changes while it waits to be sent."""
    step, visit = end.step, end.visit
    if step.blocking or not memory.is_stretch(view):
        return False
    for other in visit.block[visit.position + 1 :]:
        if isinstance(other, Wait):
            return False
        if any(memory.may_share(one, view) for one in memory.written(other) or ()):
            return True
    return False


def _stored(end: End, view: View, program: Program) -> str:
    """Return the text of the stretch of memory that an object is stored to as it comes."""
    visit, context = end.visit, program.context
    match visit.block[visit.position + 1 : visit.position + 2]:
        case (Copy(target=target, span=span),) if end.step.statement.contains(span):
            into, equals, call = context.text(end.step.statement).partition("=")
            same = (target.shape, target.dtype) == (view.shape, view.dtype)
            alone = call.strip() == context.text(end.step.span)
            if same and equals and memory.is_stretch(target) and alone and "#" not in into:
                return into.strip()
    return ""


# --- shapes first -------------------------------------------------------------------------------


def announced(
    program: Program, function: SpmdFunction, visit: Visit, step: Communicate
) -> Iterator[ProgramProposal]:
    """Yield the buffer form of a collective that tells the shapes of what it carries first."""
    part, sent = _part(step), step.send
    if part is None or sent is None or "status" in step.places:
        return
    title = f"tell the shapes of `{sent_text(step)}` first, then send them as buffers"
    after, several = told_first(step, step.op, part), _is_several(step) or part.dtype is None
    if several:
        varying = step.op in LISTS or not isinstance(sent.length, Num)
        call = carried(step, step.op, part.dtype, (elements(part),), varying=varying)
        title = f"send the arrays of `{sent_text(step)}` as one, by `{call.method}`"
        after = (*after[2:-1], call)
    yield offer(
        function,
        visit,
        step.span,
        title,
        "a lower-case method serialises every array, and makes new ones of the bytes at the other"
        " end; an upper-case one sends memory as it is",
        (step,),
        after,
        "the same elements come to the same ranks, in arrays of the same shapes, if all are of the"
        " element type that the source shows",
        _edits(program, step, part) or "the statement or the element type is of another kind",
        conditions=("every rank knows how much comes from each",) * several,
    )


def _part(step: Communicate) -> Payload | None:
    """Return what goes to a rank, or comes from one, if it is surely an array or some arrays."""
    sent = step.send
    if sent is None or (step.op not in LISTS and step.op not in _WHOLE):
        return None
    if sent.kind is PayloadKind.ARRAY and step.op not in LISTS:
        return sent if sent.dtype in memory.SENDABLE else None
    kinds = {(part.kind, part.dtype) for part in sent.parts}
    known = sent.kind is PayloadKind.OBJECT and len(kinds) == 1 and not _may_be_nothing(sent.text)
    if not known or sent.parts[0].kind is not PayloadKind.ARRAY:
        return None
    first = sent.parts[0]
    if first.dtype not in memory.SENDABLE | {None} or sent.length in (None, num(1)):
        return None
    if step.op in LISTS:
        return first
    counts = [elements(one) for one in sent.parts]
    count = sum(counts[1:], counts[0]) if len(counts) > 1 else counts[0] * sent.length
    return replace(first, view=None, count=count)


def _is_several(step: Communicate) -> bool:
    """Return whether a call sends a tuple or a list to each, not as many things as there are."""
    return step.op in _WHOLE and step.send is not None and step.send.kind is PayloadKind.OBJECT


def _may_be_nothing(text: str) -> bool:
    """Return whether a list may hold something else than arrays: a choice is made for each."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return True
    made = node.elt if isinstance(node, ast.ListComp) else node
    return any(every(ast.IfExp | ast.BoolOp, made)) and made is not node


def _edits(program: Program, step: Communicate, part: Payload) -> rewrite.Edits | None:
    """Return what tells shapes before a statement, and uses what came in the place of its call."""
    text = argument(step, "sendobj", program) or argument(step, "obj", program)
    if (
        text is None
        or program.context.array_module is None
        or part.dtype is None
        or _is_several(step)
    ):
        return None
    writer = Writer(program, step, step.op, part.dtype)
    name, flat = writer.name("received"), " ".join(text.split())
    if is_simple(step, program) and step.result not in (None, text):
        name = str(step.result)
    own = text if text.isidentifier() else writer.name("sent")
    lines = [] if own == text else [f"{own} = {flat}"]
    root, others = writer.told(own, name)
    lines += writer.branch(root, others) if others else root
    return _placed(program, step, lines, name)


def _placed(
    program: Program, step: Communicate, lines: list[str], name: str
) -> rewrite.Edits | None:
    """Return what puts lines in the place of a call, or ahead of its statement, and then a name."""
    context, place = program.context, step.statement
    if is_simple(step, program) and name == step.result:
        return rewrite.in_place_of(place, lines, context)
    node = rewrite.statement_at(place, context)
    if not isinstance(node, ast.Assign | ast.AugAssign | ast.Return | ast.Expr):
        return None
    if not rewrite.starts_line(place, context) or "#" in context.text(step.span):
        return None
    if not _comes_first(node, step.span, context.lines):
        return None
    indent = rewrite.indent_at(place, context)
    ahead = "".join(f"{line}\n{indent}" for line in lines)
    return lambda: (Edit(rewrite.before(place), ahead), Edit(step.span, name))


def _comes_first(node: ast.stmt, call: Span, lines: list[str]) -> bool:
    """Return whether a statement makes a call once, and before any other."""
    around = [*every(ast.expr, node)]
    around = [one for one in around if rewrite.span_of(one, lines).contains(call)]
    for one in around:
        if isinstance(one, _MAYBE | ast.Starred) and rewrite.span_of(one, lines) != call:
            return False
    others = [one for one in every(ast.Call, node) if one not in around]
    return all(
        call.contains(rewrite.span_of(one, lines)) or rewrite.span_of(one, lines) > call
        for one in others
    )


# --- lists of numbers ---------------------------------------------------------------------------


def _listed_arrays(
    program: Program, function: SpmdFunction, visit: Visit, step: Communicate
) -> Iterator[ProgramProposal]:
    """Yield the array in the place of the list of its elements."""
    sent, made = step.send, _listing(program, function, visit, step)
    if sent is None or made is None or step.op not in _KEEPS or sent.kind is not PayloadKind.OBJECT:
        return
    view, text = made.reads[0], program.context.text(made.span)
    if view.dtype is None or view.count is None or text.count(_LISTED) != 1:
        return
    if sent.text.count(_LISTED) != 1 and not is_name(sent.text):
        return
    if step.op is not Op.SEND and not on_all_ranks(function.visits(), visit):
        return
    alike = step.op is Op.SENDRECV or is_uniform(program, view.shape or ())
    alike &= view.shape is not None
    array_text = shortened(text.partition(_LISTED)[0])
    array = Payload(PayloadKind.ARRAY, view.text, sent.span, view, view.dtype, view.count)
    after = replace(step, send=array)
    yield offer(
        function,
        visit,
        step.span,
        f"send `{array_text}` as a{' buffer' if alike else 'n array'}, not as a list of its"
        " elements",
        "a list is an object for each element, each of which is made, serialised and made again",
        (made, step),
        as_buffers(after, view) if alike else (after,),
        "the same elements come as an array",
        "what comes has to be used as an array, too",
    )


def _listed_numbers(
    function: SpmdFunction, visit: Visit, step: Communicate
) -> Iterator[ProgramProposal]:
    """Yield an exchange of arrays for one of lists with as many numbers as data say."""
    sent = step.send
    if step.op is not Op.ALLTOALL or sent is None or len(sent.parts) != 1:
        return
    (each,) = sent.parts
    if each.kind is not PayloadKind.OBJECT or len(each.parts) != 1:
        return
    length = unknown_count(each.text) if each.length is None else each.length
    (item,) = each.parts
    numbers = item.parts if item.kind is PayloadKind.OBJECT else (item,)
    known = all(one.kind is PayloadKind.SCALAR for one in numbers) and bool(numbers)
    if isinstance(length, Num) or not known or not on_all_ranks(function.visits(), visit):
        return
    call = carried(step, step.op, "float64", (length * len(numbers),), varying=True)
    listed = replace(sent, parts=(replace(each, length=length),))
    yield offer(
        function,
        visit,
        step.span,
        f"exchange arrays by `Alltoallv`, not `{shortened(sent.text)}` as lists of numbers",
        "a list is an object for each number, each of which is serialised and made again",
        (replace(step, send=listed),),
        (shapes_of(call), call),
        "the same numbers come to the same ranks, a column for each where items have several",
        "what makes the lists, and what comes of them, has to be arrays as well",
    )


def _listing(
    program: Program, function: SpmdFunction, visit: Visit, step: Communicate
) -> Compute | None:
    """Return the step that makes the list that a call sends, in its own statement or by a name."""
    for one in [inner.step for inner in walk(visit.block[: visit.position])][::-1]:
        if isinstance(one, Compute) and one.what == "tolist":
            own = step.statement.contains(one.span) or one.span == step.statement
            return one if own or _is_bound(program, function, one.span, step) else None
        if isinstance(one, Communicate):
            return None
    return None


def _is_bound(program: Program, function: SpmdFunction, made: Span, step: Communicate) -> bool:
    """Return whether something is made for the name that a call sends, which nothing else uses."""
    name = "" if step.send is None else step.send.text
    if not is_name(name) or uses_of(name, function, program, step.span):
        return False
    return any(
        isinstance(node, ast.Assign)
        and ast.unparse(node.targets[0]) == name
        and rewrite.span_of(node.value, program.context.lines).contains(made)
        for node in rewrite.nodes_of(program.context.source)
    )


TRANSFORM = ProgramRule("ADV601", "pickled-array", __doc__, propose)
