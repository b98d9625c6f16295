"""Workflow commands that GitHub Actions shows beside the changed lines."""

from __future__ import annotations

from advisor.finding import Finding
from advisor.project import reported_path
from advisor.report.model import Report
from advisor.report.rows import coverage_lines, full_message, is_gain
from advisor.report.style import Style


def render(report: Report, style: Style) -> str:
    """Return one line for each finding, a ``::warning`` where it is a clear gain; then coverage."""
    coverage = _escape("\n".join(coverage_lines(report)))
    commands = [*map(_command, report.findings), f"::notice title=advise coverage::{coverage}"]
    return "".join(f"{command}\n" for command in commands)


def _command(finding: Finding) -> str:
    span = finding.span
    properties = [
        ("title", f"{finding.code} {finding.name}"),
        ("file", reported_path(finding.path)[1]),
        ("line", str(span.start_line)),
        ("endLine", str(span.last_line)),
    ]
    if span.start_line == span.end_line:  # GitHub drops the lines of an annotation with both
        properties += [("col", str(span.start_column + 1)), ("endColumn", str(span.end_column + 1))]
    shown = ",".join(f"{name}={_escape_property(value)}" for name, value in properties)
    level = "warning" if is_gain(finding) else "notice"
    return f"::{level} {shown}::{_escape(full_message(finding))}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")
