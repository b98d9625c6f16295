"""Loops in which every iteration makes a small call: one call for all of them.

The loop is distributed around its calls: a first loop collects what is sent, each call carries all
of it, and a second loop does what comes behind.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from advisor.ir.spmd.memory import Payload, PayloadKind, elements
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import (
    Branch,
    Call,
    Communicate,
    Interpret,
    Loop,
    LoopKind,
    Op,
    Step,
)
from advisor.source import Span, tree_of
from costdb.expr import free_symbols, num
from costdb.records import dataclass, replace
from transforms.kit import rewrite
from transforms.kit.memory import INTEGERS, SENDABLE, new_array, payload_of
from transforms.kit.names import (
    argument,
    bound_names,
    is_uniform,
    keywords,
    loaded_names,
    reads_clock,
    used_outside,
    words,
)
from transforms.kit.programs import collective, offer, shortened
from transforms.kit.ranks import on_all_ranks
from transforms.messages.iterations import APART, REDUCTIONS, REMOTE, Parts, Talk, in_parts, stored

_REASON = "every call costs its start-up time, however little it carries, and a call from Python"
_APART = (
    "no iteration uses before its calls what an earlier one made behind its own, if names of arrays"
    " mean different ones"
)
_ROOTS = "; each rank gives what it is the root of"
_OF_ROOTS = {Op.BCAST: "Allgatherv", Op.REDUCE: "Allreduce"}
"""What one call does that has another root in each iteration."""
_NAN = "; none of the numbers is NaN"
_ROUNDED = "; sums of floating-point numbers are collected in another order, and agree to rounding"
_ELEMENT = {"int": "int64", "float": "float64", "complex": "complex128"}
_OF_OBJECTS = {"MAX": "maximum", "MIN": "minimum"}
"""NumPy's functions for operations that do not go element by element through arrays of objects."""
_SENT = ("sendobj", "obj", "sendbuf", "buf", "origin")
_PARTNERS = ("root", "op", "dest", "sendtag", "source", "recvtag")


def repeated_collectives(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield one call for each that a loop makes in every iteration.

    Of loops around one another the outermost, unless only an inner one can be written.
    """
    found: dict[object, ProgramProposal] = {}
    told: set[Span] = set()
    for visit in function.visits():
        loop = visit.step
        if not isinstance(loop, Loop) or loop.trips is None or loop.timing or loop.by_rank:
            continue
        if loop.kind not in (LoopKind.COUNTED, LoopKind.ELEMENTS):
            continue
        if not on_all_ranks(function.visits(), visit):
            continue
        divided = list(in_parts(program, function, visit))
        for parts in divided:
            written = _lines(parts, function, program)
            key = parts.talks[0].at.span
            if key not in found or not isinstance(written, str):
                found[key] = _collected(program, function, visit.loops, parts, written)
        told |= {talk.at.span for parts in divided for talk in parts.talks}
        for parts in stored(program, function, loop):
            why = "what the loop stores is to be reduced behind it, but for what it leaves out"
            key, given = parts.talks[0].at.span, (program, function, visit.loops, parts, why)
            if key not in told:
                found[key] = _collected(*given)
    yield from found.values()


# --- what takes their place -----------------------------------------------------------------------


def _sent(talk: Talk) -> Payload | None:
    """Return what an iteration sends, or at least what it gets for it."""
    step = talk.step
    known = (one for one in (step.send, step.receive) if one is not None and one.count is not None)
    return next(known, step.send)


def _dtype(payload: Payload | None) -> str:
    """Return the element type of an array of what a call sends."""
    dtype = None if payload is None else payload.dtype
    return _ELEMENT.get(dtype or "", dtype or "")


def _is_listed(step: Communicate) -> bool:
    """Return whether what all iterations send goes as one pickled list."""
    return step.pickled and step.op not in REDUCTIONS


def _without(steps: tuple[Step, ...], talks: list[Talk]) -> tuple[Step, ...]:
    """Return steps without some calls."""
    gone, kept = [talk.step for talk in talks], list[Step]()
    for step in steps:
        if isinstance(step, Loop | Call):
            kept.append(replace(step, body=_without(step.body, talks)))
        elif isinstance(step, Branch):
            then, orelse = (_without(arm, talks) for arm in (step.then, step.orelse))
            kept.append(replace(step, then=then, orelse=orelse))
        elif step not in gone:
            kept.append(step)
    return tuple(kept)


def _only(steps: tuple[Step, ...], talks: list[Talk]) -> tuple[Step, ...]:
    """Return some calls, with the loops around them."""
    loops = {loop for talk in talks for loop in talk.loops}
    return tuple(
        replace(step, body=_only(step.body, talks)) if isinstance(step, Loop) else step
        for step in steps
        if step in loops or any(step == talk.at for talk in talks)
    )


def _at_once(talk: Talk) -> Communicate:
    """Return the call that carries what those of all iterations do."""
    step, sent, trips = talk.step, _sent(talk), num(1)
    for loop in talk.loops:
        assert loop.trips is not None
        trips = trips * loop.trips
    if sent is None or sent.kind is PayloadKind.UNKNOWN:
        return step
    if _is_listed(step):
        listed = replace(sent, kind=PayloadKind.OBJECT, parts=(sent,), length=trips)
        return replace(step, send=replace(listed, view=None, count=None))
    if step.op in REMOTE or step.varying:
        many = replace(sent, view=None, count=elements(sent) * trips)
        return replace(step, send=step.send and many, receive=step.receive and many)
    shape = (elements(sent),) if sent.view is None or not sent.view.shape else sent.view.shape
    extents = (trips, *(() if sent.kind is PayloadKind.SCALAR else shape))
    memory = payload_of(new_array("sent", _dtype(sent) or None, extents, step.span), step.span)
    call = collective(step, step.op, memory, None if step.op is Op.BCAST else memory)
    pickled = sent.kind is PayloadKind.SCALAR and step.pickled
    return replace(call, pickled=pickled, dest=step.dest, source=step.source, tag=step.tag)


def _to_each(talk: Talk) -> tuple[Step, ...]:
    """Return a call for each rank, with what all iterations have for it."""
    call, ranks = _at_once(talk), talk.step.communicator.size
    sent, got = (
        one and replace(one, count=elements(one) / ranks) for one in (call.send, call.receive)
    )
    each = replace(call, send=sent, receive=got)
    return (Loop(LoopKind.COUNTED, "", num(0), ranks, 1, ranks, (each,), call.span),)


def _collected(
    program: Program,
    function: SpmdFunction,
    loops: tuple[Loop, ...],
    parts: Parts,
    lines: list[str] | str,
) -> ProgramProposal:
    steps = [one.step for one in parts.talks]
    rounded = any(s.op in REDUCTIONS and s.operation in ("SUM", "PROD") for s in steps)
    orders = any(s.operation in _OF_OBJECTS for s in steps)
    as_it_is = any(_is_listed(s) for s in steps) or not steps[0].pickled or _is_number(steps[0])
    method = steps[0].method if as_it_is else steps[0].method.capitalize()
    moves = [s for s in steps if s.root is not None and not is_uniform(program, [s.root])]
    if moves == steps:
        method = _OF_ROOTS.get(steps[0].op, "Alltoallv")
        objects = any(s.send is not None and s.send.kind is PayloadKind.OBJECT for s in steps)
        method = method.removesuffix("v").lower() if objects else method
    target = argument(steps[0], "target_rank", program) if steps[0].op in APART else None
    apart = bool(words(target or "") & bound_names([parts.node]))
    after = _to_each(parts.talks[0]) if apart else tuple(map(_at_once, parts.talks))
    texts = [_text(program, one) for one in steps]
    sent = " and ".join(f"`{shortened(one)}`" for one in texts if one) or "what is sent"
    method += "` for each rank" if apart else "`"
    place, loop = rewrite.span_of(parts.node, program.context.lines), parts.loop
    more = replace(loop, body=(Interpret(num(len(steps)), loop.span),))
    edits = lines if isinstance(lines, str) else rewrite.in_place_of(place, lines, program.context)
    inner = loop.body
    if not parts.whole or steps[0].op in REMOTE:
        # all else stays, and locks have no price
        inner = _only(inner, parts.talks)
    return offer(
        function,
        loops,
        parts.talks[0].at.span,
        f"let one `{method} carry {sent} of all iterations",
        _REASON,
        (replace(loop, body=inner),),
        (replace(loop, body=_without(inner, parts.talks)), *after, more),
        _APART + _ROOTS * any(s.op is Op.BCAST for s in moves) + _ROUNDED * rounded + _NAN * orders,
        edits,
    )


def _is_number(step: Communicate) -> bool:
    return step.send is not None and step.send.kind is PayloadKind.SCALAR


def _text(program: Program, step: Communicate) -> str | None:
    return next((t for name in _SENT if (t := argument(step, name, program)) is not None), None)


# --- as source ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Once:
    """One call of a loop.

    Attributes
    ----------
    step : Communicate
    sent : str
        What an iteration sends.
    one, all_sent, received : str
        What one result is called, and what all that is sent and received is.
    given : list of str
        Its other arguments.
    used : list of ast.stmt
        Its statement, with a name in the place of its result.
    """

    step: Communicate
    sent: str
    one: str
    all_sent: str
    received: str
    given: list[str]
    used: list[ast.stmt]


def _has_form(program: Program, talk: Talk) -> bool:
    """Return whether a call is of numbers, of which it takes a list as well."""
    step, sent, loop = talk.step, talk.step.send, talk.loops[0]
    if talk.at is not step or step not in loop.body or not step.pickled or not _is_number(step):
        return False
    if step.op is Op.SENDRECV:
        if loop.trips is None or not is_uniform(program, [loop.trips]) or step.receive is not None:
            return False
    elif step.op not in (Op.BCAST, Op.ALLREDUCE):
        return False
    if step.root is not None and loop.variable in free_symbols(step.root):
        return False
    # which of a number and NaN is the larger depends on who compares
    orders = step.operation in _OF_OBJECTS
    return _dtype(sent) in SENDABLE and not (orders and _dtype(sent) not in INTEGERS)


def _once(
    program: Program, parts: Parts, talk: Talk, taken: set[str], named: dict[Span, dict[str, str]]
) -> _Once | None:
    """Return a call, and its statement with a name in the place of its result.

    What calls of one statement were `named` before has its name in the statement, too.
    """
    context, step = program.context, talk.step
    names = one, sent, got = [rewrite.fresh_name(n, taken) for n in ("one", "sent", "received")]
    taken |= {*names}
    places = {rewrite.span_of(node, context.lines): node for node in parts.node.body}
    call, text = places.get(step.statement), _text(program, step)
    if text is None or "#" in context.text(step.statement):
        return None
    alone = isinstance(call, ast.Expr) and rewrite.span_of(call.value, context.lines) == step.span
    if alone or not isinstance(call, ast.Assign | ast.AugAssign | ast.Expr):
        return None
    own = ast.unparse(tree_of(context.text(step.span).strip()))
    known = named.setdefault(step.statement, {})
    known[own] = one
    used = ast.parse(rewrite.with_calls(call, known)).body
    if one not in loaded_names(used):
        return None
    return _Once(step, text, one, sent, got, keywords(step, _PARTNERS, program), used)


def _is_ordered(parts: Parts, calls: list[_Once], lines: list[str]) -> bool:
    """Return whether what is collected at the end of an iteration is what was sent in it."""
    behind = _behind(parts, calls, lines)
    first, later, used = bound_names(parts.before), bound_names(behind), loaded_names(behind)
    targets = parts.targets
    if parts.mixed or first & loaded_names([parts.node.iter]) or targets & (first | later):
        return False
    again = isinstance(parts.node.iter, ast.Call) and ast.unparse(parts.node.iter.func) == "range"
    if not again and targets & used:
        return False
    for once, talk in zip(calls, parts.talks, strict=True):
        names = parts.given[talk.at.span]
        fixed = words(f"{once.step.receiver} {' '.join(once.given)}")
        if fixed & (first | later | targets):
            return False
        for node in parts.before:
            if rewrite.span_of(node, lines) < once.step.statement:
                continue
            if not isinstance(node, ast.Assign) or names & bound_names([node]):
                return False
            if not all(isinstance(one, ast.Name) for one in node.targets):
                return False
    return True


def _behind(parts: Parts, calls: list[_Once], lines: list[str]) -> list[ast.stmt]:
    """Return the statements behind the calls, with names in the place of these."""
    used = {one.step.statement: one.used for one in calls}
    every = ((node, used.get(rewrite.span_of(node, lines))) for node in parts.behind)
    return [one for node, others in every for one in ([node] if others is None else others)]


def _lines(parts: Parts, function: SpmdFunction, program: Program) -> list[str] | str:
    """Return the two loops and the calls between them, or why they cannot be written."""
    context, node, place = (
        program.context,
        parts.node,
        rewrite.span_of(parts.node, program.context.lines),
    )
    if context.array_module is None or program.mpi_module is None:
        return "NumPy or MPI has no name"
    if not parts.whole:
        return "other calls stay in the loop"
    if reads_clock(node, program):
        return "the loop reads a clock, and may measure them"
    if not all(_has_form(program, one) for one in parts.talks):
        return "one call of this kind takes no list, or not of arrays"
    if rewrite.statement_at(place, context) is not node:
        return _in_list(parts, program)
    taken = {*program.context.identifiers}
    named = dict[Span, dict[str, str]]()
    found = [_once(program, parts, one, taken, named) for one in parts.talks]
    calls = [one for one in found if one is not None]
    if len(calls) < len(found) or not _is_ordered(parts, calls, context.lines):
        return "what is sent is not all there at the end of an iteration"
    if node.body[0].lineno == node.lineno or not rewrite.starts_line(place, context):
        return "the loop shares its line"
    kept = used_outside(parts.targets, place, function, program)
    if parts.before or kept is not None or len(calls) > 1:
        inner = " " * (node.body[0].col_offset - node.col_offset)
        lines = [f"{one.all_sent} = []" for one in calls]
        lines += [f"{parts.header}:", *_body(parts.before, parts, program)]
        lines += [f"{inner}{one.all_sent}.append({one.sent})" for one in calls]
    else:
        lines = [f"{one.all_sent} = [{one.sent} {parts.header}]" for one in calls]
    lines += [_one_call(one, program) for one in calls]
    return [*lines, *_used(parts, calls, program)]


def _in_list(parts: Parts, program: Program) -> list[str] | str:
    """Return one call in the place of a list of what calls give, or why it cannot be written."""
    talk, only = parts.talks[0], parts.node.body[0]
    step, text = talk.step, _text(program, talk.step)
    given = keywords(step, _PARTNERS, program)
    fixed = words(f"{step.receiver} {' '.join(given)}") & parts.targets
    source = program.context.text(rewrite.span_of(parts.node, program.context.lines))
    alone = rewrite.span_of(only, program.context.lines) == step.span and step.op is not Op.SENDRECV
    if text is None or fixed or not alone or "#" in source:
        return "the list is not of what calls give alone"
    once = _Once(step, text, "", f"[{text} {parts.header}]", "", given, [])
    made = _one_call(once, program).removeprefix(" = ")
    listed = f"[*{made}]" if step.op is Op.ALLREDUCE else made
    return [f"({listed})" if source.startswith("(") else listed]


def _body(nodes: list[ast.stmt], parts: Parts, program: Program) -> list[str]:
    """Return statements of a loop as they stand, unless comments in them would come twice."""
    context, inner = program.context, " " * (parts.node.body[0].col_offset - parts.node.col_offset)
    texts = []
    for node in nodes:
        own = hasattr(node, "lineno") and node in parts.node.body
        text = context.text(rewrite.span_of(node, context.lines)) if own else ast.unparse(node)
        texts.append(inner + (text if "#" not in text else ast.unparse(node)))
    return texts


def _one_call(once: _Once, program: Program) -> str:
    """Return the call of what a loop sends, from the list of it."""
    step, numpy = once.step, program.context.array_module
    given, kind = "".join(f", {one}" for one in once.given), ""
    call = f"{step.receiver}.{step.method}"
    if step.op is not Op.ALLREDUCE:
        nobody = f" or [None] * len({once.all_sent})" * (step.op is Op.SENDRECV)
        return f"{once.received} = {call}({once.all_sent}{given}){nobody}"
    if step.operation in _OF_OBJECTS:
        given = f", op={numpy}.{_OF_OBJECTS[step.operation]}"
    # numbers stay what they were: NumPy's of one type, or Python's, or of several kinds
    if step.send is not None and step.send.dtype in {*_ELEMENT, "bool"}:
        kind = ", dtype=object"
    return f"{once.received} = {call}({numpy}.array({once.all_sent}{kind}){given})"


def _used(parts: Parts, calls: list[_Once], program: Program) -> list[str]:
    """Return what is done with all results, from which on nothing is sent."""
    behind = _behind(parts, calls, program.context.lines)
    names, results = [one.one for one in calls], [one.received for one in calls]
    if parts.targets & loaded_names(behind):
        text = ast.unparse(parts.node.target)
        names.insert(0, f"({text})" if isinstance(parts.node.target, ast.Tuple) else text)
        results.insert(0, ast.unparse(parts.node.iter))
    over = results[0] if len(results) == 1 else f"zip({', '.join(results)})"
    return [f"for {', '.join(names)} in {over}:", *_body(behind, parts, program)]
