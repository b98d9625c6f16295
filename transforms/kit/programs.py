"""Rules about SPMD programs, and what they propose."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from advisor.finding import Applicability
from advisor.ir.kernel import Legality
from advisor.ir.spmd.memory import Payload
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Communicate, Loop, Op, Step, Visit
from advisor.source import Span
from costdb.records import dataclass, replace
from transforms.kit.kernels import PagedRule
from transforms.kit.names import bound_names, used_outside
from transforms.kit.rewrite import Edits, in_place_of, span_of, stands_alone, statement_at

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
    ranks_from: int = 0,
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
    ranks_from : int
        From how many ranks on it is told without a price.
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
        ranks_from,
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
    program: Program, function: SpmdFunction, loop: Loop, lines: list[str], step: Communicate
) -> Edits | str:
    """Return what puts lines in the place of a loop around one message, or why nothing can.

    The loop does nothing else, and what it binds is used nowhere else.
    """
    context, node = program.context, statement_at(loop.span, program.context)
    if not isinstance(node, ast.For) or node.orelse:
        return "the loop does not stand alone"
    place, parts = span_of(node, context.lines), list(ast.walk(node))
    held = (one for one in parts[1:] if isinstance(one, ast.stmt) and not isinstance(one, ast.If))
    if any(span_of(one, context.lines) != step.statement for one in held):
        return "the loop does more"
    calls = (one for one in parts if isinstance(one, ast.Call))
    for named in (ast.unparse(c.func) for c in calls if span_of(c, context.lines) != step.span):
        if named != "range" and not named.endswith((".Get_rank", ".Get_size")):
            return f"`{named}` is called besides"
    if not stands_alone(context, place):
        return "other statements share its lines"
    kept = used_outside(bound_names([node.target]), place, function, program)
    return in_place_of(place, lines, context) if kept is None else f"`{kept}` is used elsewhere"
