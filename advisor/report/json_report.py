"""The whole report as one JSON document; ``findings.schema.json`` describes it.

Lines and columns count from 1, ends are exclusive, columns count code points.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from advisor.finding import Coverage, Finding, Prediction, Remark
from advisor.notebook import file_and_cell
from advisor.report.model import Report
from advisor.report.style import Style
from advisor.source import Span

SCHEMA_VERSION = 2

_NAMES = {"span": "location", "crossovers": "crossover", "omitted": "missing"}
"""What a field is called in the document, where it is not its own name."""


def render(report: Report, style: Style) -> str:
    """Return the document, indented, with a line end; `style` has no say."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "machine": report.machine,
        "findings": [finding_document(finding) for finding in report.findings],
        "remarks": [remark_document(remark) for remark in report.remarks],
        "coverage": coverage_document(report.coverage),
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def finding_document(finding: Finding) -> Mapping[str, Any]:
    """Return a finding as JSON values."""
    document = dict(values(finding))
    document["crossover"] = document["crossover"] or None
    return document


def remark_document(remark: Remark) -> Mapping[str, Any]:
    """Return a remark as JSON values."""
    return dict(values(remark))


def coverage_document(coverage: Coverage) -> Mapping[str, Any]:
    """Return as JSON values what was analysed and what was not, and whether that is all."""
    return {"complete": coverage.complete, **values(coverage)}


def values(value: Any) -> Any:
    """Return data as JSON values: null where JSON has no such number (an unbounded end)."""
    match value:
        case Span():  # columns count from 1, as in the other linters' JSON
            return {
                "row": value.start_line,
                "column": value.start_column + 1,
                "end_row": value.end_line,
                "end_column": value.end_column + 1,
            }
        case float():
            return value if math.isfinite(value) else None
        case tuple():
            return list(map(values, value))
        case Prediction():
            return {"complete": value.complete, **_of_fields(value)}
    return _of_fields(value) if is_dataclass(value) else value


def _of_fields(data: Any) -> dict[str, Any]:
    found = {
        _NAMES.get(one.name, one.name): values(getattr(data, one.name)) for one in fields(data)
    }
    path, cell = file_and_cell(found.get("path", ""))
    return found if cell is None else {**found, "path": path, "cell": cell}


# JSON, an object a line: findings, remarks, coverage; for tools that read streams.


def render_json_lines(report: Report, style: Style) -> str:
    """Return the lines, each with ``schema_version``, ``type`` and the machine's name."""
    documents = [("finding", finding_document(finding)) for finding in report.findings]
    documents += [("remark", remark_document(remark)) for remark in report.remarks]
    documents.append(("coverage", coverage_document(report.coverage)))
    return "".join(
        json.dumps(
            {
                "schema_version": SCHEMA_VERSION,
                "type": kind,
                "machine": report.machine,
                **document,
            },
            allow_nan=False,
        )
        + "\n"
        for kind, document in documents
    )
