"""# ADV602 face-copied

**What it does.** Finds faces of arrays that are copied before they are sent, or received into a
buffer and copied from there, though they are one stretch of memory that MPI can take as it is.

**Why it costs.** A row of an array in C order (a column of one in Fortran order) lies in memory as
a message does. Copying it reads and writes every element once more, and new memory for it is
allocated in each step.

**Example**

```python
comm.Sendrecv(u[1, :].copy(), dest=up, recvbuf=ghost, source=down)
u[-1, :] = ghost
```

**Use instead**

```python
comm.Sendrecv(u[1, :], dest=up, recvbuf=u[-1, :], source=down)
```

**When it stays quiet.** Faces across the storage order, which mpi4py refuses without a copy or a
derived datatype; sends that return before the message has left, whose copy protects it from what
is written next; copies and buffers that are used for anything else; neighbours that may be absent,
because a receive from nobody leaves its buffer as it was; faces that are not surely apart, or whose
array has another name under another shape; storage orders that the source does not tell;
`Sendrecv_replace`,
which sends what is in the buffer that it receives into.

**Fix safety.** The same elements go to the same places, and results are equal bit for bit.

**Models used.** Lines (array statements, messages).

**References.** mpi4py's documentation on buffer-like objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from advisor.ir.spmd.memory import Order, Origin, Payload, View
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Communicate, Copy, Op, Visit
from advisor.source import Edit
from costdb.expr import Expr
from transforms.kit import memory
from transforms.kit.names import is_name, occurrences
from transforms.kit.programs import ProgramRule, offer
from transforms.kit.ranks import named_rank
from transforms.kit.rewrite import line_of, stands_alone

_COPY = ".copy()"
_SENDS = frozenset({Op.SEND, Op.SENDRECV})
_REASON = (
    "the face is one stretch of memory, so MPI can take it as it is; the copy reads and writes"
    " every element once more"
)


def propose(program: Program) -> Iterator[ProgramProposal]:
    """Yield every copied face that could be sent, or received, in its place."""
    for function in program.functions:
        for visit in function.visits():
            step = visit.step
            if function.weight(visit) == 0:
                continue
            if isinstance(step, Communicate) and not (step.pickled or step.replaces):
                yield from _sent(program, function, visit, step)
                yield from _received(program, function, visit, step)


# --- copies of what could be sent, or received, in its place --------------------------------------


def _sent(
    program: Program, function: SpmdFunction, visit: Visit, step: Communicate
) -> Iterator[ProgramProposal]:
    sent = step.send
    if step.op not in _SENDS or not step.blocking or sent is None:
        return
    if sent.view is None or sent.described:
        return
    buffer = sent.view.buffer
    made, source = buffer.allocation, buffer.allocation.copied
    if made.origin is not Origin.COPY or source is None or not made.text.endswith(_COPY):
        return
    if not (sent.view.is_whole and _same_stretch(source, sent)):
        return
    copy, got = _copy_before(visit, sent.view, source), step.receive
    if copy is None:
        return
    if got is not None and (got.view is None or not _is_beside(program, got.view, source)):
        return
    inline = sent.text == made.text
    if not inline and (
        not is_name(sent.text) or len(occurrences(sent.text, function, program)) != 2
    ):
        return
    place, text = sent.span if inline else made.span, program.context.text(source.span)
    yield offer(
        function,
        visit,
        step.span,
        f"send `{source.text}` as it is, without the copy",
        _REASON,
        (copy, step),
        (replace(step, send=replace(sent, view=source, text=source.text)),),
        "nothing is written to the face before the call has sent it, and nothing else uses the"
        " copy",
        lambda: (Edit(place, text),),
        safe=True,
    )


def _is_beside(program: Program, received: View, face: View) -> bool:
    """Return whether what is received surely does not come to a face, which may be a caller's."""
    if memory.may_share(received, face):
        return memory.disjoint(received, face, memory.written_sizes(program))
    return memory.own_memory(received)


def _same_stretch(face: View, payload: Payload) -> bool:
    """Return whether a face is in memory what the payload's array is."""
    shape = face.shape
    if not memory.is_stretch(face) or shape is None or face.dtype != payload.dtype:
        return False
    if face.dtype is None or face.count != payload.count:
        return False
    return len(shape) == 1 or face.order is Order.C


def _copy_before(visit: Visit, made: View, source: View) -> Copy | None:
    """Return the step that makes a copy, if nothing is written to its source up to a call."""
    for step in reversed(visit.block[: visit.position]):
        if isinstance(step, Copy) and step.allocates and memory.same_memory(step.target, made):
            return step
        writes = memory.written(step)
        if writes is None or any(memory.may_share(view, source) for view in writes):
            return None
    return None


def _received(
    program: Program, function: SpmdFunction, visit: Visit, step: Communicate
) -> Iterator[ProgramProposal]:
    unpacking = _unpacking(visit, step)
    got = step.receive
    if unpacking is None or got is None or got.view is None or not is_name(got.text):
        return
    pairs = [
        (other, found)
        for other_visit, other in function.operations()
        if (found := _unpacking(other_visit, other)) is not None
        and other.receive is not None
        and other.receive.text == got.text
    ]
    # each receive and each unpacking mentions the buffer, and so does what allocates it
    if len(occurrences(got.text, function, program)) != 2 * len(pairs) + 1:
        return
    if any(named_rank(other.source) is None or not other.blocking for other, _ in pairs):
        return
    face, context = unpacking.target, program.context
    if not (memory.own_memory(got.view) and _same_stretch(face, got)):
        return
    sent = None if step.send is None else step.send.view
    if step.op is Op.SENDRECV and (
        sent is None or not _separate(sent, face, memory.written_sizes(program))
    ):
        return
    if not stands_alone(context, unpacking.span):
        return
    place, gone = got.span, unpacking.span
    if not context.lines[gone.end_line - 1][gone.end_column :].strip():
        gone = line_of(gone.start_line, gone.end_line)  # a comment stays where it is
    yield offer(
        function,
        visit,
        unpacking.span,
        f"receive into `{face.text}`, not into `{got.text}` and copy",
        _REASON,
        (step, unpacking),
        (replace(step, receive=replace(got, view=face, text=face.text)),),
        "the face is overwritten right after the message came, and nothing else uses the buffer",
        lambda: (Edit(place, context.text(face.span)), Edit(gone, "")),
        safe=True,
    )


def _unpacking(visit: Visit, step: Communicate) -> Copy | None:
    """Return the copy right behind a receive that takes all of its buffer elsewhere."""
    got = step.receive
    if step.op not in (Op.RECV, Op.SENDRECV) or step.pickled or not step.blocking:
        return None
    if step.replaces:
        return None
    if got is None or got.view is None or got.described or not got.view.is_whole:
        return None
    if "status" in step.places or visit.position + 1 >= len(visit.block):
        return None
    then = visit.block[visit.position + 1]
    if not isinstance(then, Copy) or then.allocates:
        return None
    same = memory.same_memory(then.source, got.view) and then.source.is_whole
    return then if same and not memory.may_share(then.target, got.view) else None


def _separate(sent: View, face: View, sizes: Mapping[str, Expr]) -> bool:
    copied = sent.buffer.allocation.copied
    if (
        copied is not None
        and memory.may_share(copied, face)
        and not memory.disjoint(copied, face, sizes)
    ):
        return memory.may_share(sent, face) and memory.apart(
            sent, face, sizes
        )  # the copy may be left out
    return memory.apart(sent, face, sizes)


TRANSFORM = ProgramRule("ADV602", "face-copied", __doc__, propose)
