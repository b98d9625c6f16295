"""ADV601: send arrays as buffers, not as pickles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from advisor.finding import Applicability
from advisor.ir.proposal import Legality
from advisor.ir.spmd.memory import Allocation, Buffer, Order, Origin, View, Whole
from advisor.ir.spmd.payloads import Payload, PayloadKind
from advisor.ir.spmd.program import Program, SpmdFunction
from advisor.ir.spmd.proposal import ProgramProposal
from advisor.ir.spmd.steps import Allocate, Communicate, Copy, Op, Step, Visit
from advisor.source import Edit
from costdb.expr import Expr
from transforms.messages.message_ends import is_shift, only_pairs
from transforms.messages.pickled_exchanges import exchanged_lists
from transforms.programs.spmd_calls import (
    INTEGERS,
    argument,
    array_payload,
    is_contiguous,
    is_name,
    is_simple,
    is_uniform,
    keywords,
    shape_text,
    statement_edit,
)
from transforms.source.writing import fresh_name

DOCUMENTATION = """\
# ADV601 pickled-array

**What it does.** Finds arrays that go through mpi4py's lower-case methods again and again, and
proposes the upper-case ones, which take memory as it is. Both ends of a message change in one
edit, and the memory that is received into is allocated.

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

**When it stays quiet.** Numbers, text and other objects, which upper-case methods cannot send;
arrays whose element type or shape the source does not tell; shapes that differ from rank to rank,
which need counts first; lists for `alltoall` that are not written where they are sent, or whose
arrays may differ in length; messages whose other end is not found, or may be another; calls outside
loops, which are set-up or output; loops that only repeat a measurement.

**Fix safety.** Results are the same where elements only move, and where whole numbers are summed.
Sums of floating-point numbers are collected in another order, so they agree to rounding, and the
fix is unsafe. It is unsafe, too, where a list of arrays becomes one array. Where the shape cannot
be written at the place where memory is needed, the suggestion is shown only.

**Models used.** Pickle (serialisation, copies, the algorithms of the lower-case collectives), lines
or message grades (buffers).

**References.** mpi4py's own documentation on communicating Python objects and buffer-like objects.
"""

_SUMS = frozenset({"SUM", "PROD"})
_BITS = frozenset({"BAND", "BOR", "BXOR"})
_REASON = (
    "a lower-case method serialises the array, and makes a new one of the bytes at the other end;"
    " an upper-case one sends its memory as it is"
)
_MOVED = "the same elements come to the same ranks"

Edits = Callable[[], tuple[Edit, ...]]


def _none() -> tuple[Edit, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class PickledArray:
    """The rule ADV601; see its page in `documentation`."""

    code: str = "ADV601"
    name: str = "pickled-array"
    documentation: str = DOCUMENTATION

    def propose_program(self, program: Program) -> Iterator[ProgramProposal]:
        """Yield the buffer form of every pickled array that is sent in a loop."""
        for function in program.functions:
            for visit, step in function.operations():
                if not step.pickled or not step.blocking or function.weight(visit) == 0:
                    continue
                yield from exchanged_lists(program, function, visit, step)
                view = array_payload(step.send)
                if view is not None and is_uniform(program, view.shape or ()):
                    yield from _collective(program, function, visit, step, view)
        yield from _messages(program)


def _collective(
    program: Program, function: SpmdFunction, visit: Visit, step: Communicate, view: View
) -> Iterator[ProgramProposal]:
    """Yield the buffer form of a call that is both ends of its messages."""
    legality: Legality
    build: Callable[[], list[str] | None]
    match step.op:
        case Op.ALLREDUCE | Op.REDUCE if step.operation in _SUMS | _BITS:
            legality = _reduced(step, view)
            build = partial(_reduction, program, step, view)
        case Op.BCAST:
            legality = Legality(
                Applicability.UNSAFE,
                f"{_MOVED}; the root goes on with its own array, where `bcast` gave it a copy",
            )
            build = partial(_broadcast, program, function, step, view)
        case Op.GATHER | Op.ALLGATHER if not step.varying:
            legality = Legality(
                Applicability.UNSAFE,
                f"{_MOVED}, but in one array, of which each rank's is a row, not in a list",
            )
            build = partial(_gather, program, step, view)
        case Op.SENDRECV if is_shift(step):
            legality = Legality(Applicability.SAFE, f"{_MOVED}: every rank makes this exchange")
            build = partial(_exchange, program, step, view)
        case _:
            return
    lines = build() if is_simple(step, program) else None
    if lines is None:
        legality = _shown(legality)
    yield ProgramProposal(
        title=f"send `{_shortened(step)}` as a buffer, by `{step.method.capitalize()}`",
        reason=_REASON,
        span=step.span,
        function=function,
        before=(step,),
        after=_as_buffers(step, view),
        legality=legality,
        loops=visit.loops,
        edits=_none if lines is None else partial(_replaced, step, lines, program),
    )


def _replaced(step: Communicate, lines: list[str], program: Program) -> tuple[Edit, ...]:
    return (statement_edit(step, lines, program),)


def _shortened(step: Communicate) -> str:
    text = " ".join(step.send.text.split()) if step.send is not None else ""
    return text if len(text) <= 40 else f"{text[:37]}..."


def _shown(legality: Legality) -> Legality:
    return Legality(
        Applicability.DISPLAY,
        f"{legality.argument}; the memory to receive into cannot be written from here",
    )


def _reduced(step: Communicate, view: View) -> Legality:
    if view.dtype in INTEGERS or step.operation in _BITS:
        return Legality(
            Applicability.SAFE,
            "whole numbers give the same result in whatever order they are combined",
        )
    return Legality(
        Applicability.UNSAFE,
        "terms are collected in another order: floating-point sums are not associative, so"
        " results agree only to rounding",
    )


def _as_buffers(step: Communicate, view: View) -> tuple[Step, ...]:
    """Return the steps of the upper-case call: a staging copy, memory to receive into, the call."""
    many = step.op in (Op.GATHER, Op.ALLGATHER)
    shape = view.shape or ()
    extents = (step.communicator.size, *shape) if many else shape
    memory = _memory(step, view, extents)
    received = replace(_payload(memory, step), count=view.count if not many else _times(step, view))
    staging: tuple[Step, ...] = ()
    sent = step.send
    if not is_contiguous(view):
        staged = _payload(_memory(step, view, shape), step)
        assert staged.view is not None
        staging, sent = (Copy(staged.view, view, step.span, allocates=True),), staged
    call = replace(
        step,
        method=step.method.capitalize(),
        pickled=False,
        send=sent,
        receive=None if step.op in (Op.BCAST, Op.SEND) else received,
    )
    return *staging, Allocate(memory, step.span, filled=False), call


def _times(step: Communicate, view: View) -> Expr | None:
    return None if view.count is None else step.communicator.size * view.count


def _memory(step: Communicate, view: View, extents: tuple[Expr, ...]) -> Buffer:
    text = step.result or "received"
    allocation = Allocation(Origin.NEW, text, step.span)
    return Buffer(text, -1, view.dtype, extents, Order.C, allocation)


def _payload(memory: Buffer, step: Communicate) -> Payload:
    extents = memory.extents or ()
    whole = View(memory, tuple(Whole(extent) for extent in extents), memory.name, step.span)
    return Payload(
        PayloadKind.ARRAY, memory.name, step.span, view=whole, dtype=memory.dtype, count=whole.count
    )


# --- what is written in the place of a call: None where it cannot be ---------------------------


def _sent(program: Program, step: Communicate, view: View) -> tuple[str, list[str]] | None:
    """Return a name for what is sent, and what gives it one."""
    text = argument(step, "sendobj", program) or argument(step, "obj", program)
    numpy = program.context.array_module
    if text is None or numpy is None:
        return None
    if is_name(text) and is_contiguous(view):
        return text, []
    name = fresh_name("sent", program.context.identifiers)
    flat = " ".join(text.split())
    return name, [
        f"{name} = {flat if is_contiguous(view) else f'{numpy}.ascontiguousarray({flat})'}"
    ]


def _target(program: Program, step: Communicate, sent: str) -> tuple[str, list[str]]:
    """Return a name for what is received, and what remains to be done with it.

    A result that goes by the name of what is sent needs another one first, because memory that
    is sent cannot be received into.
    """
    if step.result is None or step.result != sent:
        return step.result or "", []
    name = fresh_name(f"{sent}_received", program.context.identifiers)
    return name, [f"{step.result} = {name}"]


def _reduction(program: Program, step: Communicate, view: View) -> list[str] | None:
    numpy, named = program.context.array_module, _sent(program, step, view)
    if named is None or step.result is None:
        return None
    sent, first = named
    name, rest = _target(program, step, sent)
    more = keywords(step, ("op", "root"), program)
    memory = f"{numpy}.empty_like({sent})"
    if step.op is Op.REDUCE:
        memory = f"{memory} if {_on_root(program, step)} else None"
    call = f"{step.receiver}.{step.method.capitalize()}({', '.join([sent, name, *more])})"
    return [*first, f"{name} = {memory}", call, *rest]


def _on_root(program: Program, step: Communicate) -> str:
    return f"{step.receiver}.Get_rank() == {argument(step, 'root', program) or '0'}"


def _broadcast(
    program: Program, function: SpmdFunction, step: Communicate, view: View
) -> list[str] | None:
    numpy, sent = program.context.array_module, argument(step, "obj", program)
    if numpy is None or sent is None or not is_name(sent) or step.result is None:
        return None
    if step.result != sent or not view.is_whole:
        return None  # the name that is sent keeps its value on other ranks
    shape = shape_text(view, function, program, step.span)
    if shape is None:
        return None
    root = argument(step, "root", program) or "0"
    unlike = f"{step.receiver}.Get_rank() != {root}"
    call = ", ".join([sent, *keywords(step, ("root",), program)])
    return [
        f"if {unlike}:",
        f"{program.context.indent}{sent} = {numpy}.empty({shape}, dtype={view.dtype!r})",
        f"{step.receiver}.Bcast({call})",
    ]


def _gather(program: Program, step: Communicate, view: View) -> list[str] | None:
    numpy, named = program.context.array_module, _sent(program, step, view)
    if named is None or step.result is None:
        return None
    sent, first = named
    name, rest = _target(program, step, sent)
    memory = f"{numpy}.empty(({step.receiver}.Get_size(), *{sent}.shape), dtype={sent}.dtype)"
    if step.op is Op.GATHER:
        memory = f"{memory} if {_on_root(program, step)} else None"
    call = ", ".join([sent, name, *keywords(step, ("root",), program)])
    return [
        *first,
        f"{name} = {memory}",
        f"{step.receiver}.{step.method.capitalize()}({call})",
        *rest,
    ]


def _exchange(program: Program, step: Communicate, view: View) -> list[str] | None:
    numpy, named = program.context.array_module, _sent(program, step, view)
    if named is None or step.result is None:
        return None
    sent, first = named
    if step.receive is not None or "status" in step.places:
        return None
    name, rest = _target(program, step, sent)
    given = keywords(step, ("dest", "sendtag", "source", "recvtag"), program)
    call = f"{step.receiver}.Sendrecv({', '.join([sent, *given, f'recvbuf={name}'])})"
    return [*first, f"{name} = {numpy}.empty_like({sent})", call, *rest]


# --- messages with two ends ---------------------------------------------------------------------


def _messages(program: Program) -> Iterator[ProgramProposal]:
    for send, receive in only_pairs(program, pickled=True):
        sender, receiver = send.step, receive.step
        view = array_payload(sender.send)
        if view is None or not is_uniform(program, view.shape or ()):
            continue
        if not (sender.blocking and receiver.blocking) or sender.mode:
            continue  # a pickle may be sent while its source changes, memory may not
        if 0 in (send.function.weight(send.visit), receive.function.weight(receive.visit)):
            continue
        edits: Edits = _none
        legality = Legality(
            Applicability.SAFE,
            f"{_MOVED}: within the file this receive takes this send's messages and no others",
        )
        shape = shape_text(view, receive.function, program, receiver.span)
        numpy = program.context.array_module
        simple = is_simple(sender, program) and is_simple(receiver, program)
        plain = receiver.receive is None and "status" not in receiver.places
        if simple and plain and shape and numpy and receiver.result:
            name = receiver.result
            given = keywords(receiver, ("source", "tag"), program)
            lines = [
                f"{name} = {numpy}.empty({shape}, dtype={view.dtype!r})",
                f"{receiver.receiver}.Recv({', '.join([name, *given])})",
            ]
            edits = partial(_both_ends, sender, receiver, view, lines, program)
        else:
            legality = _shown(legality)
        yield ProgramProposal(
            title=f"send `{_shortened(sender)}` as a buffer, by `Send` and `Recv`",
            reason=_REASON,
            span=sender.span,
            function=send.function,
            before=(sender,),
            after=_as_buffers(replace(sender, result=receiver.result), view),
            legality=legality,
            loops=send.visit.loops,
            edits=edits,
        )


def _both_ends(
    sender: Communicate, receiver: Communicate, view: View, lines: list[str], program: Program
) -> tuple[Edit, ...]:
    # the object's keyword is called otherwise in the upper-case form
    sent = argument(sender, "obj", program) or ""
    if not is_contiguous(view):
        sent = f"{program.context.array_module}.ascontiguousarray({sent})"
    given = keywords(sender, ("dest", "tag"), program)
    call = f"{sender.receiver}.Send({', '.join([sent, *given])})"
    return (
        statement_edit(sender, [call], program),
        statement_edit(receiver, lines, program),
    )


TRANSFORM = PickledArray()
