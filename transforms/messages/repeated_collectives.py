"""Loops in which every iteration calls one small collective: one call for all of them.

The loop is distributed around its call: what comes before the call in the first loop, which
collects what is sent, one collective of all of it, and what comes behind it in a second loop. That
is right where no iteration reads, before its call, what an earlier one wrote behind its own. A loop
that only adds up what its sums give adds first, and sends once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from copy import deepcopy

from advisor.ir.spmd.payloads import Payload, PayloadKind
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import (
    Call,
    Communicate,
    Compute,
    Leave,
    Loop,
    LoopKind,
    Op,
    Step,
    Unknown,
    Visit,
    Wait,
    walk,
)
from advisor.source import Span
from costdb.expr import free_symbols, num
from costdb.records import dataclass, replace
from transforms.kit.memory import SENDABLE, may_share, new_array, payload_of, reads_of, written
from transforms.kit.names import argument, bound_names, is_binding, loaded_names, occurrences, words
from transforms.kit.programs import collective, offer, shortened
from transforms.kit.ranks import on_all_ranks
from transforms.kit.rewrite import (
    Edits,
    before,
    fresh_name,
    in_place_of,
    span_of,
    starts_line,
    statement_at,
    stretch,
)

_REDUCTIONS = frozenset({Op.REDUCE, Op.ALLREDUCE})
_OPERATIONS = frozenset({"SUM", "PROD", "MAX", "MIN", "BAND", "BOR", "BXOR"})
_ELEMENT = {"int": "int64", "float": "float64", "complex": "complex128"}
_SENT = ("sendobj", "obj", "sendbuf", "buf")
_PLAIN_CALLS = frozenset({"abs", "complex", "float", "int", "len", "max", "min", "round", "sum"})
_REASON = (
    "every collective costs its start-up time, however little it carries, and a call from Python"
)
_APART = (
    "no iteration uses before its call what an earlier one made behind its own, if names of arrays"
    " mean different ones"
)
_ROUNDED = "; sums of floating-point numbers are collected in another order, and agree to rounding"


@dataclass(frozen=True, slots=True)
class _Parts:
    """A loop in three parts.

    Attributes
    ----------
    node : ast.For
    steps : Loop
    step : Communicate
    sent : str
        What an iteration sends.
    received : str or None
        The name of the buffer that it receives into.
    before, behind : list of ast.stmt
        Around the call, barriers left out; `behind` begins with what is done with the result.
    one : str
        What the result is called there.
    fixed : frozenset of str
        Names in what else the call is given.
    """

    node: ast.For
    steps: Loop
    step: Communicate
    sent: str
    received: str | None
    before: list[ast.stmt]
    behind: list[ast.stmt]
    one: str
    fixed: frozenset[str]

    @property
    def targets(self) -> frozenset[str]:
        """What the loop's header binds."""
        return bound_names([self.node.target])

    @property
    def reads(self) -> frozenset[str]:
        """What is used up to the call."""
        return loaded_names([*self.before, ast.parse(self.sent)])

    def header(self, behind: bool = False) -> str:
        """Return the header of a loop like this one, which may go through results besides."""
        target, over = ast.unparse(self.node.target), ast.unparse(self.node.iter)
        if not behind:
            return f"for {target} in {over}"
        target = f"({target})" if isinstance(self.node.target, ast.Tuple) else target
        return f"for {target}, {self.one} in zip({over}, {{}})"


def repeated_collectives(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield one collective for every loop that calls one in each iteration."""
    for visit in function.visits():
        loop = visit.step
        if not isinstance(loop, Loop) or loop.trips is None or loop.timing or loop.by_rank:
            continue
        step = _only_collective(loop)
        parts = None if step is None else _parts(program, loop, step)
        if (
            parts is None
            or not _varies(parts)
            or _is_another_call(parts)
            or not on_all_ranks(function.visits(), visit)
        ):
            continue
        if _only_adds(parts, function, program):
            yield _added_first(program, function, visit, parts)
        elif _is_distributable(parts):
            yield _collected(program, function, visit, parts)


# --- the parts of a loop --------------------------------------------------------------------------


def _only_collective(loop: Loop) -> Communicate | None:
    """Return the one collective of a loop, which every iteration calls, barriers left out."""
    inside = [one.step for one in walk(loop.body)]
    calls = [s for s in inside if isinstance(s, Communicate) and s.op is not Op.BARRIER]
    if loop.kind not in (LoopKind.COUNTED, LoopKind.ELEMENTS) or len(calls) != 1:
        return None
    (step,) = calls
    if any(isinstance(one, Unknown | Call | Leave | Wait) for one in inside):
        return None
    if step not in loop.body or not step.blocking or step.in_place or step.varying:
        return None
    if step.op is not Op.BCAST and (
        step.op not in _REDUCTIONS or step.operation not in _OPERATIONS
    ):
        return None
    fixed = [step.send.count if step.send is not None else None, step.root]
    if any(size is not None and loop.variable in free_symbols(size) for size in fixed):
        return None
    return step if step.send is not None and _is_plain(step.send) else None


def _is_plain(payload: Payload) -> bool:
    if payload.kind is PayloadKind.ARRAY:
        known = payload.view is not None and payload.view.shape is not None
        if not known or payload.described or payload.datatype is not None:
            return False
    elif payload.kind is not PayloadKind.SCALAR:
        return False
    return payload.count is not None and _dtype(payload) in SENDABLE


def _dtype(payload: Payload) -> str:
    return _ELEMENT.get(payload.dtype or "", payload.dtype or "")


def _parts(program: Program, loop: Loop, step: Communicate) -> _Parts | None:
    context = program.context
    node, sent = statement_at(loop.span, context), step.send
    if not isinstance(node, ast.For) or node.orelse or sent is None:
        return None
    barriers = {s.statement for s in loop.body if isinstance(s, Communicate) and s.op is Op.BARRIER}
    kept = [one for one in node.body if span_of(one, context.lines) not in barriers]
    places = [span_of(one, context.lines).contains(step.span) for one in kept]
    if places.count(True) != 1:
        return None
    at = places.index(True)
    ahead, call, behind = kept[:at], kept[at], kept[at + 1 :]
    one = fresh_name("one", context.identifiers)
    received = None
    if step.pickled:
        alone = isinstance(call, ast.Expr) and span_of(call.value, context.lines) == step.span
        if alone or not isinstance(call, ast.Assign | ast.AugAssign | ast.Expr):
            return None
        used = _with(call, step, one, context.lines)
    else:
        got = sent if step.op is Op.BCAST else step.receive
        if not isinstance(call, ast.Expr) or got is None or not got.text.isidentifier():
            return None
        received = got.text
        # memory that the loop made is another one each time
        into = received if received in bound_names(ahead) else f"{received}[...]"
        used = f"{into} = {one}"
    text = next((t for name in _SENT if (t := argument(step, name, program)) is not None), None)
    if text is None or "#" in context.text(step.statement):
        return None
    behind = [*ast.parse(used).body, *behind]
    others = (argument(step, name, program) or "" for name in ("root", "op"))
    fixed = words(" ".join(others))
    return _Parts(node, loop, step, text, received, ahead, behind, one, fixed)


def _with(call: ast.stmt, step: Communicate, one: str, lines: list[str]) -> str:
    """Return a statement with a name in the place of its call."""

    class Replaced(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.expr:
            if span_of(node, lines) == step.span:
                return ast.Name(one, ast.Load())
            self.generic_visit(node)
            return node

    # others look at the same tree
    return ast.unparse(Replaced().visit(deepcopy(call)))


# --- which loops ----------------------------------------------------------------------------------


def _varies(parts: _Parts) -> bool:
    """Return whether what is sent follows the loop: a repetition of the same measures it."""
    known = parts.targets
    for node in parts.before:
        if known & loaded_names([node]):
            known |= bound_names([node])
    return bool(known & loaded_names([ast.parse(parts.sent)]))


def _is_another_call(parts: _Parts) -> bool:
    """Return whether another root, operation or communicator may be meant each time."""
    bound = bound_names([*parts.before, *parts.behind])
    other = words(parts.step.receiver) & parts.targets or parts.step.receiver in bound
    return bool(other or parts.fixed & (parts.targets | bound))


def _is_distributable(parts: _Parts) -> bool:
    """Return whether all that comes before calls can come before all that is behind them."""
    first, later = bound_names(parts.before), bound_names(parts.behind)
    if parts.received is not None:
        later -= {parts.received} & first
        first -= {parts.received}
    used = loaded_names(parts.behind)
    if first & used or parts.targets & (first | later):
        return False
    shared = parts.reads & later
    if not all(_is_by_index(name, parts) for name in shared):
        return False
    again = isinstance(parts.node.iter, ast.Call) and ast.unparse(parts.node.iter.func) == "range"
    if not (again or not parts.targets & used) or not _calls_nothing(parts.behind):
        return False
    at = parts.steps.body.index(parts.step)
    ahead = (view for one in parts.steps.body[:at] for view in reads_of(one))
    after = [one.step for one in walk(parts.steps.body[at + 1 :])]
    stored = [view for one in after for view in written(one) or ()]
    return not any(
        may_share(one, other) and one.buffer.name not in shared for one in ahead for other in stored
    )


def _is_by_index(name: str, parts: _Parts) -> bool:
    """Return whether an iteration uses of an array or a dictionary only its own element."""
    found: list[str] = []
    uses = 0
    for node in (*parts.before, ast.parse(parts.sent), *parts.behind):
        for part in ast.walk(node):
            uses += isinstance(part, ast.Name) and part.id == name
            if isinstance(part, ast.Subscript) and ast.unparse(part.value) == name:
                found.append(ast.unparse(part.slice))
    return len(found) == uses and len(set(found)) == 1 and set(found) <= parts.targets


def _calls_nothing(nodes: list[ast.stmt]) -> bool:
    """Return whether all that is called computes numbers, or adds to a list."""
    for part in (part for node in nodes for part in ast.walk(node)):
        if isinstance(part, ast.Call):
            called = ast.unparse(part.func)
            first, _, rest = called.partition(".")
            plain = first in ("np", "numpy", "math") or rest == "append" or called in _PLAIN_CALLS
            if not plain:
                return False
    return True


def _only_adds(parts: _Parts, function: SpmdFunction, program: Program) -> bool:
    """Return whether an iteration does no more with its sum than to add it to a total."""
    step, behind = parts.step, parts.behind
    if step.operation != "SUM" or (step.pickled and step.op is not Op.ALLREDUCE):
        return False
    if parts.received is not None:
        behind = behind[1:]
        places = occurrences(parts.received, function, program)
        last = parts.node.end_lineno or parts.node.lineno
        outside = parts.received not in bound_names(parts.before) | set(function.parameters)
        if not outside or any(place.start_line > last for place in places):
            return False
    if len(behind) == 1 and isinstance(behind[0], ast.If) and not behind[0].orelse:
        if loaded_names([behind[0].test]) & (parts.targets | bound_names([*parts.before, *behind])):
            return False
        behind = behind[0].body
    match behind:
        case [ast.AugAssign(target=ast.Name(id=total), op=ast.Add(), value=ast.Name(id=added))]:
            return added == (parts.received or parts.one) and total not in parts.reads
    return False


# --- what takes their place -----------------------------------------------------------------------


def _body(nodes: list[ast.stmt], parts: _Parts, program: Program) -> list[str]:
    """Return statements of a loop as they stand, unless comments in them would come twice."""
    context, inner = program.context, " " * (parts.node.body[0].col_offset - parts.node.col_offset)
    texts = []
    for node in nodes:
        own = hasattr(node, "lineno") and node in parts.node.body
        text = context.text(span_of(node, context.lines)) if own else ast.unparse(node)
        texts.append(inner + (text if "#" not in text else ast.unparse(node)))
    return texts


def _instead(parts: _Parts, lines: list[str], program: Program) -> Edits | None:
    node, context = parts.node, program.context
    place = span_of(node, context.lines)
    if node.body[0].lineno == node.lineno or not starts_line(place, context):
        return None
    return in_place_of(place, lines, context)


def _steps(parts: _Parts, *, whole: bool) -> tuple[Step, ...]:
    """Return a loop, one collective, and for what comes behind it another loop."""
    step, loop = parts.step, parts.steps
    assert step.send is not None and loop.trips is not None
    view = step.send.view
    shape = () if view is None or step.send.kind is PayloadKind.SCALAR else view.shape or ()
    extents = (loop.trips, *shape) if whole else shape or (num(1),)
    memory = payload_of(new_array("sent", _dtype(step.send), extents, step.span), step.span)
    call = replace(
        collective(step, step.op, memory, None if step.op is Op.BCAST else memory), pickled=False
    )
    at = loop.body.index(step)
    kept = (one for one in (loop.body[:at], loop.body[at + 1 :]))
    loops = [
        replace(loop, body=tuple(one for one in body if not isinstance(one, Communicate)))
        for body in kept
    ]
    if whole:
        return loops[0], call, loops[1]
    return replace(loops[0], body=loops[0].body + loops[1].body), call


def _added_first(
    program: Program, function: SpmdFunction, visit: Visit, parts: _Parts
) -> ProgramProposal:
    step, context = parts.step, program.context
    name, numpy = fresh_name("added", context.identifiers), context.array_module
    lines: list[str] | None = None
    call = _call_of(step, name, program)
    inner = " " * (parts.node.body[0].col_offset - parts.node.col_offset)
    if call is not None and (parts.received is None or numpy is not None):
        start, add = f"{name} = 0", f"{name} = {name} + {parts.sent}"
        if parts.received is not None:
            start, add = f"{name} = {numpy}.zeros_like({parts.received})", f"{name} += {parts.sent}"
        after = parts.behind[1:] if parts.received is not None else []
        shift = parts.node.body[0].col_offset - parts.node.col_offset
        lines = [
            start,
            f"{parts.header()}:",
            *_body(parts.before, parts, program),
            inner + add,
            call,
        ]
        lines += [text[shift:].replace("\n" + inner, "\n") for text in _body(after, parts, program)]
    return offer(
        function,
        visit,
        step.span,
        f"add up `{shortened(parts.sent)}` on every rank first, then call `{step.method}` once",
        _REASON,
        (parts.steps,),
        _steps(parts, whole=False),
        "the same terms are added, in another order: sums of floating-point numbers agree to"
        " rounding; every rank goes through the loop as often, as each call has to be made by all",
        None if lines is None else _instead(parts, lines, program),
    )


def _call_of(step: Communicate, name: str, program: Program) -> str | None:
    """Return the statement of a call, with a name in the place of what is sent."""
    place = next((step.places[n] for n in _SENT if n in step.places), None)
    if place is None:
        return None
    whole, text = step.statement, program.context.text
    given = text(place)
    keyword = given[: len(given) - len(given.partition("=")[2])] if _is_keyword(given) else ""
    ahead = text(stretch(whole, before(place)))
    rest = text(Span(place.end_line, place.end_column, whole.end_line, whole.end_column))
    return f"{ahead}{keyword}{name}{rest}"


def _is_keyword(text: str) -> bool:
    return any(text.startswith(f"{name}=") for name in _SENT)


def _collected(
    program: Program, function: SpmdFunction, visit: Visit, parts: _Parts
) -> ProgramProposal:
    step = parts.step
    lines = _lines(parts, function, program)
    rounded = step.op in _REDUCTIONS and step.operation in ("SUM", "PROD")
    return offer(
        function,
        visit,
        step.span,
        f"let one `{step.method.capitalize()}` carry `{shortened(parts.sent)}` of all iterations",
        _REASON,
        (parts.steps,),
        _steps(parts, whole=True),
        _APART + _ROUNDED * rounded,
        None if lines is None else _instead(parts, lines, program),
    )


def _is_used_elsewhere(parts: _Parts, function: SpmdFunction, program: Program) -> bool:
    """Return whether the index of a loop may be asked for where the loop has ended."""
    place = span_of(parts.node, program.context.lines)
    return any(
        not place.contains(one) and not is_binding(one, program)
        for name in parts.targets
        for one in occurrences(name, function, program)
    )


def _lines(parts: _Parts, function: SpmdFunction, program: Program) -> list[str] | None:
    """Return the two loops and the call between them; None where they cannot be written."""
    step, context, sent = parts.step, program.context, parts.step.send
    numpy, mpi = context.array_module, program.mpi_module
    if numpy is None or mpi is None or sent is None:
        return None
    scalar = sent.kind is PayloadKind.SCALAR
    listed, got = (fresh_name(n, context.identifiers) for n in ("sent", "received"))
    lines = [f"{listed} = [{parts.sent} {parts.header()}]"]
    if parts.before or _is_used_elsewhere(parts, function, program):
        inner = " " * (parts.node.body[0].col_offset - parts.node.col_offset)
        each = parts.sent if scalar else f"{parts.sent}.copy()"
        lines = [f"{listed} = []", f"{parts.header()}:", *_body(parts.before, parts, program)]
        lines.append(f"{inner}{listed}.append({each})")
    root = argument(step, "root", program) or "0"
    at_root, dtype = f"{step.receiver}.Get_rank() == {root}", f"dtype={_dtype(sent)!r}"
    operation = argument(step, "op", program)
    op = "" if operation is None else f", op={operation}"
    match step.op:
        case Op.ALLREDUCE:
            lines += [
                f"{got} = {numpy}.array({listed}, {dtype})",
                f"{step.receiver}.Allreduce({mpi}.IN_PLACE, {got}{op})",
            ]
        case Op.BCAST if scalar or not step.pickled:
            source = f"{listed} if {at_root} else [0] * len({listed})" if scalar else listed
            lines += [
                f"{got} = {numpy}.array({source}, {dtype})",
                f"{step.receiver}.Bcast({got}, root={root})",
            ]
        case _:
            return None
    return [*lines, *_used(parts, got, scalar, program)]


def _used(parts: _Parts, got: str, scalar: bool, program: Program) -> list[str]:
    """Return what is done with all results, from which on nothing is sent."""
    sent, target = parts.step.send, parts.node.target
    match parts.behind, parts.node.iter:
        case (
            [
                ast.Assign(
                    targets=[ast.Subscript(value=ast.Name(id=name), slice=index) as into],
                    value=ast.Name(id=parts.one),
                )
            ],
            ast.Call(func=ast.Name(id="range"), args=[_]),
        ) if ast.unparse(index) == ast.unparse(target) and _is_array(into, parts):
            return [f"{name}[:len({got})] = {got}"]
    # numbers of Python stay what they were
    each = f"{got}.tolist()" if scalar and sent is not None and sent.dtype in _ELEMENT else got
    header = f"for {parts.one} in {each}:"
    if parts.targets & loaded_names(parts.behind):
        header = parts.header(behind=True).format(each) + ":"
    return [header, *_body(parts.behind, parts, program)]


def _is_array(into: ast.Subscript, parts: _Parts) -> bool:
    return any(
        isinstance(one, Compute) and one.target is not None and one.target.text == ast.unparse(into)
        for one in parts.steps.body
    )
