"""ADV602: copy faces as often as needed: not at all where they are one stretch of memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from advisor.finding import Applicability
from advisor.ir.proposal import Legality
from advisor.ir.spmd.memory import Order, Origin, View
from advisor.ir.spmd.payloads import Payload
from advisor.ir.spmd.program import Program, SpmdFunction
from advisor.ir.spmd.proposal import ProgramProposal
from advisor.ir.spmd.ranks import Partner, PartnerKind
from advisor.ir.spmd.steps import Communicate, Copy, Op, Visit
from advisor.source import Edit, Span
from costdb.expr import Expr
from transforms.faces.face_buffers import copied_twice, made_again
from transforms.programs.spmd_calls import is_contiguous, is_name
from transforms.programs.views import (
    disjoint,
    may_share,
    mentions,
    same_memory,
    written,
    written_sizes,
)
from transforms.source.writing import stands_alone

DOCUMENTATION = """\
# ADV602 face-copied

**What it does.** Finds faces of arrays that are copied before they are sent, or received into a
buffer and copied from there, though they are one stretch of memory that MPI can take as it is.
Of other faces it finds those that are copied twice, and receive buffers that are filled with zeros
in every step before the message overwrites them.

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
is written next; copies and buffers that are used for anything else; buffers that `np.empty` makes,
which costs little; several receives into one buffer, or some that not every iteration runs;
neighbours that may be absent, because a receive from nobody leaves its buffer as it was; faces that
are not surely apart, or whose array has another name under another shape; storage orders that the
source does not tell; `Sendrecv_replace`, which sends what is in the buffer that it receives into.

**Fix safety.** The same elements go to the same places, and results are equal bit for bit.

**Models used.** Lines (array statements, messages).

**References.** mpi4py's documentation on buffer-like objects.
"""

_COPY = ".copy()"
_BLOCKING = frozenset({Op.SEND, Op.SENDRECV})
_REASON = (
    "the face is one stretch of memory, so MPI can take it as it is; the copy reads and writes"
    " every element once more"
)


@dataclass(frozen=True, slots=True)
class FaceCopied:
    """The rule ADV602; see its page in `documentation`."""

    code: str = "ADV602"
    name: str = "face-copied"
    documentation: str = DOCUMENTATION

    def propose_program(self, program: Program) -> Iterator[ProgramProposal]:
        """Yield every copied face that could be sent, or received, in its place."""
        for function in program.functions:
            yield from made_again(program, function)
            yield from copied_twice(program, function)
            for visit, step in function.operations():
                if step.pickled or not step.blocking or step.replaces:
                    continue
                if function.weight(visit) == 0:
                    continue
                yield from _sent(program, function, visit, step)
                yield from _received(program, function, visit, step)


def _sent(
    program: Program, function: SpmdFunction, visit: Visit, step: Communicate
) -> Iterator[ProgramProposal]:
    sent = step.send
    if step.op not in _BLOCKING or sent is None or sent.view is None or sent.described:
        return
    buffer = sent.view.buffer
    made, source = buffer.allocation, buffer.allocation.copied
    if made.origin is not Origin.COPY or source is None or not made.text.endswith(_COPY):
        return
    if not (sent.view.is_whole and _same_stretch(source, sent)):
        return
    sizes = written_sizes(program)
    copy = _copy_before(visit, sent.view, source)
    if copy is None or (step.receive is not None and not _apart(step.receive, source, sizes)):
        return
    if sent.text != made.text and (
        not is_name(sent.text) or mentions(sent.text, function, program) != 2
    ):
        return
    place = sent.span if sent.text == made.text else made.span
    direct = replace(sent, view=source, text=source.text)
    yield ProgramProposal(
        title=f"send `{source.text}` as it is, without the copy",
        reason=_REASON,
        span=step.span,
        function=function,
        before=(copy, step),
        after=(replace(step, send=direct),),
        legality=Legality(
            Applicability.SAFE,
            "nothing is written to the face before the call has sent it, and nothing else uses"
            " the copy",
        ),
        loops=visit.loops,
        edits=partial(_without_copy, place, source, program),
    )


def _without_copy(place: Span, source: View, program: Program) -> tuple[Edit, ...]:
    return (Edit(place, program.context.text(source.span)),)


def _same_stretch(face: View, payload: Payload) -> bool:
    """Return whether a face is in memory what the payload's array is."""
    shape = face.shape
    if not is_contiguous(face) or shape is None or face.dtype != payload.dtype:
        return False
    if face.dtype is None or face.count != payload.count:
        return False
    return len(shape) == 1 or face.order is Order.C


def _copy_before(visit: Visit, made: View, source: View) -> Copy | None:
    """Return the step that makes a copy, if nothing is written to its source up to a call."""
    for step in reversed(visit.block[: visit.position]):
        if isinstance(step, Copy) and step.allocates and same_memory(step.target, made):
            return step
        writes = written(step)
        if writes is None or any(may_share(view, source) for view in writes):
            return None
    return None


def _apart(payload: Payload, face: View, sizes: Mapping[str, Expr]) -> bool:
    view = payload.view
    if view is None:
        return False
    if may_share(view, face):
        return disjoint(view, face, sizes)
    return _own_memory(view)


def _own_memory(view: View) -> bool:
    """Return whether an array is new memory, so that other arrays are not in it."""
    return view.buffer.allocation.origin in (Origin.NEW, Origin.COPY, Origin.COMPUTED)


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
    if mentions(got.text, function, program) != 2 * len(pairs) + 1:
        return
    if not all(_surely_arrives(other.source) and other.blocking for other, _ in pairs):
        return
    face = unpacking.target
    if not (_own_memory(got.view) and _same_stretch(face, got)):
        return
    sent = None if step.send is None else step.send.view
    if step.op is Op.SENDRECV and (
        sent is None or not _separate(sent, face, written_sizes(program))
    ):
        return
    if not stands_alone(program.context, unpacking.span):
        return
    direct = replace(got, view=face, text=face.text)
    yield ProgramProposal(
        title=f"receive into `{face.text}`, not into `{got.text}` and copy",
        reason=_REASON,
        span=unpacking.span,
        function=function,
        before=(step, unpacking),
        after=(replace(step, receive=direct),),
        legality=Legality(
            Applicability.SAFE,
            "the face is overwritten right after the message came, and nothing else uses the"
            " buffer",
        ),
        loops=visit.loops,
        edits=partial(_received_in_place, got.span, unpacking, program),
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
    same = same_memory(then.source, got.view) and then.source.is_whole
    return then if same and not may_share(then.target, got.view) else None


def _surely_arrives(source: Partner | None) -> bool:
    return source is not None and source.kind is PartnerKind.RANK and not source.may_be_nobody


def _separate(sent: View, face: View, sizes: Mapping[str, Expr]) -> bool:
    if may_share(sent, face):
        return disjoint(sent, face, sizes)
    copied = sent.buffer.allocation.copied
    if copied is not None and may_share(copied, face) and not disjoint(copied, face, sizes):
        return False  # the copy may be left out as well
    return _own_memory(sent) and _own_memory(face)


def _received_in_place(got: Span, unpacking: Copy, program: Program) -> tuple[Edit, ...]:
    context = program.context
    statement = unpacking.span
    text = context.text(unpacking.target.span)
    rest = context.lines[statement.end_line - 1][statement.end_column :].strip()
    if rest:  # a comment stays where it is
        gone = Edit(statement, "")
    else:
        gone = Edit(Span(statement.start_line, 0, statement.end_line + 1, 0), "")
    return Edit(got, text), gone


TRANSFORM = FaceCopied()
