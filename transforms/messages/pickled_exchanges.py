"""Lists of arrays, one for each rank, that all ranks exchange as pickles."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
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
from transforms.programs.spmd_calls import (
    argument,
    array_payload,
    is_simple,
    is_uniform,
    statement_edit,
)
from transforms.source.writing import fresh_name

_REASON = (
    "a lower-case method serialises every array of the list, and makes new ones of the bytes at the"
    " other end; an upper-case one sends the memory of one array that holds them all"
)
_MOVED = (
    "the same elements come to the same ranks, but in one array, of which each rank's is a row, not"
    " in a list"
)


def exchanged_lists(
    program: Program, function: SpmdFunction, visit: Visit, step: Communicate
) -> Iterator[ProgramProposal]:
    """Yield an `Alltoall` for a pickled exchange of a list of arrays that are all as large."""
    if step.op is not Op.ALLTOALL or step.send is None or len(step.send.parts) != 1:
        return
    (part,), size = step.send.parts, step.communicator.size
    view = array_payload(part)
    if view is None or step.send.length != size or not _is_of_pieces(step.send.text, program):
        return
    shape = view.shape or ()
    if not is_uniform(program, shape):
        return
    lines = _lines(program, step) if is_simple(step, program) else None
    yield ProgramProposal(
        title="exchange the list of arrays as one buffer, by `Alltoall`",
        reason=_REASON,
        span=step.span,
        function=function,
        before=(step,),
        after=_as_buffers(step, part, view, (size, *shape)),
        legality=Legality(Applicability.DISPLAY if lines is None else Applicability.UNSAFE, _MOVED),
        loops=visit.loops,
        edits=tuple if lines is None else partial(_replaced, step, lines, program),
    )


def _is_of_pieces(text: str, program: Program) -> bool:
    """Return whether a list is written out as what one expression is for all ranks."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return False
    if isinstance(node, ast.ListComp):
        plain = len(node.generators) == 1 and not node.generators[0].ifs
        return plain and all(_is_piece(part) for part in ast.walk(node.elt))
    # equal pieces, or an error
    called = node.func if isinstance(node, ast.Call) else None
    return (
        isinstance(called, ast.Attribute)
        and called.attr == "split"
        and isinstance(called.value, ast.Name)
        and called.value.id == program.context.array_module
    )


_OTHERWISE = (ast.IfExp, ast.BoolOp, ast.NamedExpr, ast.Lambda, ast.Starred, ast.Await)
_COPIES = frozenset({"copy", "ascontiguousarray", "array", "astype"})


def _is_piece(node: ast.AST) -> bool:
    """Return whether a part of an expression makes it what it is for every rank alike."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in _COPIES
    return not isinstance(node, _OTHERWISE)


def _as_buffers(
    step: Communicate, part: Payload, view: View, extents: tuple[Expr, ...]
) -> tuple[Step, ...]:
    """Return the steps of the upper-case call: all pieces in one array, another one, the call."""
    sent, received = (_memory(step, view, extents, name) for name in ("sent", "received"))
    whole = View(view.buffer, _all_of(view.buffer.extents), view.text, view.span)
    call = replace(
        step,
        method="Alltoall",
        pickled=False,
        send=_payload(sent, part),
        receive=_payload(received, part),
    )
    staged = _payload(sent, part).view
    assert staged is not None
    return (
        Copy(staged, whole, step.span, allocates=True),
        Allocate(received, step.span, filled=False),
        call,
    )


def _all_of(extents: tuple[Expr, ...] | None) -> tuple[Whole, ...] | None:
    return None if extents is None else tuple(map(Whole, extents))


def _memory(step: Communicate, view: View, extents: tuple[Expr, ...], name: str) -> Buffer:
    allocation = Allocation(Origin.NEW, name, step.span)
    return Buffer(name, -1, view.dtype, extents, Order.C, allocation)


def _payload(memory: Buffer, part: Payload) -> Payload:
    view = View(memory, _all_of(memory.extents), memory.name, part.span)
    return Payload(
        PayloadKind.ARRAY, memory.name, part.span, view=view, dtype=memory.dtype, count=view.count
    )


def _lines(program: Program, step: Communicate) -> list[str] | None:
    numpy, text = program.context.array_module, argument(step, "sendobj", program)
    if numpy is None or text is None or step.result is None:
        return None
    name = fresh_name("sent", program.context.identifiers)
    return [
        f"{name} = {numpy}.stack({text})",
        f"{step.result} = {numpy}.empty_like({name})",
        f"{step.receiver}.Alltoall({name}, {step.result})",
    ]


def _replaced(step: Communicate, lines: list[str], program: Program) -> tuple[Edit, ...]:
    return (statement_edit(step, lines, program),)
