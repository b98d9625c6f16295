"""What becomes of parts that a collective brings: how they are combined, where that is sent."""

from __future__ import annotations

import ast

from advisor.ir.spmd.program import Program, SpmdFunction
from advisor.ir.spmd.steps import Branch, Communicate, Op, Visit
from advisor.source import Span
from costdb.records import dataclass, replace
from transforms.kit.names import (
    argument,
    bound_names,
    is_binding,
    loaded_names,
    occurrences,
)
from transforms.kit.ranks import root_arms, same_communicator
from transforms.kit.rewrite import (
    span_of,
    stretch,
    suite_at,
    tree_of,
)

ROWS = frozenset({"array", "stack"})
"""Functions that make an array with a row for each part."""
_JOINS = frozenset({"concatenate", "vstack", "hstack"}) | ROWS
SUM, SAME, NUMBER = "sum", "same", "number"
"""How parts are combined, besides by a function that joins: added, not at all, into a number."""


@dataclass(frozen=True, slots=True)
class Made:
    """What is made of parts.

    Attributes
    ----------
    how : str
    name : str
        What it is called.
    nodes : list of ast.stmt
        The statements that make it, on the root alone or on all ranks.
    value : ast.expr or None
        The expression, of a `NUMBER`; of a sum that a loop makes what it begins with.
    inside : tuple of ast.stmt
        The statements that make it, where the root goes on to do more in the same branch.
    """

    how: str
    name: str
    nodes: list[ast.stmt]
    value: ast.expr | None = None
    inside: tuple[ast.stmt, ...] = ()


@dataclass(frozen=True, slots=True)
class Way:
    """Parts on their way: brought by some collectives, combined, and perhaps sent to all."""

    brought: tuple[Communicate, ...]
    made: Made
    back: Communicate | None
    first: Span
    last: Span


def way_of(program: Program, function: SpmdFunction, visit: Visit, step: Communicate) -> Way | None:
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
    return Way(tuple(brought), made, back, step.statement, last)


def _at_once(program: Program, step: Communicate, node: ast.stmt) -> Way | None:
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
                made = Made(how, name, [])
                return Way((step,), made, None, step.statement, step.statement)
    return None


def _call_of(value: ast.expr, parts: str, program: Program) -> str | None:
    """Return what a call makes of parts that go by a name or are an expression."""
    if not isinstance(value, ast.Call) or not value.args or ast.unparse(value.args[0]) != parts:
        return None
    called, more = ast.unparse(value.func), [ast.unparse(one) for one in value.args[1:]]
    more += [ast.unparse(one) for one in value.keywords]
    numpy = program.context.array_module
    if called == "sum" and not more:
        return SUM
    if called == f"{numpy}.sum" and more in (["axis=0"], ["0"]):
        return SUM
    if called in {f"{numpy}.{name}" for name in _JOINS} and more in ([], ["axis=0"]):
        return called.rpartition(".")[2]
    return None


def _made(
    program: Program, visit: Visit, brought: list[Communicate], rest: list[ast.stmt]
) -> Made | None:
    """Return what is made of parts behind the collective that brought them, where they are."""
    step = brought[0]
    names = [str(one.result) for one in brought]
    at_root = step.op is not Op.ALLGATHER
    if at_root and len(brought) == 1 and rest and _is_bcast_of(names[0], rest[0]):
        return Made(SAME, names[0], [])
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
) -> Made | None:
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
                return Made(SUM, total, kept, start)
    return None


def _of_value(
    node: ast.Assign,
    value: ast.expr,
    names: list[str],
    step: Communicate,
    nodes: list[ast.stmt],
    program: Program,
) -> Made | None:
    if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
        return None
    name = node.targets[0].id
    if step.op is Op.REDUCE:
        own = {"math", program.context.array_module or ""}
        plain = loaded_names([value]) <= {*names, *own} and not _has_effects(value, program)
        return Made(NUMBER, name, nodes, value) if plain else None
    how = _call_of(value, names[0], program)
    return None if how is None else Made(how, name, nodes)


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
    made: Made,
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
