"""SARIF 2.1.0, for code scanning."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from advisor.finding import Finding, Fix, NotUnderstood
from advisor.project import is_file_name, reported_path
from advisor.report.json_report import coverage_document, finding_document
from advisor.report.model import Report
from advisor.report.rows import coverage_lines, full_message, is_gain, not_analysed
from advisor.report.style import Style
from advisor.source import Span

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

_PROPERTIES = ("verdict", "saves_s", "share", "priced_as", "prediction")


def render(report: Report, style: Style) -> str:
    """Return the log, with the rules that fired and their pages as help."""
    bases = _bases(report)
    rules = sorted({(finding.code, finding.name) for finding in report.findings})
    index = {code: number for number, (code, _) in enumerate(rules)}
    seen: Counter[str] = Counter()
    results = []
    for finding in report.findings:
        seen[finding.fingerprint] += 1
        results.append(_result(finding, index[finding.code], seen[finding.fingerprint], bases))
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "advise",
                "rules": [_rule(code, name, report.documentation) for code, name in rules],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not report.failed,
                "toolExecutionNotifications": [
                    *(_not_analysed(part, bases) for part in report.coverage.not_understood),
                    *map(_note, coverage_lines(report)),
                ],
            }
        ],
        "properties": {
            "machine": report.machine,
            "coverage": coverage_document(report.coverage),
        },
    }
    if bases:
        run["originalUriBaseIds"] = {
            name: {"uri": _uri(f"{root}/")} for root, name in bases.items()
        }
    run["results"] = results
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, allow_nan=False) + "\n"


def _bases(report: Report) -> Mapping[str, str]:
    """Return names for the roots that files lie below: one, but for runs across projects."""
    bases: dict[str, str] = {}
    paths = [finding.path for finding in report.findings]
    for path in (*paths, *(part.path for part in report.coverage.not_understood)):
        root, _ = reported_path(path)
        if root is not None and root not in bases:
            bases[root] = f"%SRCROOT{len(bases) + 1}%" if bases else "%SRCROOT%"
    return bases


def _rule(code: str, name: str, documentation: Mapping[str, str]) -> Mapping[str, Any]:
    rule: dict[str, Any] = {
        "id": code,
        "name": "".join(word.capitalize() for word in name.split("-")),
        "shortDescription": {"text": name},
        "defaultConfiguration": {"level": "note"},
    }
    if page := documentation.get(code):
        rule["help"] = {"text": page, "markdown": page}
    return rule


def _result(
    finding: Finding, rule_index: int, occurrence: int, bases: Mapping[str, str]
) -> Mapping[str, Any]:
    place, document = _artifact(finding.path, bases), finding_document(finding)
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rule_index,
        "level": "warning" if is_gain(finding) else "note",
        "rank": _rank(finding),
        "message": {"text": full_message(finding)},
        "locations": [_location(place, _region(finding.span))],
        "partialFingerprints": {"primaryLocationLineHash": f"{finding.fingerprint}:{occurrence}"},
        "properties": {name: document[name] for name in _PROPERTIES},
    }
    if finding.fix is not None and finding.fix.edits:
        result["fixes"] = [_fix(place, finding.fix)]
    return result


def _not_analysed(part: NotUnderstood, bases: Mapping[str, str]) -> Mapping[str, Any]:
    location = _location(_artifact(part.path, bases), {"startLine": part.line})
    return {**_note(not_analysed(part)), "locations": [location]}


def _note(text: str) -> Mapping[str, Any]:
    return {"level": "note", "message": {"text": text}}


def _location(place: Mapping[str, str], region: Mapping[str, int]) -> Mapping[str, Any]:
    return {"physicalLocation": {"artifactLocation": place, "region": region}}


def _rank(finding: Finding) -> float:
    """Return the saved share of the kernel's time, in percent: SARIF ranks from 0 to 100."""
    speedup = finding.speedup
    if speedup <= 1 or math.isnan(speedup):
        return 0.0
    return round(100 * (1 - 1 / speedup), 1)


def _fix(place: Mapping[str, str], fix: Fix) -> Mapping[str, Any]:
    return {
        "description": {"text": f"{fix.applicability}: {fix.legality}"},
        "artifactChanges": [
            {
                "artifactLocation": place,
                "replacements": [
                    {
                        "deletedRegion": _region(edit.span),
                        "insertedContent": {"text": edit.replacement},
                    }
                    for edit in fix.edits
                ],
            }
        ],
    }


def _artifact(path: str, bases: Mapping[str, str]) -> Mapping[str, str]:
    root, shown = reported_path(path)
    if root is not None:
        return {"uri": quote(shown, errors="surrogateescape"), "uriBaseId": bases[root]}
    # below no root that others know, or no file at all
    return {"uri": _uri(shown) if is_file_name(path) else quote(shown, errors="surrogateescape")}


def _uri(whole: str) -> str:
    slashed = whole.replace("\\", "/")
    return "file://" + quote(
        slashed if slashed.startswith("/") else f"/{slashed}", safe="/:", errors="surrogateescape"
    )


def _region(span: Span) -> Mapping[str, int]:
    return {
        "startLine": span.start_line,
        "startColumn": span.start_column + 1,
        "endLine": span.end_line,
        "endColumn": span.end_column + 1,
    }
