"""Findings of lines that have moved, with every line that they name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from advisor.finding import Coverage, Finding, Remark, Untold
from advisor.source import Edit, Span

# How messages name lines: "scan only along axis 1 (line 43)", "N = 1000 (line 19)".
_LINE = re.compile(r"\b(lines? )([0-9]+)((?:(?:, | and | to )[0-9]+)*)")

LineMap = Callable[[int], int]
"""Old line to new line."""


def moved_finding(finding: Finding, now: LineMap) -> Finding:
    """Return a finding where its lines are now."""
    fix = finding.fix
    return replace(
        finding,
        span=moved_span(finding.span, now),
        message=_text(finding.message, now),
        reason=_text(finding.reason, now),
        assumptions=tuple(
            replace(assumption, origin=_text(assumption.origin, now))
            for assumption in finding.assumptions
        ),
        evidence=replace(
            finding.evidence,
            facts=tuple(_text(fact, now) for fact in finding.evidence.facts),
            remarks=tuple(_text(remark, now) for remark in finding.evidence.remarks),
        ),
        alternatives=tuple(
            replace(
                alternative,
                title=_text(alternative.title, now),
                reason=_text(alternative.reason, now),
            )
            for alternative in finding.alternatives
        ),
        fix=None
        if fix is None
        else replace(
            fix,
            legality=_text(fix.legality, now),
            edits=tuple(Edit(moved_span(e.span, now), e.replacement) for e in fix.edits),
        ),
    )


def moved_remark(remark: Remark, now: LineMap) -> Remark:
    """Return a remark where its lines are now."""
    span = moved_span(remark.span, now)
    return replace(remark, span=span, message=_text(remark.message, now))


def moved_coverage(coverage: Coverage, now: LineMap) -> Coverage:
    """Return what was not understood where its lines are now."""
    moved = (replace(one, line=now(one.line)) for one in coverage.not_understood)
    return replace(coverage, not_understood=tuple(moved))


def moved_untold(untold: Untold, now: LineMap) -> Untold:
    """Return a gain that is not told of where its lines are now."""
    return replace(untold, span=moved_span(untold.span, now))


def moved_span(span: Span, now: LineMap) -> Span:
    """Return a span where its lines are now."""
    return Span(now(span.start_line), span.start_column, now(span.end_line), span.end_column)


def _text(text: str, now: LineMap) -> str:
    def renumbered(found: re.Match[str]) -> str:
        more = re.sub(r"[0-9]+", lambda number: str(now(int(number[0]))), found[3])
        return f"{found[1]}{now(int(found[2]))}{more}"

    return _LINE.sub(renumbered, text)
