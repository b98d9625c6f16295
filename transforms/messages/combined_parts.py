"""What the root makes of what a collective brings, and what of that goes back to all.

The root gathers and adds, and every rank gets the sum: that is `Allreduce`. In general:

=============== ========================== ================ ===========
brought by      what is made of the parts  goes back to all stays
=============== ========================== ================ ===========
`gather`        their sum, of arrays       `Allreduce`      `Reduce`
`allgather`     their sum, of arrays                        `Allreduce`
`gather`        sum, extreme of numbers    `allreduce`      `reduce`
`allgather`     sum, extreme of numbers                     `allreduce`
`gather`        anything else              `allgather`
`reduce`        anything                   `allreduce`
=============== ========================== ================ ===========

What goes back is made on every rank, of what every rank has then.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import takewhile

from advisor.ir.spmd.memory import PayloadKind, View
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Branch, Communicate, Op, Step, Visit
from advisor.source import Span, every
from costdb.records import dataclass, field, replace
from transforms.kit import rewrite
from transforms.kit.memory import FLOATS, array_payload, may_share, plain_array, same_memory
from transforms.kit.names import (
    argument,
    bound_names,
    is_binding,
    keywords,
    loaded_names,
    occurrences,
    words,
)
from transforms.kit.programs import collective, offer, sent_text
from transforms.kit.ranks import on_all_ranks, root_arms, same_communicator
from transforms.messages.buffers import Writer, as_buffers

_ON_ALL = {Op.GATHER: Op.ALLGATHER, Op.REDUCE: Op.ALLREDUCE}
_PURE = frozenset({"abs", "float", "int", "len", "max", "min", "sum"})
_COMBINED = "{combined}"
_SIZE = ("size", "Get_size()")


@dataclass(frozen=True, slots=True)
class _Made:
    """What is made of parts.

    Attributes
    ----------
    name : str
    value : ast.expr or None
        By which expression; None where a loop adds parts up, or they go on as they are.
    operation : str
        Which of MPI's operations combines the parts to it; empty where none does.
    rest : str
        What is made of the combined parts then, which are called `_COMBINED`.
    start : str
        What a sum begins with.
    nodes : list of ast.stmt
        The statements that make it, with those around them that do nothing else.
    """

    name: str
    value: ast.expr | None = None
    operation: str = ""
    rest: str = _COMBINED
    start: str = "0"
    nodes: list[ast.stmt] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Way:
    """Parts on their way: brought by some collectives, combined, and perhaps sent to all."""

    brought: list[Communicate]
    made: _Made
    back: Communicate | None
    place: Span
    returned: bool = False

    @property
    def target(self) -> str:
        """The name of what all ranks get."""
        return (self.back and self.back.result) or self.made.name

    @property
    def ended(self) -> list[str]:
        """What is done with it in the end."""
        return [f"return {self.target}"] * self.returned


def combined_parts(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield the collective that brings what is made of the parts, not the parts."""
    yield from _sent_on(program, function)
    for visit, way in _ways(program, function):
        found = _instead(program, visit, way)
        if found is None:
            continue
        after, lines, title, argued = found
        context, place = program.context, way.place
        edits: rewrite.Edits | str = "the statements share their lines, or have no such form"
        alone = rewrite.starts_line(place, context) and rewrite.stands_alone(context, place)
        if lines is not None and alone and "#" not in context.text(place):
            edits = rewrite.in_place_of(place, lines, context)
        yield offer(
            function,
            visit,
            way.brought[0].span,
            title,
            "what is made of the parts goes to where it is used in one call, which has no root"
            " that everybody waits for",
            tuple(one for one in visit.block[visit.position :] if place.contains(one.span)),
            after,
            f"{argued}; nothing else uses the parts",
            edits,
        )


def _sent_on(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield the collective on all ranks for one to the root, from where a broadcast follows."""
    for visit, step in function.operations():
        behind = visit.block[visit.position + 1 :]
        back = behind[0] if behind else None
        if step.op not in _ON_ALL or step.pickled or step.varying or not step.blocking:
            continue
        if not isinstance(back, Communicate) or back.op is not Op.BCAST or back.pickled:
            continue
        got, sent = plain_array(step.receive), plain_array(step.send)
        brought = plain_array(back.send)
        if got is None or sent is None or brought is None or back.root != step.root:
            continue
        alike = same_communicator(step.communicator, back.communicator) and back.blocking
        if not alike or not got.is_whole or not brought.is_whole or not same_memory(got, brought):
            continue
        if may_share(sent, got) or not on_all_ranks(function.visits(), visit):
            continue
        call = replace(
            collective(step, _ON_ALL[step.op], step.send, back.send), operation=step.operation
        )
        yield offer(
            function,
            visit,
            step.span,
            f"bring `{sent_text(step)}` to all ranks at once, by `{call.method}`",
            "the root has to have all of it before it can send it on",
            (step, back),
            (call,),
            "every rank gets what the root got; sums of floating-point numbers may be collected in"
            " another order",
            "what the root does with it in between is not looked at",
        )


def combined(program: Program) -> frozenset[Span]:
    """Return the calls that go when something is made of their parts on the way."""
    return frozenset(
        one.span
        for function in program.functions
        for visit, way in _ways(program, function)
        if _instead(program, visit, way) is not None
        for one in (*way.brought, *((way.back,) if way.back is not None else ()))
    )


# --- what is made of parts ------------------------------------------------------------------------


def _ways(program: Program, function: SpmdFunction) -> Iterator[tuple[Visit, _Way]]:
    told: set[Span] = set()
    for visit, step in function.operations():
        if step.op not in (Op.GATHER, Op.ALLGATHER, Op.REDUCE) or not step.pickled:
            continue
        if step.span in told or not on_all_ranks(function.visits(), visit):
            continue
        way = _way(program, function, visit, step)
        if way is not None:
            told |= {one.span for one in way.brought}
            yield visit, way


def _way(program: Program, function: SpmdFunction, visit: Visit, step: Communicate) -> _Way | None:
    """Return what is made of the result of a call, if nothing else is."""
    context = program.context
    nodes, at = rewrite.suite_at(step.statement, context) or ([], 0)
    steps = {s.statement: s for s in visit.block if isinstance(s, Communicate)}

    def is_another(node: ast.stmt) -> bool:
        other = steps.get(rewrite.span_of(node, context.lines))
        alike = step.op, step.root, step.receiver
        return other is not None and (other.op, other.root, other.receiver) == alike

    more = list(takewhile(is_another, nodes[at + 1 :])) if step.op is Op.REDUCE else []
    brought = [step, *(steps[rewrite.span_of(node, context.lines)] for node in more)]
    rest = nodes[at + len(brought) :]
    names = [one.result or "" for one in brought if one.pickled]
    if step.op is Op.ALLGATHER and step.result is None and step.send is not None:
        return _within(program, step, nodes[at] if nodes else ast.Pass())
    if step.send is None or len(names) < len(brought) or not all(map(str.isidentifier, names)):
        return None
    made = _made(program, visit, step, names, rest)
    if len(names) == 1 and rest:
        back = steps.get(rewrite.span_of(rest[0], context.lines))
        made = _Made(names[0]) if _is_back(step, back, names[0], rest[0]) else made
    if made is None:
        return None
    behind, back = rest[len(made.nodes) :], None
    if behind and step.op is not Op.ALLGATHER:
        back = steps.get(rewrite.span_of(behind[0], context.lines))
        back = back if _is_back(step, back, made.name, behind[0]) else None
    if not made.operation and back is None:
        return None
    ended = [nodes[at], *made.nodes, *(behind[:1] if back is not None else [])][-1]
    place = rewrite.stretch(step.statement, rewrite.span_of(ended, context.lines))
    # nothing else may use the parts, or what is made of them in between
    gone = {*names, *bound_names(made.nodes)} - {made.name}
    gone -= set(names if step.op is Op.REDUCE else ())
    if back is not None and back.result not in (None, made.name):
        gone.add(made.name)
    for name in gone:
        places = occurrences(name, function, program)
        if any(not place.contains(one) and not is_binding(one, program) for one in places):
            return None
    returned = isinstance(ended, ast.Return)
    return _Way(brought, made, back, place, returned)


def _within(program: Program, step: Communicate, node: ast.stmt) -> _Way | None:
    """Return what a statement makes of the result of a call in it."""
    context = program.context
    call = ast.unparse(rewrite.tree_of(context.text(step.span).strip()))
    operations = combining(step, call, str(context.array_module))
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            pass
        case _:
            return None
    calls = [*every(ast.Call, value)]
    found = [text for one in calls if (text := ast.unparse(one)) in operations]
    others = [one for one in calls if ast.unparse(one) not in (call, *found)]
    if len(found) != 1 or (step.send is not None and others and not _is_of_numbers(step)):
        return None
    rest = rewrite.with_calls(value, {found[0]: _COMBINED})
    made = _Made(name, value, operations[found[0]], rest, nodes=[node])
    return _Way([step], made, None, step.statement)


def _is_back(step: Communicate, back: Communicate | None, name: str, node: ast.stmt) -> bool:
    """Return whether a statement brings to all ranks what was made on the root."""
    return (
        back is not None
        and (back.op, back.root, back.pickled) == (Op.BCAST, step.root, True)
        and same_communicator(back.communicator, step.communicator)
        and isinstance(node, ast.Assign | ast.Return)
        and isinstance(node.value, ast.Call)
        and [ast.unparse(one) for one in node.value.args[:1]] == [name]
    )


def _made(
    program: Program, visit: Visit, step: Communicate, names: list[str], rest: list[ast.stmt]
) -> _Made | None:
    """Return what is made of parts behind the collective that brought them, where they are."""
    if step.op is Op.ALLGATHER:
        match rest:
            case [ast.Return(value=ast.expr() as value), *_]:
                numpy, context = str(program.context.array_module), program.context
                operation = combining(step, names[0], numpy).get(ast.unparse(value), "")
                name = rewrite.fresh_name("combined", context.identifiers)
                return _Made(name, value, operation, nodes=rest[:1])
        return next(filter(None, (_of(rest[:n], names, step, program) for n in (1, 2))), None)
    body, used, others = _on_root(program, visit, step, rest)
    made = _of(body, names, step, program)
    return None if made is None or others - {made.name} else replace(made, nodes=rest[:used])


def _on_root(
    program: Program, visit: Visit, step: Communicate, rest: list[ast.stmt]
) -> tuple[list[ast.stmt], int, set[str]]:
    """Return statements of the root, of how many nodes, and names that are None elsewhere."""
    none: set[str] = set()
    match rest:
        case [ast.Assign(value=ast.IfExp(test=test, body=value, orelse=orelse)) as one, *_]:
            if _is_none(orelse) and _asks_for_root(test, step, program):
                made = ast.Assign(one.targets, value)
                return [ast.copy_location(made, one)], 1, none
            return [], 0, none
        case [ast.Assign(value=ast.Constant(value=None)), ast.If(orelse=[]) as branch, *_]:
            used = 2
        case [ast.If() as branch, *_]:
            used = 1
        case _:
            return [], 0, none
    if not _is_of_root(program, visit, step, branch):
        return [], 0, none
    for other in branch.orelse:
        if isinstance(other, ast.Assign) and _is_none(other.value):
            none |= {ast.unparse(target) for target in other.targets}
        elif not isinstance(other, ast.Pass):
            return [], 0, none
    return branch.body, used, none


def _is_of_root(program: Program, visit: Visit, step: Communicate, branch: ast.If) -> bool:
    """Return whether the root alone goes into the first arm of a branch."""
    place = rewrite.span_of(branch, program.context.lines)
    for one in visit.block:
        if isinstance(one, Branch) and one.span.start_line == place.start_line:
            arms = None if step.root is None else root_arms(one, step.communicator, step.root)
            if arms is not None and arms[0] == one.then != one.orelse:
                return True
    # a branch without a step is none
    return _asks_for_root(branch.test, step, program)


def _of(
    body: list[ast.stmt], names: list[str], step: Communicate, program: Program
) -> _Made | None:
    """Return what one assignment makes of parts, or a total and the loop that adds to it."""
    numpy = str(program.context.array_module)
    match body:
        case [ast.Assign(targets=[ast.Name(id=name)], value=value)]:
            calls = [ast.unparse(c.func) for c in every(ast.Call, value)]
            pure, size = ("math.", f"{numpy}."), {f"{step.receiver}.{n}" for n in _SIZE}
            if any(
                ".random" in c or not (c.startswith(pure) or c in _PURE or f"{c}()" in size)
                for c in calls
            ):
                return None
            others = loaded_names([value]) - {*names, "math", numpy, *_PURE, step.receiver}
            if any(not _is_named(program, {one}, size) for one in others):
                return None
            made = _Made(name, value, nodes=body)
            if step.op is Op.REDUCE:
                return made
            operations = combining(step, names[0], numpy)
            combines = [part for part in every(ast.Call, value) if ast.unparse(part) in operations]
            if len(combines) != 1:
                return made
            count = {f"len({names[0]})": f"{step.receiver}.Get_size()"}
            text = ast.unparse(combines[0])
            rest = rewrite.with_calls(value, {text: _COMBINED} | count)
            if names[0] in words(rest):
                return made
            return replace(made, operation=operations[text], rest=rest)
        case [
            ast.Assign(targets=[ast.Name(id=total)], value=start),
            ast.For(
                target=ast.Name(id=part),
                iter=ast.Name(id=parts),
                body=[ast.AugAssign(target=ast.Name(id=sum_), op=ast.Add(), value=ast.Name(id=p))],
                orelse=[],
            ),
        ] if (sum_, p, [parts]) == (total, part, names):
            text = ast.unparse(start)
            if text.startswith((f"{numpy}.zeros(", f"{numpy}.zeros_like(")) or text in ("0", "0.0"):
                return _Made(total, None, "SUM", start=text, nodes=body)
    return None


def combining(step: Communicate, parts: str, numpy: str) -> dict[str, str]:
    """Return expressions that combine all of a list of arrays, or of numbers, for one of MPI's."""
    numbers, names = _is_of_numbers(step), ("sum", "max", "min")
    axes = (", axis=0", ", 0", "")[: 2 + numbers]
    found = {f"{name}({parts})": name.upper() for name in names if numbers or name == "sum"}
    return found | {f"{numpy}.{n}({parts}{axis})": n.upper() for n in names for axis in axes}


def _is_of_numbers(step: Communicate) -> bool:
    return step.send is not None and step.send.kind is PayloadKind.SCALAR


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _asks_for_root(test: ast.expr, step: Communicate, program: Program) -> bool:
    """Return whether a condition is that the own rank is the root of a call."""
    root = argument(step, "root", program) or "0"
    asked = {f"{step.receiver}.rank", f"{step.receiver}.Get_rank()"}
    match test:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            sides = {ast.unparse(left), ast.unparse(right)} - {root}
        case _:
            return False
    return len(sides) == 1 and (sides <= asked or _is_named(program, sides, asked))


def _is_named(program: Program, names: set[str], asked: set[str]) -> bool:
    """Return whether some names are given one of some values, and nothing else."""
    given: set[str] = set()
    for one in ast.walk(rewrite.tree_of(program.context.source)):
        if isinstance(one, ast.Assign):
            for target in one.targets:
                pairs = [(target, one.value)]
                if isinstance(target, ast.Tuple) and isinstance(one.value, ast.Tuple):
                    pairs = list(zip(target.elts, one.value.elts, strict=False))
                given |= {ast.unparse(v) for t, v in pairs if ast.unparse(t) in names}
        elif isinstance(one, ast.arg | ast.AugAssign | ast.For) and names & bound_names([one]):
            return False
    return bool(given) and given <= asked


# --- what takes their place -----------------------------------------------------------------------

_Found = tuple[tuple[Step, ...], list[str] | None, str, str]
"""Steps, lines, what is proposed, and why results are the same."""


def _instead(program: Program, visit: Visit, way: _Way) -> _Found | None:
    step, made = way.brought[0], way.made
    view, sent = array_payload(step.send), sent_text(step)
    op = Op.REDUCE if way.back is None and step.op is not Op.ALLGATHER else Op.ALLREDUCE
    if op is Op.REDUCE and made.rest != _COMBINED:
        return None  # elsewhere there is nothing to go on with
    writer = Writer(program, step, op, None if view is None else view.dtype)
    method = op.value.capitalize()
    if made.operation == "SUM" and view is not None and _keeps_type(program, way, view):
        name, ended = way.target, way.ended
        if made.rest != _COMBINED:
            name = writer.name("combined")
            ended = [f"{way.target} = {made.rest.replace(_COMBINED, name)}", *ended]
        return (
            as_buffers(step, view, op, "SUM"),
            writer.alike(view, name, "same", ended),
            f"let `{method}` add up `{sent}`, do not gather it to add",
            "the same terms are added, in another order: sums of floating-point numbers agree to"
            " rounding; parts of different shapes, which are added with broadcasting, are not",
        )
    unknown = step.send is not None and step.send.kind is PayloadKind.UNKNOWN
    if made.operation and (_is_of_numbers(step) or (unknown and made.value is not None)):
        given = argument(step, "sendobj", program), f"op={program.mpi_module}.{made.operation}"
        combined = writer.call(op.value, *map(str, given))
        line = f"{way.target} = {made.rest.replace(_COMBINED, combined)}"
        return (
            (replace(step, op=op, method=op.value, operation=made.operation),),
            [line, *way.ended] if program.mpi_module is not None else None,
            f"let `{op.value}` combine `{sent}` of all ranks, do not gather it",
            "the same numbers are combined, in another order: sums of floating-point numbers agree"
            " to rounding; where some are not numbers (NaN) MPI does not say what an extreme is"
            + f"; if what is added is not of truth values; of arrays `{method}` is what pays"
            * (not _is_of_numbers(step)),
        )
    if way.back is None or (made.operation and made.value is None):
        return None
    steps, lines, title, argued = _on_all(program, visit, way)
    if view is not None and step.operation in ("SUM", "PROD") and len(way.brought) == 1:
        name = step.result or way.target
        kept = None if lines is None else lines[1:]
        lines = (
            None
            if kept is None
            else writer.alike(view, name if made.nodes else way.target, "same", kept)
        )
        steps, title = as_buffers(step, view, op) + steps[1:], title.replace(op.value, method)
    return steps, lines, title, argued


def _keeps_type(program: Program, way: _Way, view: View) -> bool:
    """Return whether NumPy's sum has the element type of what is added."""
    if view.dtype not in FLOATS | {"int64", "uint64"}:
        return False
    start, sent = way.made.start, argument(way.brought[0], "sendobj", program)
    plain = "dtype" not in start and "_like" not in start and view.dtype == "float64"
    return start in ("0", "0.0") or start.endswith(f".zeros_like({sent})") or plain


def _on_all(program: Program, visit: Visit, way: _Way) -> _Found:
    """Return the calls on all ranks for those to a root that sends on what it makes."""
    made, step = way.made, way.brought[0]
    sums, op = step.op is Op.REDUCE, _ON_ALL[step.op]
    lines: list[str] = []
    for one in way.brought:
        result = one.result if made.nodes else way.target
        given = [argument(one, "sendobj", program), *keywords(one, ("op",), program)]
        lines.append(f"{result} = {one.receiver}.{op.value}({', '.join(map(str, given))})")
    value = [] if made.value is None else [f"{way.target} = {ast.unparse(made.value)}"]
    lines += [*value, *way.ended]
    calls = tuple(replace(one, op=op, method=op.value, root=None) for one in way.brought)
    work = tuple(
        one
        for step in visit.block[visit.position :]
        if way.place.contains(step.span) and not isinstance(step, Communicate)
        for one in (step.then if isinstance(step, Branch) else (step,))
    )
    argued = "every rank makes of the same parts what the root made of them"
    if sums:
        argued += "; sums of floating-point numbers may be collected in another order"
    does = f"{'reduce' if sums else 'gather'} `{sent_text(step)}` {'to' if sums else 'on'} all"
    return calls + work, lines, f"{does} ranks at once, by `{op.value}`", argued
