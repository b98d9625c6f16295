"""JSON, an object a line: findings, remarks, coverage; for tools that read streams."""

from __future__ import annotations

import json

from advisor.report.json_report import (
    SCHEMA_VERSION,
    coverage_document,
    finding_document,
    remark_document,
)
from advisor.report.model import Report
from advisor.report.style import Style


def render(report: Report, style: Style) -> str:
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
