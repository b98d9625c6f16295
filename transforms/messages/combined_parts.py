"""What becomes of the parts that a collective brings to one rank, or to all: sums, joined arrays.

The root gathers and adds, and every rank gets the sum: that is `Allreduce`. In general:

=============== =================================== ==========================
brought by      what is made of the parts           goes back to all   stays
=============== =================================== ================== =======
`gather`        their sum                           `Allreduce`        `Reduce`
`gather`        one array, part after part          `Allgatherv`       `Gatherv`
`gather`        nothing                             `allgather`
`reduce`        anything                            `allreduce`
`allgather`     their sum                                              `Allreduce`
`allgather`     one array, part after part                             `Allgatherv`
=============== =================================== ================== =======
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from advisor.ir.spmd.memory import View
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Branch, Communicate, Op, Step, Visit
from advisor.source import Edit, Span
from costdb.records import dataclass, replace
from transforms.kit.memory import (
    FLOATS,
    array_payload,
    may_share,
    payload_of,
    plain_array,
    same_memory,
)
from transforms.kit.names import (
    argument,
    bound_names,
    is_binding,
    is_simple,
    is_uniform,
    keywords,
    loaded_names,
    occurrences,
)
from transforms.kit.programs import collective, offer, sent_text
from transforms.kit.ranks import on_all_ranks, root_arms, same_communicator
from transforms.kit.rewrite import (
    Edits,
    in_place_of,
    line_of,
    span_of,
    stands_alone,
    starts_line,
    stretch,
    suite_at,
    together,
    tree_of,
)
from transforms.messages.buffers import Writer, as_buffers, told_first

_ON_ALL = {Op.GATHER: Op.ALLGATHER, Op.REDUCE: Op.ALLREDUCE}
_ROWS = frozenset({"array", "stack"})
"""Functions that make an array with a row for each part."""
_JOINS = frozenset({"concatenate", "vstack", "hstack"}) | _ROWS
SUM, SAME, NUMBER = "sum", "same", "number"
"""How parts are combined, besides by a function that joins: added, not at all, into a number."""


@dataclass(frozen=True, slots=True)
class _Made:
    """What is made of parts.

    Attributes
    ----------
    how : str
    name : str
        What it is called; ``""`` where it is returned at once.
    value : ast.expr or None
        The expression, of a `NUMBER`; of a sum that a loop makes what it begins with.
    nodes : list of ast.stmt
        The statements that make it, with those around them that do nothing else.
    inside : list of ast.stmt
        Those within a branch in which the root goes on to do more.
    """

    how: str
    name: str
    value: ast.expr | None
    nodes: list[ast.stmt]
    inside: list[ast.stmt]


@dataclass(frozen=True, slots=True)
class _Way:
    """Parts on their way: brought by some collectives, combined, and perhaps sent to all."""

    brought: list[Communicate]
    made: _Made
    back: Communicate | None
    place: Span

    @property
    def target(self) -> str:
        """The name of what all ranks get."""
        result = None if self.back is None else self.back.result
        return result or self.made.name or "made"

    @property
    def ended(self) -> list[str]:
        """What is done with it in the end."""
        returned = not self.made.name if self.back is None else self.back.result is None
        return [f"return {self.target}"] * returned


def combined_parts(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield the collective that brings what is made of the parts, not the parts."""
    yield from _sent_on(program, function)
    for visit, way in _ways(program, function):
        found = _instead(program, way)
        if found is not None:
            yield _proposal(program, function, visit, way, *found)


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
        own, into = argument(step, "sendbuf", program), argument(back, "buf", program)
        given = [own, into, *keywords(step, ("op",), program)]
        next_to = step.statement.end_line + 1 == back.statement.start_line
        writable = next_to and is_simple(step, program) and is_simple(back, program)
        place = stretch(step.statement, back.statement)
        line = f"{step.receiver}.{call.method}({', '.join(map(str, given))})"
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
            in_place_of(place, [line], program.context)
            if writable and own and into
            else "something stands between the calls, or beside them",
        )


def combined(program: Program) -> frozenset[Span]:
    """Return the calls that go when something is made of their parts on the way."""
    return frozenset(
        one.span
        for function in program.functions
        for _, way in _ways(program, function)
        if _instead(program, way) is not None
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
    nodes, at = suite_at(step.statement, context) or ([], 0)
    if not nodes or step.send is None:
        return None
    if step.result is None:
        made = _at_once(program, step, nodes[at])
        return None if made is None else _Way([step], made, None, step.statement)
    steps = {s.statement: s for s in visit.block if isinstance(s, Communicate)}
    brought, rest = [step], nodes[at + 1 :]
    while rest and step.op is Op.REDUCE:
        other = steps.get(span_of(rest[0], context.lines))
        alike = (step.op, step.root, step.receiver)
        if other is None or (other.op, other.root, other.receiver) != alike:
            break
        if not other.pickled or other.result is None:
            return None
        brought, rest = [*brought, other], rest[1:]
    names = [one.result or "" for one in brought]
    made = _made(program, visit, step, names, rest) if all(map(str.isidentifier, names)) else None
    if made is None:
        return None
    behind, back = rest[len(made.nodes) :], None
    if behind and step.op is not Op.ALLGATHER:
        back = steps.get(span_of(behind[0], context.lines))
        back = back if _is_back(step, back, made.name, behind[0]) else None
    if (step.op is Op.REDUCE and back is None) or (made.inside and back is not None):
        return None
    ended = [nodes[at], *made.nodes, *(behind[:1] if back is not None else [])][-1]
    place = stretch(step.statement, span_of(ended, context.lines))
    whole = stretch(place, span_of([ended, *made.inside][-1], context.lines))
    # nothing else may use the parts, or what is made of them in between
    gone = {*names, *bound_names([*made.nodes, *made.inside])} - {made.name}
    gone -= set(names if step.op is Op.REDUCE else ())
    if back is not None and back.result not in (None, made.name):
        gone.add(made.name)
    for name in gone:
        places = occurrences(name, function, program)
        if any(not whole.contains(one) and not is_binding(one, program) for one in places):
            return None
    return _Way(brought, made, back, place)


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


def _at_once(program: Program, step: Communicate, node: ast.stmt) -> _Made | None:
    """Return what is made of the parts in the statement of the call itself."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            pass
        case ast.Return(value=ast.expr() as value):
            name = ""
        case _:
            return None
    match value:
        case ast.Call(args=[ast.Call() as inner, *_]) if step.op is Op.ALLGATHER:
            if span_of(inner, program.context.lines) == step.span:
                how = _call_of(value, ast.unparse(inner), program)
                return None if how is None else _Made(how, name, None, [], [])
    return None


def _call_of(value: ast.expr, parts: str, program: Program) -> str | None:
    """Return what a call makes of parts that go by a name or are an expression."""
    if not isinstance(value, ast.Call) or not value.args or ast.unparse(value.args[0]) != parts:
        return None
    more = [ast.unparse(one) for one in (*value.args[1:], *value.keywords)]
    module, _, called = ast.unparse(value.func).rpartition(".")
    if (module, called, more) == ("", "sum", []):
        return SUM
    if module != program.context.array_module:
        return None
    if called == "sum":
        return SUM if more in (["axis=0"], ["0"]) else None
    return called if called in _JOINS and more in ([], ["axis=0"]) else None


def _made(
    program: Program, visit: Visit, step: Communicate, names: list[str], rest: list[ast.stmt]
) -> _Made | None:
    """Return what is made of parts behind the collective that brought them, where they are."""
    if step.op is Op.ALLGATHER:
        return next(filter(None, (_of(rest[:n], names, step, program) for n in (1, 2))), None)
    if len(names) == 1 and rest and _is_bcast(rest[0], names[0]):
        return _Made(SAME, names[0], None, [], [])
    body, used, others = _on_root(program, visit, step, rest)
    made = _of(body, names, step, program)
    if made is not None:
        return replace(made, nodes=rest[:used]) if others <= {made.name} else None
    # the root goes on to do more
    inside = (_of(body[:n], names, step, program) for n in (1, 2) if n < len(body) and used == 1)
    made = next(filter(None, inside), None)
    return None if made is None or others else replace(made, nodes=[], inside=made.nodes)


def _is_bcast(node: ast.stmt, name: str) -> bool:
    value = getattr(node, "value", None)
    return (
        isinstance(value, ast.Call)
        and ast.unparse(value).partition("(")[0].endswith(".bcast")
        and [ast.unparse(one) for one in value.args[:1]] == [name]
    )


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
    place = span_of(branch, program.context.lines)
    start = (place.start_line, place.start_column)
    for step_ in visit.block:
        if isinstance(step_, Branch) and (step_.span.start_line, step_.span.start_column) == start:
            arms = None if step.root is None else root_arms(step_, step.communicator, step.root)
            if arms is None or arms[0] != step_.then or step_.then == step_.orelse:
                break
            for other in branch.orelse:
                if isinstance(other, ast.Assign) and _is_none(other.value):
                    none |= {ast.unparse(target) for target in other.targets}
                elif not isinstance(other, ast.Pass):
                    return [], 0, none
            return branch.body, used, none
    return [], 0, none


def _of(
    body: list[ast.stmt], names: list[str], step: Communicate, program: Program
) -> _Made | None:
    """Return what one assignment makes of parts, or a total and the loop that adds to it."""
    numpy = program.context.array_module
    match body:
        case [ast.Assign(targets=[ast.Name(id=name)], value=value)]:
            if step.op is Op.REDUCE:
                own = {*names, "math", numpy or ""}
                plain = loaded_names([value]) <= own and not _has_effects(value, program)
                return _Made(NUMBER, name, value, body, []) if plain else None
            how = _call_of(value, names[0], program)
            return None if how is None else _Made(how, name, None, body, [])
        case [
            ast.Assign(targets=[ast.Name(id=total)], value=start),
            ast.For(
                target=ast.Name(id=part),
                iter=ast.Name(id=parts),
                body=[ast.AugAssign(target=ast.Name(id=sum_), op=ast.Add(), value=ast.Name(id=p))],
                orelse=[],
            ),
        ] if (sum_, p, [parts]) == (total, part, names):
            made = ast.unparse(start)
            if made.startswith((f"{numpy}.zeros(", f"{numpy}.zeros_like(")) or made in ("0", "0.0"):
                return _Made(SUM, total, start, body, [])
    return None


def _has_effects(value: ast.expr, program: Program) -> bool:
    calls = [ast.unparse(c.func) for c in ast.walk(value) if isinstance(c, ast.Call)]
    pure = ("math.", f"{program.context.array_module}.")
    return any(
        ".random" in c or (not c.startswith(pure) and c not in ("abs", "float", "int"))
        for c in calls
    )


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
    given: set[str] = set()
    for one in ast.walk(tree_of(program.context.source)):
        if isinstance(one, ast.Assign):
            for target in one.targets:
                pairs = [(target, one.value)]
                if isinstance(target, ast.Tuple) and isinstance(one.value, ast.Tuple):
                    pairs = list(zip(target.elts, one.value.elts, strict=False))
                given |= {ast.unparse(v) for t, v in pairs if ast.unparse(t) in sides}
        elif isinstance(one, ast.arg | ast.AugAssign | ast.For) and sides & bound_names([one]):
            return False
    return len(sides) == 1 and (sides <= asked or (bool(given) and given <= asked))


# --- what takes their place -----------------------------------------------------------------------

_Found = tuple[tuple[Step, ...], list[str] | None, str, str]
"""Steps, lines, what is proposed, and why results are the same."""


def _instead(program: Program, way: _Way) -> _Found | None:
    step, made = way.brought[0], way.made
    root = way.back is None and step.op is not Op.ALLGATHER
    view = array_payload(step.send)
    if step.op is Op.REDUCE or made.how == SAME:
        return _objects(program, way)
    if view is None or step.send is None:
        # numbers that are added one after another are added in the order of ranks
        return None
    if made.how == SUM:
        op, form = Op.REDUCE if root else Op.ALLREDUCE, "same"
        return _arrays(program, way, view, op, form) if _keeps_type(program, way, view) else None
    # `hstack` puts matrices side by side
    shape, op = view.shape or (), Op.GATHER if root else Op.ALLGATHER
    if not 1 <= len(shape) <= (1 if made.how == "hstack" else len(shape)):
        return None
    # parts that become rows have one shape, or NumPy raises an error
    if made.how in _ROWS or (made.how == "vstack" and len(shape) == 1):
        return _arrays(program, way, view, op, "rows")
    return _arrays(program, way, view, op, "joined" if is_uniform(program, shape) else "told")


def _keeps_type(program: Program, way: _Way, view: View) -> bool:
    """Return whether NumPy's sum has the element type of what is added."""
    if view.dtype not in FLOATS | {"int64", "uint64"}:
        return False
    start = "0" if way.made.value is None else ast.unparse(way.made.value)
    like = f"zeros_like({argument(way.brought[0], 'sendobj', program)})"
    plain = "dtype" not in start and "_like" not in start and view.dtype == "float64"
    return start in ("0", "0.0") or start.endswith(f".{like}") or plain


def _arrays(program: Program, way: _Way, view: View, op: Op, form: str) -> _Found:
    """Return the call that adds or joins arrays on their way."""
    step, target, ended = way.brought[0], way.target, way.ended
    writer = Writer(program, step, op, view.dtype)
    steps = as_buffers(step, view, op, "SUM" if form == "same" else None)
    method, sent = op.value.capitalize(), sent_text(step)
    if form != "told":
        lines = writer.alike(view, target, form, ended)
    else:
        steps, method = told_first(step, op, step.send or payload_of(view, step.span)), f"{method}v"
        lines = _told(writer, view, target, ended)
    if form == "same":
        return (
            steps,
            lines,
            f"let `{method}` add up `{sent}`, do not gather it to add",
            "the same terms are added, in another order: sums of floating-point numbers agree to"
            " rounding; parts of different shapes, which are added with broadcasting, are not",
        )
    return (
        steps,
        lines,
        f"join `{sent}` of all ranks by `{method}`",
        "the same elements come in the order of ranks, as one array, of the element type that the"
        " source shows",
    )


def _told(writer: Writer, view: View, target: str, ended: list[str]) -> list[str] | None:
    text = argument(writer.step, "sendobj", writer.program)
    if text is None or writer.program.context.array_module is None:
        return None
    own = text if text.isidentifier() else writer.name("sent")
    ahead = [] if own == text else [f"{own} = {text}"]
    joined = "{}" if len(view.shape or ()) == 1 else f"{{}}.reshape(-1, *{own}.shape[1:])"
    root, others = writer.told(own, target, joined)
    return [*ahead, *(writer.branch(root, others) if others else root), *ended]


def _objects(program: Program, way: _Way) -> _Found:
    """Return the calls on all ranks for those to a root that sends on what it makes."""
    made, sums = way.made, way.brought[0].op is Op.REDUCE
    op = _ON_ALL[way.brought[0].op]
    lines: list[str] | None = []
    for one in way.brought:
        text = argument(one, "sendobj", program)
        result = way.target if made.how == SAME else one.result
        given = ", ".join([str(text), *keywords(one, ("op",), program)])
        lines = (
            None
            if text is None or lines is None
            else [*lines, f"{result} = {one.receiver}.{op.value}({given})"]
        )
    if lines is not None:
        number = [] if made.value is None else [f"{way.target} = {ast.unparse(made.value)}"]
        lines += [*number, *way.ended]
    sent = sent_text(way.brought[0])
    argued = "every rank gets the list that the root got and sent on"
    if sums:
        argued = (
            "every rank makes of the same results what the root made of them; sums of"
            " floating-point numbers may be collected in another order"
        )
    return (
        tuple(replace(one, op=op, method=op.value, root=None) for one in way.brought),
        lines,
        f"{'reduce' if sums else 'gather'} `{sent}` {'to' if sums else 'on'} all ranks at once,"
        f" by `{op.value}`",
        argued,
    )


def _proposal(
    program: Program,
    function: SpmdFunction,
    visit: Visit,
    way: _Way,
    after: tuple[Step, ...],
    lines: list[str] | None,
    title: str,
    argument_: str,
) -> ProgramProposal:
    context, place = program.context, way.place
    gone = [span_of(one, context.lines) for one in way.made.inside]
    edits: Edits | str = "the statements share their lines, or have no such form"
    if lines is not None and all(
        starts_line(one, context) and stands_alone(context, one) and "#" not in context.text(one)
        for one in (place, *gone)
    ):
        edits = together(
            in_place_of(place, lines, context),
            lambda: tuple(Edit(line_of(one.start_line, one.end_line), "") for one in gone),
        )
    return offer(
        function,
        visit,
        way.brought[0].span,
        title,
        "what is made of the parts goes to where it is used in one call, which has no root that"
        " everybody waits for, and takes arrays as they are in memory",
        tuple(one for one in visit.block[visit.position :] if place.contains(one.span)),
        after,
        f"{argument_}; nothing else uses the parts",
        edits,
    )
