"""Rules about SPMD programs, and what they propose."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from advisor.finding import Applicability
from advisor.ir.kernel import Legality
from advisor.ir.spmd.memory import Payload
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Communicate, Loop, Op, Step, Visit, Wait
from advisor.source import Span
from costdb.records import dataclass, replace
from transforms.kit.kernels import PagedRule
from transforms.kit.names import bound_in_lines, bound_names, used_outside, words
from transforms.kit.rewrite import Edits, in_place_of, span_of, stands_alone, starts_line, suite_at

_TITLE = 40
"""Characters of what is sent that a title shows."""


@dataclass(frozen=True, slots=True)
class ProgramRule(PagedRule):
    """A rule about SPMD programs, as the group ``advise.program_transforms`` names it."""

    propose_program: Callable[[Program], Iterable[ProgramProposal]]


def offer(
    function: SpmdFunction,
    place: Visit | tuple[Loop, ...],
    span: Span,
    title: str,
    reason: str,
    before: tuple[Step, ...],
    after: tuple[Step, ...],
    argument: str,
    edits: Edits | str | None = None,
    *,
    safe: bool = False,
    conditions: tuple[str, ...] = (),
) -> ProgramProposal:
    """Return a proposal, which is only shown where there are no edits.

    Parameters
    ----------
    function : SpmdFunction
    place : Visit or tuple of Loop
        Where the steps stand, or the loops around what changes.
    span : Span
        What a person should look at.
    title, reason : str
    before, after : tuple of Step
    argument : str
        Why results stay what they are, or what else there is to know.
    edits : callable, str or None
        A text says why there are none.
    safe : bool
        The argument holds for every run: all ranks, sizes and data.
    conditions : tuple of str
        What has to be true beyond what the source shows.
    """
    applicability = Applicability.SAFE if safe else Applicability.UNSAFE
    if isinstance(edits, str):
        argument, edits = f"{argument}; no edit is written: {edits}", None
    if edits is None:
        applicability = Applicability.DISPLAY
    return ProgramProposal(
        title,
        "; provided that ".join((reason, *conditions)),
        span,
        function,
        before,
        after,
        Legality(applicability, argument),
        place.loops if isinstance(place, Visit) else place,
        edits or tuple,
    )


def shortened(text: str) -> str:
    """Return a piece of source on one line, for a title."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _TITLE else f"{flat[: _TITLE - 3]}..."


def sent_text(step: Communicate) -> str:
    """Return what a step sends, for a title."""
    return "" if step.send is None else shortened(step.send.text)


def collective(
    step: Communicate, op: Op, send: Payload | None, receive: Payload | None
) -> Communicate:
    """Return the call of a collective on a step's communicator, in place where nothing is sent."""
    return replace(
        step,
        op=op,
        method=op.value.capitalize(),
        send=send,
        receive=receive,
        in_place=send is None,
        dest=None,
        source=None,
        tag=None,
    )


# --- lines in the place of loops ------------------------------------------------------------------


def instead(
    program: Program,
    function: SpmdFunction,
    place: Span,
    lines: list[str],
    steps: Iterable[Step],
) -> Edits | str:
    """Return what puts lines in the place of loops or branches of messages, or why nothing can.

    Nothing else is called there, and what is bound there is used nowhere else.
    """
    context = program.context
    if not starts_line(place, context) or not stands_alone(context, place):
        return "other statements share its lines"
    if context.text(place).startswith("elif"):
        return "the branch is one of several"
    calls = {step.span for step in steps}
    names = set(bound_in_lines(program, place.start_line, place.end_line))
    for step in steps:
        if isinstance(step, Wait):
            names |= words(context.text(step.span)) - {program.mpi_module or ""}
    nodes, at = suite_at(place, context) or ([], 0)
    for node in nodes[at:]:
        for part in ast.walk(node) if place.contains(span_of(node, context.lines)) else ():
            if isinstance(part, ast.For | ast.While) and part.orelse:
                return "the loop has an `else`"
            if isinstance(part, ast.stmt) and not isinstance(
                part, ast.For | ast.If | ast.Assign | ast.Expr | ast.AugAssign
            ):
                return "the loop does more"
            if isinstance(part, ast.Expr) and span_of(part.value, context.lines) not in calls:
                names |= bound_names([part])
            if isinstance(part, ast.Call) and not _is_plain(part, calls, context.lines):
                return f"`{ast.unparse(part.func)}` is called besides"
    kept = used_outside(names, place, function, program)
    return in_place_of(place, lines, context) if kept is None else f"`{kept}` is used elsewhere"


def _is_plain(call: ast.Call, calls: set[Span], lines: list[str]) -> bool:
    named = ast.unparse(call.func)
    return (
        span_of(call, lines) in calls
        or named == "range"
        or named.endswith((".append", ".Get_rank", ".Get_size"))
    )
