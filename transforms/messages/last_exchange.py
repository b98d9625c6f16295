"""Loops that pass something on at the end of each iteration, also of the last one.

What comes then is used by nobody: round a ring it is what a rank began with.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Communicate, Leave, Loop, LoopKind, Op, Visit, walk
from costdb.records import replace
from transforms.kit.names import (
    bound_in,
    is_name,
    is_simple,
    occurrences,
    suite_of,
    within,
    words,
)
from transforms.kit.programs import offer
from transforms.kit.ranks import is_exchange, on_all_ranks
from transforms.kit.rewrite import Edits, in_place_of, span_of, statement_at, tree_of


def last_exchange(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield a loop without the exchange of its last iteration."""
    for visit in function.visits():
        loop = visit.step
        if not isinstance(loop, Loop) or loop.kind is not LoopKind.COUNTED or loop.by_rank:
            continue
        step = _ends_with(loop)
        if step is None or loop.trips is None or not on_all_ranks(function.visits(), visit):
            continue
        if not _is_for_the_next(program, function, visit, loop, step):
            continue
        once = replace(loop, high=loop.high - 1, trips=loop.trips - 1)
        yield offer(
            function,
            visit,
            loop.span,
            f"leave out the last `{step.method}`: nobody uses what it brings",
            "the last iteration, too, passes on what only a next one would use",
            (replace(loop, body=(step,)),),
            (replace(once, body=(step,)),),
            f"`{step.result}` is not used behind the loop, and every rank leaves the same one out",
            _edits(program, loop, step),
        )


def _ends_with(loop: Loop) -> Communicate | None:
    """Return the exchange that a loop ends with, if that is all that communicates in it."""
    last = loop.body[-1] if loop.body else None
    if not isinstance(last, Communicate) or last.op is not Op.SENDRECV or not is_exchange(last):
        return None
    steps = [one.step for one in walk(loop.body, into_calls=True) if one.step is not last]
    others = any(isinstance(one, Communicate) for one in steps)
    leaves = any(isinstance(one.step, Leave) for one in walk(loop.body))
    return None if others or leaves or not last.blocking else last


def _is_for_the_next(
    program: Program, function: SpmdFunction, visit: Visit, loop: Loop, step: Communicate
) -> bool:
    """Return whether what comes is used in the loop, and nowhere behind it."""
    name, suite = step.result or "", suite_of(loop.span, program)
    if not step.pickled or not is_name(name) or visit.loops or name in function.returned:
        return False
    places, lines = occurrences(name, function, program), program.context.lines
    if any(place.start_line > suite.end_line for place in places) or not places:
        return False
    nodes = ast.walk(tree_of(program.context.source))
    inner = [span_of(one, lines) for one in nodes if isinstance(one, ast.FunctionDef)]
    inner = [one for one in inner if not one.contains(loop.span)]
    node = statement_at(loop.span, program.context)
    last = node.body[-1] if isinstance(node, ast.For) and not node.orelse else None
    ends = last is not None and span_of(last, lines).contains(step.span)
    return ends and not any(within(place, inner) for place in places)


def _edits(program: Program, loop: Loop, step: Communicate) -> Edits | str:
    """Return the exchange with a test for the last iteration around it."""
    context = program.context
    match statement_at(loop.span, context):
        case ast.For(
            target=ast.Name(id=index), iter=ast.Call(func=ast.Name(id="range"), args=[end])
        ):
            text = ast.unparse(end)
            calls = any(isinstance(one, ast.Call) for one in ast.walk(end))
            changes = words(text) & (bound_in(program, loop) - {index})
            if is_simple(step, program) and not calls and not changes:
                inner = f"{context.indent}{context.text(step.statement)}"
                lines = [f"if {index} < {text} - 1:", inner]
                return in_place_of(step.statement, lines, context)
    return "the loop's end has no text that means it there"
