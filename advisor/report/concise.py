"""One line for each finding, for those who jump from line to line."""

from __future__ import annotations

import re

from advisor.finding import Finding, Remark
from advisor.report.model import Report, fix_mark
from advisor.report.style import Style, one_line
from advisor.report.units import ratio

# A message starts with the gain, which this format has in its own column already.
_GAIN = re.compile(r"^[0-9.]+x( faster)?( on \S+(?=:))?( \([^)]*\))?[:,]? +")


def render(report: Report, style: Style) -> str:
    """Return ``path:line:col: code [*] speed-up (interval) message`` lines."""
    lines = [_finding(finding, style) for finding in report.findings]
    lines += [remark_line(remark, style) for remark in report.remarks]
    return "".join(f"{line}\n" for line in lines)


def _finding(finding: Finding, style: Style) -> str:
    span = finding.span
    place = f"{one_line(finding.path)}:{span.start_line}:{span.start_column + 1}:"
    parts = [
        place,
        style.paint(finding.code, "bold", "cyan"),
        style.paint(fix_mark(finding), "green"),
        *_gain(finding, style),
        _GAIN.sub("", one_line(finding.message)),
    ]
    return " ".join(part for part in parts if part)


def _gain(finding: Finding, style: Style) -> list[str]:
    prediction = finding.prediction
    if prediction is None:
        return []
    interval = f"({ratio(prediction.low)}..{ratio(prediction.high)})"
    return [style.paint(ratio(prediction.speedup), "bold"), interval]


def remark_line(remark: Remark, style: Style) -> str:
    """Return a remark as one line, without its end."""
    place = f"{one_line(remark.path)}:{remark.span.start_line}:{remark.span.start_column + 1}:"
    return f"{place} {style.paint('note:', 'dim')} {one_line(remark.message)}"
