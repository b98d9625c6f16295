"""Arrays that are sent as lists of their elements, and made arrays again where they come."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from advisor.ir.spmd.memory import Payload, PayloadKind
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Communicate, Compute, Op, Visit, walk
from advisor.source import Edit, Span
from costdb.expr.nodes import Num
from costdb.records import replace
from transforms.kit.programs import offer, shortened
from transforms.kit.ranks import on_all_ranks
from transforms.kit.rewrite import Edits, span_of, statement_at, suite_at, tree_of
from transforms.messages.buffers import carried, shapes_of
from transforms.messages.message_loops import meetings

_KEEPS = frozenset({Op.BCAST, Op.GATHER, Op.ALLGATHER, Op.SENDRECV, Op.SEND})
"""Calls that bring what they are given: a reduction joins lists."""
_TYPES = frozenset({"bool", "float64", "complex128"})
"""Element types that NumPy gives an array of Python's numbers."""
_ARRAYS = frozenset({"array", "concatenate", "hstack", "max", "mean", "min", "stack", "sum"})
_ARRAYS |= {"vstack"}
_LISTED = ".tolist()"


def listed_arrays(
    program: Program, function: SpmdFunction, visit: Visit, step: Communicate
) -> Iterator[ProgramProposal]:
    """Yield the array in the place of the list of its elements."""
    sent, made = step.send, _listing(visit, step)
    if sent is None or made is None or step.op not in _KEEPS or sent.kind is not PayloadKind.OBJECT:
        return
    view = made.reads[0]
    if view.dtype not in _TYPES or view.count is None or sent.text.count(_LISTED) != 1:
        return
    if step.op is not Op.SEND and not on_all_ranks(function.visits(), visit):
        return
    ends = _ends(program, function, step)
    arrays = all(_become_arrays(program, one, end) for one, end in ends) and bool(ends)
    array = Payload(PayloadKind.ARRAY, view.text, sent.span, view, view.dtype, view.count)
    filled = all(isinstance(one, Num) and one.value > 0 for one in view.shape or (view.count,))
    array_text = shortened(sent.text.partition(_LISTED)[0])
    words = "the same elements come as an array, of which arrays are made"
    edits: Edits | str = "what comes may be used as a list, which an array is not"
    if arrays:
        edits = _without(program, sent)
    yield offer(
        function,
        visit,
        step.span,
        f"send `{array_text}` as an array, not as a list of its elements",
        "a list is an object for each element, each of which is made, serialised and made again",
        (made, step),
        (replace(step, send=array),),
        words if filled else f"{words}, if it is not empty",
        edits,
        safe=filled,
    )


def listed_numbers(
    function: SpmdFunction, visit: Visit, step: Communicate
) -> Iterator[ProgramProposal]:
    """Yield an exchange of arrays for one of lists with as many numbers as data say."""
    sent = step.send
    if step.op is not Op.ALLTOALL or sent is None or len(sent.parts) != 1:
        return
    (each,) = sent.parts
    if each.kind is not PayloadKind.OBJECT or len(each.parts) != 1 or each.length is None:
        return
    (item,) = each.parts
    numbers = item.parts if item.kind is PayloadKind.OBJECT else (item,)
    known = all(one.kind is PayloadKind.SCALAR for one in numbers) and bool(numbers)
    if isinstance(each.length, Num) or not known or not on_all_ranks(function.visits(), visit):
        return
    call = carried(step, step.op, "float64", (each.length * len(numbers),), varying=True)
    yield offer(
        function,
        visit,
        step.span,
        f"exchange arrays by `Alltoallv`, not `{shortened(sent.text)}` as lists of numbers",
        "a list is an object for each number, each of which is serialised and made again",
        (step,),
        (shapes_of(call), call),
        "the same numbers come to the same ranks, a column for each where items have several",
        "what makes the lists, and what comes of them, has to be arrays as well",
    )


def _listing(visit: Visit, step: Communicate) -> Compute | None:
    """Return the step that makes the list that a call sends."""
    for one in [inner.step for inner in walk(visit.block[: visit.position])][::-1]:
        if isinstance(one, Compute) and one.what == "tolist":
            return one if step.statement.contains(one.span) or one.span == step.statement else None
        if isinstance(one, Communicate):
            return None
    return None


def _without(program: Program, sent: Payload) -> Edits | str:
    """Return what takes ``.tolist()`` from an argument."""
    lines = program.context.lines
    for node in ast.walk(tree_of(program.context.source)):
        if isinstance(node, ast.Call) and sent.span.contains(span_of(node, lines)):
            match node.func:
                case ast.Attribute(value=array, attr="tolist"):
                    place, end = span_of(node, lines), span_of(array, lines)
                    gone = Span(end.end_line, end.end_column, place.end_line, place.end_column)
                    if program.context.text(gone) == _LISTED:
                        return lambda: (Edit(gone, ""),)
    return "the list is made elsewhere"


def _ends(
    program: Program, function: SpmdFunction, step: Communicate
) -> list[tuple[SpmdFunction, Communicate]]:
    """Return the calls whose results are what one sends."""
    if step.op is not Op.SEND:
        return [(function, step)]
    for sends, receives in meetings(program, pickled=True):
        if any(end.step.span == step.span for end in sends):
            if any(end.step.op is Op.SENDRECV for end in receives):
                return []
            return [(end.function, end.step) for end in receives]
    return []


def _become_arrays(program: Program, function: SpmdFunction, step: Communicate) -> bool:
    """Return whether of what a call gives nothing is used but arrays that are made of it."""
    context = program.context
    node = statement_at(step.statement, context)
    if node is None or step.places.keys() & {"recvbuf", "buf", "status"} or not step.blocking:
        return False
    alone = span_of(getattr(node, "value", node), context.lines) == step.span
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) if alone:
            return _is_array_of(program, _while_listed(program, function, node, name), name)
        case ast.Expr() if alone:
            return True
    given = ast.parse(context.text(step.span).strip(), mode="eval").body
    return _is_array_of(program, list(ast.walk(node)), ast.unparse(given))


def _is_array_of(program: Program, nodes: list[ast.AST], text: str) -> bool:
    """Return whether every use of an expression makes an array of it, or of its parts."""
    uses = fine = 0
    for part in nodes:
        if isinstance(part, ast.expr) and not isinstance(getattr(part, "ctx", None), ast.Store):
            uses += ast.unparse(part) == text
        match part:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name), args=[of, *_]):
                made = module == program.context.array_module and name in _ARRAYS
                fine += made and ast.unparse(of) == text
            case ast.ListComp(elt=elt, generators=[ast.comprehension(target=one, iter=over)]):
                if ast.unparse(over) == text and isinstance(one, ast.Name):
                    fine += _is_array_of(program, list(ast.walk(elt)), one.id)
    return uses == fine


def _while_listed(
    program: Program, function: SpmdFunction, node: ast.Assign, name: str
) -> list[ast.AST]:
    """Return what of a function is run while a name means what an assignment gave it.

    That is all of it, unless an array of it gets the name behind the assignment.
    """
    lines, array = program.context.lines, f"{name} = {program.context.array_module}.array({name})"
    nodes = ast.walk(tree_of(program.context.source))
    places = [(n, span_of(n, lines)) for n in nodes if isinstance(n, ast.expr | ast.stmt)]
    suite, at = suite_at(span_of(node, lines), program.context) or ([], 0)
    around = [one for one, place in places if place.contains(span_of(node, lines))]
    behind = suite[at + 1 :]
    for one in around[::-1]:
        if isinstance(one, ast.For | ast.While | ast.FunctionDef):
            break
        if isinstance(one, ast.If):
            outer, number = suite_at(span_of(one, lines), program.context) or ([], 0)
            behind = [*behind, *outer[number + 1 :]]
    again = next((one for one in behind if ast.unparse(one) == array), None)
    inside: list[ast.AST] = [one for one, place in places if function.whole.contains(place)]
    if again is None:
        return inside
    until = range((node.end_lineno or 0) + 1, again.lineno + 1)
    meanwhile: list[ast.AST] = [one for one, place in places if place.start_line in until]
    leaves = any(isinstance(one, ast.Break | ast.Continue) for one in meanwhile)
    return inside if leaves else meanwhile
