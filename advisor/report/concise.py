"""One line for each finding, for those who jump from line to line; the last ones are coverage."""

from __future__ import annotations

from advisor.finding import Finding, Remark
from advisor.report.model import Report
from advisor.report.rows import LOOKS, coverage_lines, fix_mark, headline
from advisor.report.style import Style, one_line


def render(report: Report, style: Style) -> str:
    """Return ``path:line:col: code [*] class speed-up (interval), ...: what to do`` lines."""
    lines = [_finding(finding, style) for finding in report.findings]
    lines += [remark_line(remark, style) for remark in report.remarks]
    return "".join(f"{line}\n" for line in (*lines, *coverage_lines(report)))


def _finding(finding: Finding, style: Style) -> str:
    span = finding.span
    verdict, _, rest = headline(finding).partition(" ")
    parts = [
        f"{one_line(finding.path)}:{span.start_line}:{span.start_column + 1}:",
        style.paint(finding.code, "bold"),
        fix_mark(finding),
        style.paint(verdict, *LOOKS[finding.verdict]),
        rest,
    ]
    return " ".join(filter(None, parts))


def remark_line(remark: Remark, style: Style) -> str:
    """Return a remark as one line, without its end."""
    place = f"{one_line(remark.path)}:{remark.span.start_line}:{remark.span.start_column + 1}:"
    return f"{place} {style.paint('note:', 'dim')} {one_line(remark.message)}"
