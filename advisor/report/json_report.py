"""The whole report as one JSON document; ``findings.schema.json`` describes it.

Lines and columns count from 1, ends are exclusive, columns count code points.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from advisor.finding import Condition, Finding, Fix, Prediction, Remark
from advisor.report.model import Report
from advisor.report.style import Style
from advisor.source import Span

SCHEMA_VERSION = 1


def render(report: Report, style: Style) -> str:
    """Return the document, indented, with a line end; `style` has no say."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "machine": report.machine,
        "findings": [finding_document(finding) for finding in report.findings],
        "remarks": [remark_document(remark) for remark in report.remarks],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def finding_document(finding: Finding) -> Mapping[str, Any]:
    """Return a finding as JSON values."""
    evidence = finding.evidence
    return {
        "code": finding.code,
        "name": finding.name,
        "path": finding.path,
        "kernel": finding.kernel,
        "location": location_document(finding.span),
        "message": finding.message,
        "reason": finding.reason,
        "prediction": None if finding.prediction is None else _prediction(finding.prediction),
        "condition": None if finding.condition is None else _condition(finding.condition),
        "assumptions": [
            {"name": a.name, "value": _value(a.value), "origin": a.origin}
            for a in finding.assumptions
        ],
        "evidence": {
            "machine": evidence.machine,
            "calibration": evidence.calibration,
            "provenance": evidence.provenance,
            "terms": [
                {
                    "label": term.label,
                    "model": term.model,
                    "before_s": _number(term.before_s),
                    "after_s": _number(term.after_s),
                }
                for term in evidence.terms
            ],
            "facts": list(evidence.facts),
            "coefficients": list(evidence.coefficients),
            "remarks": list(evidence.remarks),
            "measured": list(evidence.measured),
        },
        "alternatives": [
            {"title": a.title, "time_s": _number(a.time_s), "reason": a.reason}
            for a in finding.alternatives
        ],
        "crossover": [
            {"variable": c.variable, "values": list(c.values), "pays": c.pays}
            for c in finding.crossovers
        ]
        or None,
        "fix": None if finding.fix is None else _fix(finding.fix),
        "fingerprint": finding.fingerprint,
    }


def remark_document(remark: Remark) -> Mapping[str, Any]:
    """Return a remark as JSON values."""
    return {
        "path": remark.path,
        "kernel": remark.kernel,
        "location": location_document(remark.span),
        "message": remark.message,
    }


def location_document(span: Span) -> Mapping[str, int]:
    """Return a span with columns that count from 1, as in the other linters' JSON."""
    return {
        "row": span.start_line,
        "column": span.start_column + 1,
        "end_row": span.end_line,
        "end_column": span.end_column + 1,
    }


def _prediction(prediction: Prediction) -> Mapping[str, Any]:
    return {
        "before_s": _number(prediction.before_s),
        "after_s": _number(prediction.after_s),
        "speedup": _number(prediction.speedup),
        "low": _number(prediction.low),
        "high": _number(prediction.high),
        "before_low_s": _number(prediction.before_low_s),
        "before_high_s": _number(prediction.before_high_s),
        "after_low_s": _number(prediction.after_low_s),
        "after_high_s": _number(prediction.after_high_s),
        "confidence": prediction.confidence.value,
        "in_range": prediction.in_range,
    }


def _condition(condition: Condition) -> Mapping[str, Any]:
    return {
        "text": condition.text,
        "open_sizes": list(condition.open_sizes),
        "pays_from": condition.pays_from,
        "always": condition.always,
    }


def _fix(fix: Fix) -> Mapping[str, Any]:
    return {
        "applicability": fix.applicability.value,
        "legality": fix.legality,
        "edits": [
            {"location": location_document(edit.span), "replacement": edit.replacement}
            for edit in fix.edits
        ],
    }


def _number(value: float | None) -> float | None:
    """Return `value`, or null where JSON has no such number (an unbounded end)."""
    return value if value is not None and math.isfinite(value) else None


def _value(value: int | float | str) -> int | float | str | None:
    return value if isinstance(value, str) else _number(value)
