"""Workflow commands that GitHub Actions shows beside the changed lines."""

from __future__ import annotations

from advisor.finding import Finding
from advisor.project import reported_path
from advisor.report.model import Report
from advisor.report.places import full_message, last_line
from advisor.report.style import Style


def render(report: Report, style: Style) -> str:
    """Return one ``::notice`` line for each finding: advice is no error."""
    return "".join(f"{_command(finding)}\n" for finding in report.findings)


def _command(finding: Finding) -> str:
    span = finding.span
    properties = [
        ("title", f"{finding.code} {finding.name}"),
        ("file", reported_path(finding.path)[1]),
        ("line", str(span.start_line)),
        ("endLine", str(last_line(span))),
    ]
    if span.start_line == span.end_line:  # GitHub drops the lines of an annotation with both
        properties += [("col", str(span.start_column + 1)), ("endColumn", str(span.end_column + 1))]
    shown = ",".join(f"{name}={_escape_property(value)}" for name, value in properties)
    return f"::notice {shown}::{_escape(full_message(finding))}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")
