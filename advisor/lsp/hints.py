"""Inlay hints: what a line costs, behind its end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from advisor.finding import Finding
from advisor.report.rows import headline
from advisor.report.units import duration


@dataclass(frozen=True, slots=True)
class Hint:
    """Text behind the end of a line, counted from 1."""

    line: int
    label: str
    tooltip: str


def hints(findings: Iterable[Finding], first_line: int, last_line: int) -> tuple[Hint, ...]:
    """Return one hint for each line that a finding starts on, within the lines asked for.

    Of several findings on a line the one that saves most speaks.
    """
    best: dict[int, Finding] = {}
    for finding in findings:
        line = finding.span.start_line
        known = best.get(line)
        if first_line <= line <= last_line and (known is None or finding.order < known.order):
            best[line] = finding
    return tuple(Hint(line, _label(best[line]), headline(best[line])) for line in sorted(best))


def _label(finding: Finding) -> str:
    """Return the predicted time of the kernel and its largest part: ``~ 3.1 ms, 78 % start-up``."""
    if finding.condition is not None:
        return f"~ faster for {finding.condition.text}"
    assert finding.prediction is not None
    time = finding.prediction.before_s
    parts = [(term.before_s, term.label) for term in finding.evidence.terms if term.before_s]
    label = f"~ {duration(time)}"
    if time > 0 and parts:
        part, name = max(parts)
        label += f", {min(100.0, 100 * part / time):.0f} % {name}"
    return label
