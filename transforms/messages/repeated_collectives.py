"""Loops in which every iteration makes a small call: one call for all of them.

The loop is distributed around its calls: a first loop collects what is sent, each call carries all
of it, and a second loop does what comes behind. That is right where no iteration uses before its
calls what an earlier one made behind its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from advisor.ir.spmd.payloads import Payload, PayloadKind
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Communicate, Loop, Op, Step, Visit
from costdb.expr import free_symbols
from costdb.records import replace
from transforms.kit.memory import new_array, payload_of
from transforms.kit.names import loaded_names, used_outside
from transforms.kit.programs import collective, offer, shortened
from transforms.kit.ranks import on_all_ranks
from transforms.kit.rewrite import Edits, in_place_of, span_of, starts_line
from transforms.messages.loops_of_calls import (
    OF_OBJECTS,
    REDUCTIONS,
    Once,
    Parts,
    calls_in,
    changes_no_other,
    is_another_call,
    is_distributable,
    parts_in,
    sent_dtype,
    varies,
)

_REASON = "every call costs its start-up time, however little it carries, and a call from Python"
_APART = (
    "no iteration uses before its calls what an earlier one made behind its own, if names of arrays"
    " mean different ones"
)
_ROUNDED = "; sums of floating-point numbers are collected in another order, and agree to rounding"


def repeated_collectives(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield one call for each that a loop makes in every iteration."""
    for visit in function.visits():
        loop = visit.step
        if not isinstance(loop, Loop) or loop.trips is None or loop.timing or loop.by_rank:
            continue
        steps = calls_in(program, loop)
        parts = parts_in(program, loop, steps) if steps else None
        if parts is None or not varies(parts) or is_another_call(parts):
            continue
        if not on_all_ranks(function.visits(), visit):
            continue
        if is_distributable(parts, program.context.lines) and changes_no_other(parts):
            yield _collected(program, function, visit, parts)


# --- what takes their place -----------------------------------------------------------------------


def _grouped(text: str) -> str:
    """Return an expression as an operand of any operator."""
    node = ast.parse(f"({text})", mode="eval").body
    alone = isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call)
    return text if alone and "\n" not in text else f"({text})"


def _body(nodes: list[ast.stmt], parts: Parts, program: Program) -> list[str]:
    """Return statements of a loop as they stand, unless comments in them would come twice."""
    context, inner = program.context, " " * (parts.node.body[0].col_offset - parts.node.col_offset)
    texts = []
    for node in nodes:
        own = hasattr(node, "lineno") and node in parts.node.body
        text = context.text(span_of(node, context.lines)) if own else ast.unparse(node)
        texts.append(inner + (text if "#" not in text else ast.unparse(node)))
    return texts


def _is_listed(step: Communicate) -> bool:
    """Return whether what all iterations send goes as one pickled list."""
    return step.pickled and step.op in (Op.SENDRECV, Op.BCAST)


def _edits(parts: Parts, lines: list[str] | None, program: Program) -> Edits | str:
    node, context = parts.node, program.context
    place = span_of(node, context.lines)
    if lines is None or node.body[0].lineno == node.lineno or not starts_line(place, context):
        return "one call of this kind has no form that takes a list"
    return in_place_of(place, lines, context)


def _steps(parts: Parts) -> tuple[Step, ...]:
    """Return a loop, one call for each in it, and for what comes behind them another loop."""
    loop, made = parts.loop, list[Step]()
    steps = [one.step for one in parts.calls]
    assert loop.trips is not None
    for step in steps:
        sent = step.send
        assert sent is not None
        if _is_listed(step):
            listed = replace(sent, kind=PayloadKind.OBJECT, parts=(sent,), length=loop.trips)
            made.append(replace(step, send=replace(listed, view=None, count=None)))
            continue
        shape = () if sent.view is None or sent.kind is PayloadKind.SCALAR else sent.view.shape
        extents = (loop.trips, *(shape or ()))
        memory = payload_of(new_array("sent", sent_dtype(sent), extents, step.span), step.span)
        received = None if step.op is Op.BCAST else memory
        call = collective(step, step.op, memory, received)
        made.append(replace(call, pickled=sent.kind is PayloadKind.SCALAR))
    at = loop.body.index(steps[-1])
    ahead, behind = (
        tuple(one for one in body if not isinstance(one, Communicate))
        for body in (loop.body[:at], loop.body[at + 1 :])
    )
    return replace(loop, body=ahead), *made, replace(loop, body=behind)


def _collected(
    program: Program, function: SpmdFunction, visit: Visit, parts: Parts
) -> ProgramProposal:
    steps = [one.step for one in parts.calls]
    rounded = any(s.op in REDUCTIONS and s.operation in ("SUM", "PROD") for s in steps)
    numbers = steps[0].send is not None and steps[0].send.kind is PayloadKind.SCALAR
    as_it_is = numbers or any(map(_is_listed, steps))
    method = steps[0].method if as_it_is else steps[0].method.capitalize()
    sent = " and ".join(f"`{shortened(one.sent)}`" for one in parts.calls)
    return offer(
        function,
        visit,
        steps[0].span,
        f"let one `{method}` carry {sent} of all iterations",
        _REASON,
        (parts.loop,),
        _steps(parts),
        _APART + _ROUNDED * rounded,
        _edits(parts, _lines(parts, function, program), program),
    )


def _lines(parts: Parts, function: SpmdFunction, program: Program) -> list[str] | None:
    """Return the two loops and the calls between them; None where they cannot be written."""
    context, place = program.context, span_of(parts.node, program.context.lines)
    if context.array_module is None or program.mpi_module is None:
        return None
    kept = used_outside(parts.targets, place, function, program)
    if parts.before or kept is not None or len(parts.calls) > 1:
        inner = " " * (parts.node.body[0].col_offset - parts.node.col_offset)
        lines = [f"{one.all_sent} = []" for one in parts.calls]
        lines += [f"{parts.header}:", *_body(parts.before, parts, program)]
        for one in parts.calls:
            copied = one.step.send is None or one.step.send.kind is not PayloadKind.SCALAR
            if copied and one.step.op is Op.BCAST and one.step.pickled:
                return None  # on other ranks than the root there may be nothing to copy
            text = f"{_grouped(one.sent)}.copy()" if copied else one.sent
            lines.append(f"{inner}{one.all_sent}.append({text})")
    else:
        lines = [f"{one.all_sent} = [{one.sent} {parts.header}]" for one in parts.calls]
    for one in parts.calls:
        call = _one_call(one, program)
        if call is None:
            return None
        lines += call
    return [*lines, *_used(parts, program)]


def _one_call(once: Once, program: Program) -> list[str] | None:
    """Return the call of what a loop sends, from the list of it."""
    step, sent, numpy = once.step, once.step.send, program.context.array_module
    if sent is None:
        return None
    listed, got, given = once.all_sent, once.received, "".join(f", {one}" for one in once.given)
    match step.op:
        case Op.SENDRECV | Op.BCAST if step.pickled:
            nobody = f" or [None] * len({listed})" * (step.op is Op.SENDRECV)
            return [f"{got} = {step.receiver}.{step.method}({listed}{given}){nobody}"]
        case Op.ALLREDUCE if sent.kind is PayloadKind.SCALAR:
            # numbers stay what they were, be they Python's, NumPy's or of several kinds
            if step.operation in OF_OBJECTS:
                given = f", op={numpy}.{OF_OBJECTS[step.operation]}"
            objects = f"{numpy}.array({listed}, dtype=object)"
            return [f"{got} = {step.receiver}.allreduce({objects}{given})"]
        case Op.ALLREDUCE | Op.BCAST if _one_shape(sent, program):
            own = f"{program.mpi_module}.IN_PLACE, " * (step.op is Op.ALLREDUCE)
            return [
                f"{got} = {numpy}.array({listed}, dtype={sent_dtype(sent)!r})",
                f"{step.receiver}.{step.op.capitalize()}({own}{got}{given})",
            ]
    return None


def _one_shape(sent: Payload, program: Program) -> bool:
    """Return whether all iterations send arrays of one shape: rows of one, or of known sizes."""
    view = sent.view
    if view is None or not view.shape:
        return False
    extents = view.buffer.extents or ()
    if len(extents) > len(view.shape) and extents[-len(view.shape) :] == view.shape:
        return True
    sizes = [program.sizes.get(name) for one in view.shape for name in free_symbols(one)]
    return all(one is not None and (one.value or one.derived) for one in sizes)


def _used(parts: Parts, program: Program) -> list[str]:
    """Return what is done with all results, from which on nothing is sent."""
    names, results = [one.one for one in parts.calls], [one.received for one in parts.calls]
    if parts.targets & loaded_names(parts.behind):
        text = ast.unparse(parts.node.target)
        names.insert(0, f"({text})" if isinstance(parts.node.target, ast.Tuple) else text)
        results.insert(0, ast.unparse(parts.node.iter))
    over = results[0] if len(results) == 1 else f"zip({', '.join(results)})"
    return [f"for {', '.join(names)} in {over}:", *_body(parts.behind, parts, program)]
