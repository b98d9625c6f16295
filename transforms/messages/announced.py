"""Pickled collectives of arrays whose shapes only a run tells: shapes first, then memory as it is.

What comes is what came: an array, or a list with an array of each rank.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from advisor.ir.spmd.payloads import Payload, PayloadKind, elements
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Communicate, Copy, Interpret, Op, Step, Visit
from advisor.source import Edit
from costdb.expr import num
from costdb.records import replace
from transforms.kit.memory import SENDABLE, new_array, payload_of
from transforms.kit.names import argument, is_simple, is_uniform
from transforms.kit.programs import offer, sent_text
from transforms.kit.rewrite import (
    Edits,
    before,
    fresh_name,
    in_place_of,
    indent_at,
    starts_line,
    statement_at,
)

_LISTS = frozenset({Op.SCATTER, Op.ALLTOALL})
_INTERPRETED = 8
"""Operations of the interpreter for each rank's shape and array."""


def announced(
    program: Program, function: SpmdFunction, visit: Visit, step: Communicate
) -> Iterator[ProgramProposal]:
    """Yield the buffer form of a collective that tells the shapes of what it carries first."""
    part = _part(step)
    if part is None or "status" in step.places:
        return
    alike = step.op is Op.ALLTOALL and _are_alike(program, step, part)
    lines = _lines(program, step, part, alike=alike)
    title = f"tell the shapes of `{sent_text(step)}` first, then send them as buffers"
    if alike:
        title = f"exchange `{sent_text(step)}` as one buffer, by `Alltoall`"
    yield offer(
        function,
        visit,
        step.span,
        title,
        "a lower-case method serialises every array, and makes new ones of the bytes at the other"
        " end; an upper-case one sends memory as it is",
        (step,),
        _steps(step, part)[2 * alike :],
        "the same elements come to the same ranks, in arrays of the same shapes, if all are of the"
        " element type that the source shows",
        None if lines is None else _edits(program, step, *lines),
    )


def _part(step: Communicate) -> Payload | None:
    """Return what goes to a rank, or comes from one, if it is surely an array of a known type."""
    sent = step.send
    if sent is None:
        return None
    if step.op not in _LISTS:
        known = sent.kind is PayloadKind.ARRAY and sent.dtype in SENDABLE
        return sent if known and step.op in (Op.BCAST, Op.GATHER, Op.ALLGATHER) else None
    if sent.kind is not PayloadKind.OBJECT or not sent.parts or _may_be_nothing(sent.text):
        return None
    kinds = {(part.kind, part.dtype) for part in sent.parts}
    first = sent.parts[0]
    alike = len(kinds) == 1 and first.kind is PayloadKind.ARRAY and first.dtype in SENDABLE
    return first if alike else None


def _are_alike(program: Program, step: Communicate, part: Payload) -> bool:
    """Return whether a list is written out as equal pieces, one for each rank."""
    sent = step.send
    if sent is None or sent.length != step.communicator.size or part.view is None:
        return False
    if part.view.shape is None or not is_uniform(program, part.view.shape):
        return False
    node = ast.parse(sent.text.strip(), mode="eval").body
    if isinstance(node, ast.ListComp):
        return len(node.generators) == 1 and not node.generators[0].ifs
    # equal pieces, or an error
    split = f"{program.context.array_module}.split"
    return isinstance(node, ast.Call) and ast.unparse(node.func) == split


def _may_be_nothing(text: str) -> bool:
    """Return whether a list may hold something else than arrays: a choice is made for each."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return True
    made = node.elt if isinstance(node, ast.ListComp) else node
    return any(isinstance(part, ast.IfExp | ast.BoolOp) for part in ast.walk(made)) and (
        made is not node
    )


def _steps(step: Communicate, part: Payload) -> tuple[Step, ...]:
    size, count, span = step.communicator.size, elements(part), step.span
    number = Payload(PayloadKind.SCALAR, "shape", span, dtype="int", count=num(1))
    one = payload_of(new_array("one", part.dtype, (count,), span), span)
    every = payload_of(new_array("every", part.dtype, (count * size,), span), span)
    shapes = number
    if step.op in _LISTS:
        shapes = Payload(PayloadKind.OBJECT, "shapes", span, parts=(number,), length=size)
    sent, received = {
        Op.BCAST: (one, None),
        Op.SCATTER: (every, one),
        Op.ALLTOALL: (every, every),
    }.get(step.op, (one, every))
    method = step.op.value.capitalize()
    call = replace(
        step,
        method=method if step.op is Op.BCAST else f"{method}v",
        pickled=False,
        varying=step.op is not Op.BCAST,
        send=sent,
        receive=received,
    )
    packed: tuple[Step, ...] = ()
    if step.op in _LISTS and every.view is not None:
        other = new_array("others", part.dtype, (count * size,), span)
        packed = (Copy(every.view, other, span, allocates=True),)
    ranks = num(1) if step.op in (Op.BCAST, Op.SCATTER) else size
    work = Interpret(ranks * _INTERPRETED, span)
    return replace(step, send=shapes), work, *packed, call


# --- what is written ------------------------------------------------------------------------------


def _lines(
    program: Program, step: Communicate, part: Payload, *, alike: bool
) -> tuple[list[str], str] | None:
    """Return lines to stand before a statement, and the name for the value of its call."""
    context = program.context
    text = argument(step, "sendobj", program) or argument(step, "obj", program)
    if text is None or context.array_module is None:
        return None
    np, comm, root = context.array_module, step.receiver, argument(step, "root", program) or "0"
    names = ("sent", "shapes", "sizes", "joined", "received")
    sent, shapes, sizes, joined, name = (fresh_name(n, context.identifiers) for n in names)
    if is_simple(step, program) and step.result not in (None, text):
        name = str(step.result)
    dtype, at_root = f"dtype={part.dtype!r}", f"{comm}.Get_rank() == {root}"
    first = [] if text.isidentifier() else [f"{sent} = {' '.join(text.split())}"]
    own = text if text.isidentifier() else sent
    packed = f"({np}.concatenate([one.ravel() for one in {own}]), [one.size for one in {own}])"
    of_each = f"[one.shape for one in {own}]"
    memory = [
        f"{sizes} = [int({np}.prod(one)) for one in {shapes}]",
        f"{joined} = {np}.empty(sum({sizes}), {dtype})",
    ]
    parts = f"zip({np}.split({joined}, {np}.cumsum({sizes})[:-1]), {shapes})"
    taken = f"[one.reshape(shape) for one, shape in {parts}]"
    match step.op:
        case Op.BCAST:
            lines = [
                f"{shapes} = {comm}.bcast({own}.shape if {at_root} else None, root={root})",
                f"{name} = {np}.{'ascontiguousarray' if step.result == text else 'array'}({own})"
                f" if {at_root} else"
                f" {np}.empty({shapes}, {dtype})",
                f"{comm}.Bcast({name}, root={root})",
            ]
        case Op.SCATTER:
            lines = [
                f"{shapes} = {comm}.scatter({of_each} if {at_root} else None, root={root})",
                f"{name} = {np}.empty({shapes}, {dtype})",
                f"{comm}.Scatterv({packed} if {at_root} else None, {name}, root={root})",
            ]
        case Op.ALLTOALL if alike:
            first = [f"{sent} = {np}.stack({' '.join(text.split())})"]
            lines = [
                f"{joined} = {np}.empty_like({sent})",
                f"{comm}.Alltoall({sent}, {joined})",
                f"{name} = list({joined})",
            ]
        case Op.ALLTOALL:
            lines = [
                f"{shapes} = {comm}.alltoall({of_each})",
                *memory,
                f"{comm}.Alltoallv({packed}, ({joined}, {sizes}))",
                f"{name} = {taken}",
            ]
        case Op.ALLGATHER:
            lines = [
                f"{shapes} = {comm}.allgather({own}.shape)",
                *memory,
                f"{comm}.Allgatherv({np}.ascontiguousarray({own}), ({joined}, {sizes}))",
                f"{name} = {taken}",
            ]
        case _:
            inner = context.indent
            lines = [
                f"{shapes} = {comm}.gather({own}.shape, root={root})",
                f"{name} = {joined} = {sizes} = None",
                f"if {at_root}:",
                *(f"{inner}{line}" for line in memory),
                f"{comm}.Gatherv({np}.ascontiguousarray({own}),"
                f" ({joined}, {sizes}) if {at_root} else None, root={root})",
                f"if {at_root}:",
                f"{inner}{name} = {taken}",
            ]
    return [*first, *lines], name


def _edits(program: Program, step: Communicate, lines: list[str], name: str) -> Edits | None:
    context, place = program.context, step.statement
    node = statement_at(place, context)
    if not isinstance(node, ast.Assign | ast.AugAssign | ast.Return | ast.Expr):
        return None
    if not starts_line(place, context) or "#" in context.text(step.span):
        return None
    if name == step.result:
        return in_place_of(place, lines, context)
    indent = indent_at(place, context)
    ahead = "".join(f"{line}\n{indent}" for line in lines)
    return lambda: (Edit(before(place), ahead), Edit(step.span, name))
