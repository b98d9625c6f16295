"""Fields that are gathered in every step, though only the last one is used, behind the loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from advisor.finding import Applicability
from advisor.ir.proposal import Legality
from advisor.ir.spmd.memory import Origin
from advisor.ir.spmd.program import Program, SpmdFunction
from advisor.ir.spmd.proposal import ProgramProposal
from advisor.ir.spmd.steps import (
    Branch,
    Communicate,
    Leave,
    Loop,
    LoopKind,
    Op,
    Unknown,
    Visit,
    walk,
)
from advisor.source import Edit, Span
from transforms.programs.bound_names import bound_in_lines, words
from transforms.programs.spmd_calls import is_name, is_simple
from transforms.programs.uses import is_binding, occurrences, suite_of
from transforms.programs.views import may_share, written

_GATHERS = frozenset({Op.GATHER, Op.ALLGATHER})
_KINDS = frozenset({LoopKind.COUNTED, LoopKind.ELEMENTS, LoopKind.WHILE})


def gathered_too_often(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield gathers that could stand behind the loop that they stand in."""
    for visit, step in function.operations():
        if step.op not in _GATHERS or not step.blocking or not visit.loops:
            continue
        loop = visit.loops[-1]
        # a gather that only some iterations do is not that of the last one
        if loop.kind not in _KINDS or loop.timing or visit.block is not loop.body:
            continue
        name = _result(function, step)
        if name is None or not _is_last_word(program, visit, loop, step):
            continue
        suite = suite_of(loop.span, program)
        if not _is_used_behind(program, function, step, name, suite):
            continue
        writable = is_simple(step, program) and _is_free(program, loop, suite)
        yield ProgramProposal(
            title=f"gather `{name}` once, behind the loop",
            reason="every iteration gathers the whole field, and nothing looks at it before the"
            " loop has ended",
            span=step.span,
            function=function,
            before=(replace(loop, body=(step,)),),
            after=(step,),
            legality=Legality(
                Applicability.UNSAFE if writable else Applicability.DISPLAY,
                "what is gathered last is the same; a loop without any iteration gathered nothing",
            ),
            loops=visit.loops[:-1],
            edits=partial(_behind, program, step, suite) if writable else tuple,
        )


def _result(function: SpmdFunction, step: Communicate) -> str | None:
    """Return the name of what is gathered, if the function alone has it."""
    if step.pickled:
        name = step.result
        return name if name is not None and is_name(name) else None
    got = step.receive
    if got is None or got.view is None or got.described or not is_name(got.text):
        return None
    made = got.view.buffer.allocation
    own = made.origin is Origin.NEW and function.whole.contains(made.span)
    return got.text if own and step.result is None else None


def _is_last_word(program: Program, visit: Visit, loop: Loop, step: Communicate) -> bool:
    """Return whether what an iteration sends is as it was sent when the loop has ended."""
    sent = step.send
    if sent is None or sent.view is None or sent.described or sent.parts:
        return False
    if any(isinstance(one.step, Leave) and one.step.how != "break" for one in walk(loop.body)):
        return False
    before = walk(visit.block[: visit.position])
    if any(isinstance(one.step, Leave) for one in before):
        return False
    for one in walk(visit.block[visit.position + 1 :], into_calls=True):
        if isinstance(one.step, Unknown):
            return False
        if isinstance(one.step, Loop | Branch):
            continue
        if any(may_share(view, sent.view) for view in written(one.step) or ()):
            return False
    suite = suite_of(loop.span, program)
    names = words(program.context.text(step.span))
    header = program.context.lines[loop.span.start_line - 1]
    # what goes on to the next iteration is looked at once more, and may be changed by that
    if words(sent.text) & words(header) or (loop.kind is LoopKind.WHILE and "(" in header):
        return False
    return not names & bound_in_lines(program, step.statement.end_line + 1, suite.end_line)


def _is_used_behind(
    program: Program, function: SpmdFunction, step: Communicate, name: str, suite: Span
) -> bool:
    """Return whether a name is used behind a loop, and neither in it nor before."""
    used = False
    for place in occurrences(name, function, program):
        if step.statement.contains(place):
            continue
        if place.start_line > suite.end_line:
            used = True
        elif place.start_line >= suite.start_line or not is_binding(place, program):
            return False
    return used


def _is_free(program: Program, loop: Loop, suite: Span) -> bool:
    """Return whether a statement can be put behind a loop: it stands alone and has no ``else``."""
    lines = program.context.lines
    header = lines[loop.span.start_line - 1]
    if not header.lstrip().startswith(("for ", "while ")) or len(loop.body) < 2:
        return False
    if suite.start_line == suite.end_line or not program.context.source.endswith("\n"):
        return False
    behind = next((line for line in lines[suite.end_line :] if line.strip()), "")
    return not behind.lstrip().startswith(("else", "#"))


def _behind(program: Program, step: Communicate, suite: Span) -> tuple[Edit, ...]:
    lines = program.context.lines
    header = lines[suite.start_line - 1]
    indent = header[: len(header) - len(header.lstrip())]
    place = step.statement
    text = program.context.text(place)
    gone = Edit(Span(place.start_line, 0, place.end_line + 1, 0), "")
    if place.end_line == suite.end_line:
        return (Edit(gone.span, f"{indent}{text}\n"),)
    last = Span(suite.end_line + 1, 0, suite.end_line + 1, 0)
    return gone, Edit(last, f"{indent}{text}\n")
