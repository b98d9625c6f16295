"""Reviewdog's diagnostic format; its columns count UTF-8 bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from advisor.edits import split_lines
from advisor.finding import Finding, NotUnderstood
from advisor.project import reported_path
from advisor.report.model import Report
from advisor.report.rows import fix_mark, full_message, is_gain, not_analysed
from advisor.report.style import Style
from advisor.source import Span


def render(report: Report, style: Style) -> str:
    """Return one document with all diagnostics, fixes of one edit as suggestions."""
    lines = {path: split_lines(source) for path, source in report.sources.items()}
    document = {
        "source": {"name": "advise"},
        "severity": "INFO",
        "diagnostics": [
            *(_diagnostic(one, lines.get(one.path, ())) for one in report.findings),
            *map(_not_analysed, report.coverage.not_understood),
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def _diagnostic(finding: Finding, lines: Sequence[str]) -> Mapping[str, Any]:
    diagnostic: dict[str, Any] = {
        "message": full_message(finding),
        "severity": "WARNING" if is_gain(finding) else "INFO",
        "code": {"value": finding.code},
        "location": {
            "path": reported_path(finding.path)[1],
            "range": _range(finding.span, lines),
        },
    }
    # Reviewdog offers suggestions one by one; a fix of several edits must not be cut apart.
    if fix_mark(finding) and finding.fix is not None and len(finding.fix.edits) == 1:
        (edit,) = finding.fix.edits
        diagnostic["suggestions"] = [{"range": _range(edit.span, lines), "text": edit.replacement}]
    return diagnostic


def _not_analysed(part: NotUnderstood) -> Mapping[str, Any]:
    place = Span(part.line, 0, part.line, 0)
    path = reported_path(part.path)[1]
    return {
        "message": not_analysed(part),
        "severity": "INFO",
        "location": {"path": path, "range": _range(place, ())},
    }


def _range(span: Span, lines: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
    return {
        "start": _position(span.start_line, span.start_column, lines),
        "end": _position(span.end_line, span.end_column, lines),
    }


def _position(line: int, column: int, lines: Sequence[str]) -> Mapping[str, int]:
    text = lines[line - 1] if line <= len(lines) else ""
    before = text[:column].encode("utf-8", "surrogatepass")
    return {"line": line, "column": len(before) + max(0, column - len(text)) + 1}
