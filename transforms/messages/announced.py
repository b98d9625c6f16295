"""Pickled collectives of arrays whose shapes only a run tells: shapes first, then memory as it is.

What comes is what came: an array, or a list with an array of each rank.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from advisor.ir.spmd.payloads import Payload, PayloadKind
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Communicate, Op, Visit
from advisor.source import Edit
from transforms.kit.memory import SENDABLE
from transforms.kit.names import argument, is_simple, is_uniform
from transforms.kit.programs import offer, sent_text
from transforms.kit.rewrite import (
    Edits,
    before,
    in_place_of,
    indent_at,
    starts_line,
    statement_at,
)
from transforms.messages.buffers import LISTS, Writer, told_first


def announced(
    program: Program, function: SpmdFunction, visit: Visit, step: Communicate
) -> Iterator[ProgramProposal]:
    """Yield the buffer form of a collective that tells the shapes of what it carries first."""
    part = _part(step)
    if part is None or "status" in step.places:
        return
    alike = step.op is Op.ALLTOALL and _are_alike(program, step, part)
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
        told_first(step, step.op, part)[2 * alike :],
        "the same elements come to the same ranks, in arrays of the same shapes, if all are of the"
        " element type that the source shows",
        _edits(program, step, part, alike=alike),
    )


def _part(step: Communicate) -> Payload | None:
    """Return what goes to a rank, or comes from one, if it is surely an array of a known type."""
    sent = step.send
    if sent is None:
        return None
    if step.op not in LISTS:
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


def _edits(program: Program, step: Communicate, part: Payload, *, alike: bool) -> Edits | None:
    """Return what tells shapes before a statement, and uses what came in the place of its call."""
    context, place, numpy = program.context, step.statement, program.context.array_module
    text = argument(step, "sendobj", program) or argument(step, "obj", program)
    if text is None or numpy is None:
        return None
    writer = Writer(program, step, step.op, part.dtype)
    name, flat = writer.name("received"), " ".join(text.split())
    if is_simple(step, program) and step.result not in (None, text):
        name = str(step.result)
    own = text if text.isidentifier() else writer.name("sent")
    lines = [] if own == text else [f"{own} = {flat}"]
    if alike:
        sent, joined = writer.name("sent"), writer.name("joined")
        lines = [
            f"{sent} = {numpy}.stack({flat})",
            f"{joined} = {numpy}.empty_like({sent})",
            writer.call("Alltoall", sent, joined),
            f"{name} = list({joined})",
        ]
    else:
        root, others = writer.told(own, name)
        lines += writer.branch(root, others) if others else root
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
