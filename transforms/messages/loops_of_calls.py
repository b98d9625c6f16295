"""Loops around calls of the same collective: their parts, and whether they may be taken apart.

All that comes before the calls then runs for all iterations first, and all behind them last.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from copy import deepcopy

from advisor.ir.spmd.payloads import Payload, PayloadKind
from advisor.ir.spmd.program import Program
from advisor.ir.spmd.steps import (
    Call,
    Communicate,
    Leave,
    Loop,
    LoopKind,
    Op,
    Step,
    Unknown,
    Wait,
    walk,
)
from advisor.ir.waiting import PURE
from costdb.expr import free_symbols
from costdb.records import dataclass
from transforms.kit.memory import INTEGERS, SENDABLE, may_share, reads_of, written
from transforms.kit.names import argument, bound_names, is_uniform, keywords, loaded_names, words
from transforms.kit.ranks import is_exchange
from transforms.kit.rewrite import fresh_name, span_of, statement_at, tree_of

REDUCTIONS = frozenset({Op.REDUCE, Op.ALLREDUCE})
_OPERATIONS = frozenset({"SUM", "PROD", "MAX", "MIN", "BAND", "BOR", "BXOR"})
_ELEMENT = {"int": "int64", "float": "float64", "complex": "complex128"}
OF_OBJECTS = {"MAX": "maximum", "MIN": "minimum"}
"""NumPy's functions for operations that do not go element by element through arrays of objects."""
_SENT = ("sendobj", "obj", "sendbuf", "buf")
_PARTNERS = ("root", "op", "dest", "sendtag", "source", "recvtag")


@dataclass(frozen=True, slots=True)
class Once:
    """One call of a loop.

    Attributes
    ----------
    step : Communicate
    sent : str
        What an iteration sends.
    into : str or None
        The name of the buffer that it receives into.
    one, all_sent, received : str
        What one result is called, and what all that is sent and received is.
    given : list of str
        Its other arguments.
    """

    step: Communicate
    sent: str
    into: str | None
    one: str
    all_sent: str
    received: str
    given: list[str]


@dataclass(frozen=True, slots=True)
class Parts:
    """A loop in parts.

    Attributes
    ----------
    node : ast.For
    loop : Loop
    calls : list of Once
    before, behind : list of ast.stmt
        What comes before the calls, and can, and all else, barriers left out; `behind` has names
        in the place of calls.
    """

    node: ast.For
    loop: Loop
    calls: list[Once]
    before: list[ast.stmt]
    behind: list[ast.stmt]

    @property
    def targets(self) -> frozenset[str]:
        """What the loop's header binds."""
        return bound_names([self.node.target])

    @property
    def reads(self) -> frozenset[str]:
        """What is used up to the calls."""
        return loaded_names([*self.before, *(ast.parse(one.sent) for one in self.calls)])

    @property
    def header(self) -> str:
        """The header of a loop like this one."""
        return f"for {ast.unparse(self.node.target)} in {ast.unparse(self.node.iter)}"


# --- the parts of a loop --------------------------------------------------------------------------


def calls_in(program: Program, loop: Loop) -> list[Communicate]:
    """Return the calls of a loop, which every iteration makes; none where one cannot be one."""
    inside = [one.step for one in walk(loop.body)]
    every = [s for s in inside if isinstance(s, Communicate)]
    calls = [s for s in every if s.op is not Op.BARRIER]
    if len(calls) < len(every) and len({s.receiver for s in every}) > 1:
        return []  # others may wait at the barrier
    if loop.kind not in (LoopKind.COUNTED, LoopKind.ELEMENTS):
        return []
    if any(isinstance(one, Unknown | Call | Leave | Wait) for one in inside):
        return []
    for step in calls:
        if step not in loop.body or not step.blocking or "status" in step.places:
            return []
        if step.in_place or step.varying:
            return []
        if step.op is Op.SENDRECV:
            alike = loop.trips is not None and is_uniform(program, [loop.trips])
            if not (step.pickled and alike and is_exchange(step) and step.receive is None):
                return []
        elif step.op is not Op.BCAST and (
            step.op not in REDUCTIONS or step.operation not in _OPERATIONS
        ):
            return []
        fixed = [step.send.count if step.send is not None else None, step.root]
        if any(size is not None and loop.variable in free_symbols(size) for size in fixed):
            return []
        if step.send is None or not _is_plain(step.send):
            return []  # nobody knows how to copy other objects, or whether they change
        if step.pickled and step.operation in OF_OBJECTS and sent_dtype(step.send) not in INTEGERS:
            return []  # which of a number and NaN is the larger depends on who compares
    return calls


def _is_plain(payload: Payload) -> bool:
    if payload.kind is PayloadKind.ARRAY:
        known = payload.view is not None and payload.view.shape is not None
        if not known or payload.described or payload.datatype is not None:
            return False
    elif payload.kind is not PayloadKind.SCALAR:
        return False
    return payload.count is not None and sent_dtype(payload) in SENDABLE


def sent_dtype(payload: Payload) -> str:
    """Return the element type of an array of what a call sends."""
    return _ELEMENT.get(payload.dtype or "", payload.dtype or "")


def parts_in(program: Program, loop: Loop, steps: list[Communicate]) -> Parts | None:
    """Return what a loop in the source consists of; None where it is no loop around the calls."""
    context = program.context
    node = statement_at(loop.span, context)
    tries = (one for one in ast.walk(tree_of(context.source)) if isinstance(one, ast.Try))
    if not isinstance(node, ast.For) or node.orelse:
        return None
    if any(span_of(one, context.lines).contains(loop.span) for one in tries):
        return None  # what was done before an exception stays done
    barriers = {s.statement for s in loop.body if isinstance(s, Communicate) and s.op is Op.BARRIER}
    calls: list[Once] = []
    ahead, behind = list[ast.stmt](), list[ast.stmt]()
    for statement in node.body:
        place = span_of(statement, context.lines)
        here = [step for step in steps if place.contains(step.span)]
        if place in barriers:
            continue
        if not here:
            later = bound_names(behind)
            uses = loaded_names([statement]) | bound_names([statement])
            first = len(calls) < len(steps) and not uses & later
            (ahead if first else behind).append(statement)
            continue
        made = _once(program, statement, here[0], ahead, len(calls)) if len(here) == 1 else None
        if made is None or not _are_apart(ast.parse(made[0].sent), behind):
            return None
        calls.append(made[0])
        behind += made[1]
    return Parts(node, loop, calls, ahead, behind) if len(calls) == len(steps) else None


def _once(
    program: Program, call: ast.stmt, step: Communicate, ahead: list[ast.stmt], number: int
) -> tuple[Once, list[ast.stmt]] | None:
    """Return a call, and its statement with a name in the place of its result."""
    context, again = program.context, f"_{number + 1}" * bool(number)
    one, sent, got = (
        fresh_name(f"{n}{again}", context.identifiers) for n in ("one", "sent", "received")
    )
    into = None
    if step.pickled:
        alone = isinstance(call, ast.Expr) and span_of(call.value, context.lines) == step.span
        if alone or not isinstance(call, ast.Assign | ast.AugAssign | ast.Expr):
            return None
        used = _with(call, step, one, context.lines)
    else:
        received = step.send if step.op is Op.BCAST else step.receive
        if not isinstance(call, ast.Expr) or received is None or not received.text.isidentifier():
            return None
        into = received.text
        # memory that the loop makes is another one each time
        made = {ast.unparse(t) for n in ahead if isinstance(n, ast.Assign) for t in n.targets}
        used = f"{into if into in made else f'{into}[...]'} = {one}"
    text = next((t for name in _SENT if (t := argument(step, name, program)) is not None), None)
    if text is None or "#" in context.text(step.statement):
        return None
    given = keywords(step, _PARTNERS, program)
    return Once(step, text, into, one, sent, got, given), ast.parse(used).body


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


def varies(parts: Parts) -> bool:
    """Return whether what is sent follows the loop: a repetition of the same measures it."""
    known = parts.targets
    for node in parts.before:
        if known & loaded_names([node]):
            known |= bound_names([node])
    return all(known & loaded_names([ast.parse(one.sent)]) for one in parts.calls)


def is_another_call(parts: Parts) -> bool:
    """Return whether another root, operation, partner or communicator may be meant each time."""
    bound = bound_names([*parts.before, *parts.behind]) | parts.targets
    given = (f"{one.step.receiver} {' '.join(one.given)}" for one in parts.calls)
    return any(words(text) & bound for text in given)


def is_distributable(parts: Parts, lines: list[str]) -> bool:
    """Return whether all that comes before calls can come before all that is behind them."""
    first, later = bound_names(parts.before), bound_names(parts.behind)
    for one in parts.calls:
        if one.into is not None:
            later -= {one.into} & first
            first -= {one.into}
    used = loaded_names(parts.behind)
    # the header is evaluated again behind what stands before the calls
    if first & (used | loaded_names([parts.node.iter])) or parts.targets & (first | later):
        return False
    shared = parts.reads & later
    if not all(_is_by_index(name, parts) for name in shared):
        return False
    again = isinstance(parts.node.iter, ast.Call) and ast.unparse(parts.node.iter.func) == "range"
    if not (again or not parts.targets & used) or not _calls_nothing(parts.behind):
        return False
    return is_free(parts, shared, lines)


def is_free(parts: Parts, shared: frozenset[str], lines: list[str]) -> bool:
    """Return whether memory, too, is not written on one side of the calls and used on the other.

    What only steps tell is changed through an argument: `np.copyto`, or `out=`.
    """
    body, calls = parts.loop.body, [one.step for one in parts.calls]
    places = [span_of(node, lines) for node in parts.before]
    sides: tuple[list[Step], list[Step]] = ([], [])
    for at, step in enumerate(body):
        sends = [one for one in calls if one.statement.contains(step.span) and one in body[at:]]
        is_behind = not sends and not any(place.contains(step.span) for place in places)
        sides[is_behind].extend(one.step for one in walk((step,)) if one.step not in calls)
    ahead, behind = sides
    taken = [view for step in (*ahead, *calls) for view in reads_of(step)]
    used = [view for step in behind for view in reads_of(step)]
    made, stored = ([view for step in side for view in written(step) or ()] for side in sides)
    # what a call receives is new in every iteration
    own = {one.into for one in parts.calls}
    return not any(
        may_share(one, other)
        for views, others, but in ((taken, stored, shared), (made, used + stored, own))
        for one in views
        for other in others
        if one.buffer.name not in but
    )


def changes_no_other(parts: Parts) -> bool:
    """Return whether nothing that is used up to the calls may be a list that changes behind them.

    Views tell which arrays share memory, and nothing tells it of lists and dictionaries: where one
    changes, all whose parts are used before are arrays.
    """
    arrays = {
        view.buffer.name
        for one in walk(parts.loop.body)
        for view in (*(written(one.step) or ()), *reads_of(one.step))
    }
    arrays |= {one.into for one in parts.calls if one.into is not None}
    sent = (ast.parse(one.sent) for one in parts.calls)
    behind = [part for node in parts.behind for part in ast.walk(node)]
    stored = (p for p in behind if isinstance(p, ast.Subscript) and not isinstance(p.ctx, ast.Load))
    changed = {ast.unparse(one.value) for one in stored}
    for part in behind:
        match part:
            case ast.Attribute(value=value, attr="append"):
                changed.add(ast.unparse(value))
            case ast.AugAssign(target=target, value=ast.List() | ast.ListComp()):
                changed.add(ast.unparse(target))
    used: set[str] = set()
    for part in (p for node in (*parts.before, *sent) for p in ast.walk(node)):
        match part:
            case ast.Subscript(value=value) | ast.comprehension(iter=value):
                used.add(ast.unparse(value))
            case ast.Call(args=given):
                used |= {one.id for one in given if isinstance(one, ast.Name)}
    return changed <= arrays or used <= arrays | parts.targets | bound_names(parts.before)


def _subscripts(name: str, nodes: Iterable[ast.AST]) -> list[list[str]] | None:
    """Return the subscripts of a name; None where it is used as a whole."""
    parts = [part for node in nodes for part in ast.walk(node)]
    found = [
        [ast.unparse(one) for one in getattr(part.slice, "elts", [part.slice])]
        for part in parts
        if isinstance(part, ast.Subscript) and ast.unparse(part.value) == name
    ]
    uses = [part for part in parts if isinstance(part, ast.Name) and part.id == name]
    return found if len(found) == len(uses) else None


def _is_by_index(name: str, parts: Parts) -> bool:
    """Return whether each iteration uses elements of its own of an array or a dictionary.

    The loop's index stands at the same place of each subscript.
    """
    nodes = (*parts.before, *(ast.parse(one.sent) for one in parts.calls), *parts.behind)
    found = _subscripts(name, nodes)
    common = [set(enumerate(one)) for one in found or ()]
    return bool(common) and any(t in parts.targets for _, t in set.intersection(*common))


def _are_apart(sent: ast.AST, behind: list[ast.stmt]) -> bool:
    """Return whether what is sent is surely not what was stored before, in the same iteration."""
    for name in loaded_names([sent]) & bound_names(behind):
        one, other = _subscripts(name, [sent]), _subscripts(name, behind)
        if one is None or other is None:
            return False
        for pair in ((a, b) for a in one for b in other):
            if not any(
                a != b
                and (
                    (a.isdigit() and b.isdigit())
                    or (a[:1] + b[:1] == "--" and a[1:].isdigit() and b[1:].isdigit())
                )
                for a, b in zip(*pair, strict=False)
            ):
                return False
    return True


def _calls_nothing(nodes: list[ast.stmt]) -> bool:
    """Return whether all that is called computes numbers, or adds to a list."""
    for part in (part for node in nodes for part in ast.walk(node)):
        if isinstance(part, ast.Call):
            called = ast.unparse(part.func)
            first, _, rest = called.partition(".")
            plain = first in ("np", "numpy", "math") or rest == "append" or called in PURE
            # what is drawn next depends on what was drawn before
            if not plain or "random" in called:
                return False
    return True
