"""Steps of another file, as they are told in the one that calls it."""

from __future__ import annotations

from dataclasses import replace

from advisor.ir.spmd.steps import Branch, Call, Communicate, Loop, Step
from advisor.source import Span


def moved(step: Step, span: Span, statement: Span) -> Step:
    """Return a step with those within it at another place."""
    match step:
        case Communicate():
            return replace(step, span=span, statement=statement, places={})
        case Loop(body=body):
            return replace(step, span=span, body=_all(body, span, statement))
        case Branch(condition=condition, then=then, orelse=orelse):
            return Branch(
                replace(condition, span=span),
                _all(then, span, statement),
                _all(orelse, span, statement),
                span,
            )
        case Call(body=body):
            return replace(step, span=span, body=_all(body, span, statement))
    return replace(step, span=span)


def _all(steps: tuple[Step, ...], span: Span, statement: Span) -> tuple[Step, ...]:
    return tuple(moved(step, span, statement) for step in steps)
