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
from advisor.ir.spmd.payloads import Payload, PayloadKind
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Branch, Communicate, Op, Step, Visit
from advisor.source import Edit, Span
from costdb.expr import num
from costdb.records import dataclass, replace
from transforms.kit.memory import (
    FLOATS,
    array_payload,
    may_share,
    new_array,
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
    fresh_name,
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

_ON_ALL = {Op.GATHER: Op.ALLGATHER, Op.REDUCE: Op.ALLREDUCE}
_ROWS = frozenset({"array", "stack"})
_JOINS = frozenset({"concatenate", "vstack", "hstack"}) | _ROWS
_SUM, _SAME, _NUMBER = "sum", "same", "number"


@dataclass(frozen=True, slots=True)
class _Made:
    """What is made of parts.

    Attributes
    ----------
    how : str
    name : str
        What it is called.
    nodes : list of ast.stmt
        The statements that make it, on the root alone or on all ranks.
    value : ast.expr or None
        The expression, of a `_NUMBER`; of a sum that a loop makes what it begins with.
    inside : tuple of ast.stmt
        The statements that make it, where the root goes on to do more in the same branch.
    """

    how: str
    name: str
    nodes: list[ast.stmt]
    value: ast.expr | None = None
    inside: tuple[ast.stmt, ...] = ()


@dataclass(frozen=True, slots=True)
class _Way:
    """Parts on their way: brought by some collectives, combined, and perhaps sent to all."""

    brought: tuple[Communicate, ...]
    made: _Made
    back: Communicate | None
    first: Span
    last: Span


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
            in_place_of(place, [line], program.context) if writable and own and into else None,
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


# --- what becomes of the parts --------------------------------------------------------------------


def _way(program: Program, function: SpmdFunction, visit: Visit, step: Communicate) -> _Way | None:
    """Return what is made of the result of a call, if nothing else is."""
    context = program.context
    suite = suite_at(step.statement, context)
    if suite is None or step.send is None:
        return None
    nodes, at = suite
    if step.result is None:
        return _at_once(program, step, nodes[at])
    brought = [step]
    rest = nodes[at + 1 :]
    steps = {s.statement: s for s in visit.block if isinstance(s, Communicate)}
    while rest and step.op is Op.REDUCE:
        other = steps.get(span_of(rest[0], context.lines))
        if other is None or (other.op, other.root, other.receiver) != (
            step.op,
            step.root,
            step.receiver,
        ):
            break
        if not other.pickled or other.result is None:
            return None
        brought.append(other)
        rest = rest[1:]
    names = [one.result or "" for one in brought]
    if not all(name.isidentifier() for name in names):
        return None
    made = _made(program, visit, brought, rest)
    if made is None:
        return None
    behind = rest[len(made.nodes) :]
    back = (
        _back(program, step, made, behind[0], steps) if behind and step.root is not None else None
    )
    if (step.op is Op.REDUCE and back is None) or (made.inside and back is not None):
        return None
    ended = behind[0] if back is not None else made.nodes[-1] if made.nodes else nodes[at]
    last = span_of(ended, context.lines)
    inside = stretch(step.statement, span_of([ended, *made.inside][-1], context.lines))
    # nothing else may use the parts, or what is made of them in between
    gone = {*names, *bound_names([*made.nodes, *made.inside])} - {made.name}
    gone -= set(names if step.op is Op.REDUCE else ())
    if back is not None and back.result not in (None, made.name):
        gone.add(made.name)
    for name in gone:
        places = occurrences(name, function, program)
        if any(not inside.contains(one) and not is_binding(one, program) for one in places):
            return None
    return _Way(tuple(brought), made, back, step.statement, last)


def _at_once(program: Program, step: Communicate, node: ast.stmt) -> _Way | None:
    """Return what is made of the parts in the statement of the call itself."""
    if step.op is not Op.ALLGATHER or not isinstance(node, ast.Assign | ast.Return):
        return None
    value, lines = node.value, program.context.lines
    match value:
        case ast.Call(args=[ast.Call() as inner, *_]) if span_of(inner, lines) == step.span:
            how = _call_of(value, ast.unparse(inner), program)
            name = "" if isinstance(node, ast.Return) else ast.unparse(node.targets[0])
            single = isinstance(node, ast.Return) or len(node.targets) == 1
            if how is not None and single and (not name or name.isidentifier()):
                made = _Made(how, name, [])
                return _Way((step,), made, None, step.statement, step.statement)
    return None


def _call_of(value: ast.expr, parts: str, program: Program) -> str | None:
    """Return what a call makes of parts that go by a name or are an expression."""
    if not isinstance(value, ast.Call) or not value.args or ast.unparse(value.args[0]) != parts:
        return None
    called, more = ast.unparse(value.func), [ast.unparse(one) for one in value.args[1:]]
    more += [ast.unparse(one) for one in value.keywords]
    numpy = program.context.array_module
    if called == "sum" and not more:
        return _SUM
    if called == f"{numpy}.sum" and more in (["axis=0"], ["0"]):
        return _SUM
    if called in {f"{numpy}.{name}" for name in _JOINS} and more in ([], ["axis=0"]):
        return called.rpartition(".")[2]
    return None


def _made(
    program: Program, visit: Visit, brought: list[Communicate], rest: list[ast.stmt]
) -> _Made | None:
    """Return what is made of parts behind the collective that brought them, where they are."""
    step = brought[0]
    names = [str(one.result) for one in brought]
    at_root = step.op is not Op.ALLGATHER
    if at_root and len(brought) == 1 and rest and _is_bcast_of(names[0], rest[0]):
        return _Made(_SAME, names[0], [])
    if not rest:
        return None
    node, nodes = rest[0], [rest[0]]
    if at_root and isinstance(node, ast.Assign) and isinstance(node.value, ast.IfExp):
        value = node.value
        if not _is_none(value.orelse) or not _asks_for_root(value.test, step, program):
            return None
        return _of_value(node, value.body, names, step, nodes, program)
    if at_root and isinstance(node, ast.Assign) and _is_none(node.value) and len(rest) > 1:
        # `total = None` before the branch that makes it
        if not isinstance(rest[1], ast.If) or rest[1].orelse:
            return None
        node, nodes = rest[1], rest[:2]
    if at_root and isinstance(node, ast.If):
        branch = next(
            (
                one
                for one in visit.block
                if isinstance(one, Branch)
                and one.span.start_line == node.lineno
                and one.span.start_column == node.col_offset
            ),
            None,
        )
        root = step.root
        if branch is None or root is None:
            return None
        arms = root_arms(branch, step.communicator, root)
        if arms is None or arms[0] != branch.then or branch.then == branch.orelse:
            return None
        body = node.body
        others = [one for one in node.orelse if not isinstance(one, ast.Pass)]
        if any(not isinstance(o, ast.Assign) or not _is_none(o.value) for o in others):
            return None
        set_to_none = {
            ast.unparse(t) for o in others if isinstance(o, ast.Assign) for t in o.targets
        }
        found = _of_statements(body, names, step, nodes, program)
        for some in (1, 2):
            if found is None and some < len(body) and nodes == [node] and not node.orelse:
                found = _of_statements(body[:some], names, step, [], program)
                found = found and replace(found, inside=tuple(body[:some]))
        if found is None or not set_to_none <= {found.name}:
            return None
        return found
    if at_root:
        return None
    return _of_statements(
        rest[: 2 if _is_loop_over(rest, names[0]) else 1], names, step, None, program
    )


def _is_loop_over(rest: list[ast.stmt], name: str) -> bool:
    return len(rest) > 1 and isinstance(rest[1], ast.For) and ast.unparse(rest[1].iter) == name


def _of_statements(
    body: list[ast.stmt],
    names: list[str],
    step: Communicate,
    nodes: list[ast.stmt] | None,
    program: Program,
) -> _Made | None:
    """Return what one assignment makes of parts, or a total and the loop that adds to it."""
    numpy, kept = program.context.array_module, body if nodes is None else nodes
    match body:
        case [ast.Assign(targets=[ast.Name()]) as one]:
            return _of_value(one, one.value, names, step, kept, program)
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
                return _Made(_SUM, total, kept, start)
    return None


def _of_value(
    node: ast.Assign,
    value: ast.expr,
    names: list[str],
    step: Communicate,
    nodes: list[ast.stmt],
    program: Program,
) -> _Made | None:
    if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
        return None
    name = node.targets[0].id
    if step.op is Op.REDUCE:
        own = {"math", program.context.array_module or ""}
        plain = loaded_names([value]) <= {*names, *own} and not _has_effects(value, program)
        return _Made(_NUMBER, name, nodes, value) if plain else None
    how = _call_of(value, names[0], program)
    return None if how is None else _Made(how, name, nodes)


def _has_effects(value: ast.expr, program: Program) -> bool:
    calls = [ast.unparse(c.func) for c in ast.walk(value) if isinstance(c, ast.Call)]
    pure = ("math.", f"{program.context.array_module}.")
    return any(not c.startswith(pure) and c not in ("abs", "float", "int") for c in calls) or any(
        ".random" in c for c in calls
    )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_bcast_of(name: str, node: ast.stmt) -> bool:
    value = getattr(node, "value", None)
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr == "bcast"
        and bool(value.args)
        and ast.unparse(value.args[0]) == name
    )


def _asks_for_root(test: ast.expr, step: Communicate, program: Program) -> bool:
    """Return whether a condition is that the own rank is the root of a call."""
    root = argument(step, "root", program) or "0"
    match test:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            sides = [left, right]
            texts = [ast.unparse(side) for side in sides]
            if root not in texts:
                return False
            return _is_rank(sides[1 - texts.index(root)], step, program)
    return False


def _is_rank(node: ast.expr, step: Communicate, program: Program) -> bool:
    asked = (f"{step.receiver}.rank", f"{step.receiver}.Get_rank()")
    if not isinstance(node, ast.Name):
        return ast.unparse(node) in asked
    given: list[str] = []
    for one in ast.walk(tree_of(program.context.source)):
        if isinstance(one, ast.Assign):
            for target in one.targets:
                pairs = [(target, one.value)]
                if isinstance(target, ast.Tuple) and isinstance(one.value, ast.Tuple):
                    pairs = list(zip(target.elts, one.value.elts, strict=False))
                given += [ast.unparse(v) for t, v in pairs if ast.unparse(t) == node.id]
        elif node.id in bound_names([one]) and isinstance(one, ast.arg | ast.AugAssign | ast.For):
            return False
    return bool(given) and all(text in asked for text in given)


def _back(
    program: Program,
    step: Communicate,
    made: _Made,
    node: ast.stmt,
    steps: dict[Span, Communicate],
) -> Communicate | None:
    """Return the broadcast that brings what was made to all ranks."""
    back = steps.get(span_of(node, program.context.lines))
    if back is None or back.op is not Op.BCAST or not back.pickled or back.root != step.root:
        return None
    if not same_communicator(back.communicator, step.communicator):
        return None
    if not isinstance(node, ast.Assign | ast.Return) or not _is_bcast_of(made.name, node):
        return None
    return back


# --- what takes its place -------------------------------------------------------------------------

_Found = tuple[tuple[Step, ...], list[str] | None, str, str]
"""Steps, lines, what is proposed, and why results are the same."""


def _instead(program: Program, way: _Way) -> _Found | None:
    step, made = way.brought[0], way.made
    root = way.back is None and step.op is not Op.ALLGATHER
    view = array_payload(step.send)
    if step.op is Op.REDUCE:
        return _reduced_to_all(program, way)
    if made.how == _SAME:
        return _gathered_to_all(program, way)
    if view is None or step.send is None:
        # numbers that are added one after another are added in the order of ranks
        return None
    if made.how == _SUM:
        return _added(program, way, view, root=root) if _keeps_type(program, way, view) else None
    # `hstack` puts matrices side by side
    least, most = (1, 1) if made.how == "hstack" else (1, 99)
    if not least <= len(view.shape or ()) <= most:
        return None
    return _joined(program, way, view, root=root)


def _keeps_type(program: Program, way: _Way, view: View) -> bool:
    """Return whether NumPy's sum has the element type of what is added."""
    if view.dtype not in FLOATS | {"int64", "uint64"}:
        return False
    start = "0" if way.made.value is None else ast.unparse(way.made.value)
    like = f"zeros_like({argument(way.brought[0], 'sendobj', program)})"
    plain = "dtype" not in start and "_like" not in start and view.dtype == "float64"
    return start in ("0", "0.0") or start.endswith(f".{like}") or plain


def _target(way: _Way) -> tuple[str, list[str]]:
    """Return the name of what all ranks get, and what is done with it in the end."""
    back, made = way.back, way.made
    if back is None:
        return (made.name or "made"), [] if made.name else ["return made"]
    if back.result is not None:
        return back.result, []
    return made.name, [f"return {made.name}"]


def _sent(step: Communicate, program: Program) -> tuple[list[str], str] | None:
    text, numpy = argument(step, "sendobj", program), program.context.array_module
    if text is None or numpy is None:
        return None
    if text.isidentifier():
        return [], text
    name = fresh_name("sent", program.context.identifiers)
    return [f"{name} = {text}"], name


def _added(program: Program, way: _Way, view: View, *, root: bool) -> _Found:
    step, op = way.brought[0], Op.REDUCE if root else Op.ALLREDUCE
    target, ended = _target(way)
    memory = payload_of(new_array("total", view.dtype, view.shape or (), step.span), step.span)
    call = replace(collective(step, op, memory, memory), pickled=False, operation="SUM")
    given, lines = _sent(step, program), None
    numpy, mpi = program.context.array_module, program.mpi_module
    if given is not None and mpi is not None:
        ahead, text = given
        made = f"{numpy}.empty_like({text})"
        where = argument(step, "root", program) or "0"
        if root:
            made += f" if {step.receiver}.Get_rank() == {where} else None"
        own = f"{numpy}.ascontiguousarray({text})"
        more = f", root={where}" if root else ""
        name = target if target != text else fresh_name("total", program.context.identifiers)
        lines = [
            *ahead,
            f"{name} = {made}",
            f"{step.receiver}.{op.value.capitalize()}({own}, {name}, op={mpi}.SUM{more})",
            *([f"{target} = {name}"] if name != target else []),
            *ended,
        ]
    return (
        (call,),
        lines,
        f"let `{op.value.capitalize()}` add up `{sent_text(step)}`, do not gather it to add",
        "the same terms are added, in another order: sums of floating-point numbers agree to"
        " rounding; parts of different shapes, which are added with broadcasting, are not",
    )


def _joined(program: Program, way: _Way, view: View, *, root: bool) -> _Found:
    step, op, shape = way.brought[0], Op.GATHER if root else Op.ALLGATHER, view.shape or ()
    rows = way.made.how in _ROWS or (way.made.how == "vstack" and len(shape) == 1)
    # parts that become rows have one shape, or NumPy raises an error
    alike = rows or is_uniform(program, shape)
    size = step.communicator.size
    extents = (size, *shape) if rows else (shape[0] * size, *shape[1:])
    whole = payload_of(new_array("joined", view.dtype, extents, step.span), step.span)
    part = payload_of(new_array("part", view.dtype, shape, step.span), step.span)
    call = replace(collective(step, op, part, whole), pickled=False, varying=not alike)
    number = Payload(PayloadKind.SCALAR, "len", step.span, dtype="int", count=num(1))
    counts = replace(step, op=op, send=number, method=op.value)
    lines = _joining(program, way, view, op, rows=rows, alike=alike)
    return (
        (call,) if alike else (counts, call),
        lines,
        f"join `{sent_text(step)}` of all ranks by `{call.method}{'' if alike else 'v'}`",
        "the same elements come in the order of ranks, as one array, of the element type that the"
        " source shows",
    )


def _joining(
    program: Program, way: _Way, view: View, op: Op, *, rows: bool, alike: bool
) -> list[str] | None:
    step, numpy = way.brought[0], program.context.array_module
    given = _sent(step, program)
    if given is None:
        return None
    (ahead, text), (target, ended) = given, _target(way)
    used = program.context.identifiers
    counts, whole = fresh_name("counts", used), target
    if target == text:
        whole = fresh_name("joined", used)
    size = f"{step.receiver}.Get_size()"
    tail = f"*{text}.shape[1:]" if len(view.shape or ()) > 1 else ""
    extent = f"({size}, *{text}.shape)" if rows else f"({size} * len({text}), {tail})"
    into, lines = whole, [*ahead]
    where = argument(step, "root", program) or "0"
    more = f", root={where}" if op is Op.GATHER else ""
    at_root = f" if {step.receiver}.Get_rank() == {where} else None" if op is Op.GATHER else ""
    if not alike:
        lines.append(f"{counts} = {step.receiver}.{op.value}(len({text}){more})")
        extent = f"(sum({counts}), {tail})" if tail else f"sum({counts})"
        each = f"[one * {numpy}.prod({text}.shape[1:]) for one in {counts}]" if tail else counts
        into = f"({whole}, {each}){at_root}"
    made = f"{numpy}.empty({extent.replace(', )', ',)')}, dtype={text}.dtype)"
    lines.append(f"{whole} = {made}{at_root}")
    method = f"{op.value.capitalize()}{'' if alike else 'v'}"
    lines.append(f"{step.receiver}.{method}({numpy}.ascontiguousarray({text}), {into}{more})")
    return [*lines, *([f"{target} = {whole}"] if whole != target else []), *ended]


def _gathered_to_all(program: Program, way: _Way) -> _Found:
    step = way.brought[0]
    target, ended = _target(way)
    call = replace(step, op=Op.ALLGATHER, method="allgather", root=None, result=target)
    text = argument(step, "sendobj", program)
    lines = None if text is None else [f"{target} = {step.receiver}.allgather({text})", *ended]
    return (
        (call,),
        lines,
        f"gather `{sent_text(step)}` on all ranks at once, by `allgather`",
        "every rank gets the list that the root got and sent on",
    )


def _reduced_to_all(program: Program, way: _Way) -> _Found:
    made, target = way.made, _target(way)
    calls = tuple(
        replace(one, op=Op.ALLREDUCE, method="allreduce", root=None) for one in way.brought
    )
    lines: list[str] | None = []
    for one in way.brought:
        text, op = (argument(one, name, program) for name in ("sendobj", "op"))
        given = f"{text}" if op is None else f"{text}, op={op}"
        result = target[0] if made.how == _SAME else one.result
        if text is None or lines is None:
            lines = None
        else:
            lines.append(f"{result} = {one.receiver}.allreduce({given})")
    if lines is not None:
        if made.value is not None:
            lines.append(f"{target[0]} = {ast.unparse(made.value)}")
        lines += target[1]
    return (
        calls,
        lines,
        f"reduce `{sent_text(way.brought[0])}` to all ranks at once, by `allreduce`",
        "every rank makes of the same results what the root made of them; sums of floating-point"
        " numbers may be collected in another order",
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
    place, context = stretch(way.first, way.last), program.context
    before = [
        one
        for one in visit.block[visit.position :]
        if stretch(way.first, way.last).contains(one.span)
    ]
    gone = [span_of(one, context.lines) for one in way.made.inside]
    if not all(starts_line(one, context) for one in (place, *gone)) or any(
        "#" in context.text(one) or not stands_alone(context, one) for one in (place, *gone)
    ):
        lines = None
    return offer(
        function,
        visit,
        way.brought[0].span,
        title,
        "what is made of the parts goes to where it is used in one call, which has no root that"
        " everybody waits for, and takes arrays as they are in memory",
        tuple(before),
        after,
        f"{argument_}; nothing else uses the parts",
        None
        if lines is None
        else together(
            in_place_of(place, lines, context),
            lambda: tuple(Edit(line_of(one.start_line, one.end_line), "") for one in gone),
        ),
    )
