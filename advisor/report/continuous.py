"""Findings as continuous integration and code hosts read them."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from advisor.edits import split_lines
from advisor.finding import Finding, Fix, NotUnderstood
from advisor.ir.rule import Rule
from advisor.project import is_file_name, reported_path
from advisor.report.json_report import coverage_document, finding_document
from advisor.report.model import Report, page
from advisor.report.rows import (
    coverage_lines,
    fix_mark,
    full_message,
    headline,
    is_gain,
    not_analysed,
)
from advisor.report.style import Style, one_line
from advisor.source import Span

# Workflow commands that GitHub Actions shows beside the changed lines.


def render_github(report: Report, style: Style) -> str:
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


# GitLab's code quality report.


def render_gitlab(report: Report, style: Style) -> str:
    """Return a JSON list; GitLab drops findings that share a fingerprint, so none do."""
    seen: Counter[str] = Counter()
    issues = []
    for finding in report.findings:
        _, path = reported_path(finding.path)
        identity = f"{path}\n{finding.fingerprint}"
        seen[identity] += 1
        numbered = f"{identity}\n{seen[identity]}".encode("utf-8", "backslashreplace")
        issues.append(
            {
                "check_name": finding.code,
                "description": full_message(finding),
                "severity": "minor" if is_gain(finding) else "info",
                "fingerprint": sha256(numbered).hexdigest(),
                "location": {
                    "path": path,
                    "positions": {
                        "begin": {
                            "line": finding.span.start_line,
                            "column": finding.span.start_column + 1,
                        },
                        "end": {
                            "line": finding.span.end_line,
                            "column": finding.span.end_column + 1,
                        },
                    },
                },
            }
        )
    return json.dumps(issues, indent=2) + "\n"


# JUnit XML: a finding is a test case, failed where it fails a build; the last one is coverage.
#
# Servers know a case again by its class and name, and drop all but the first of two that share
# them: so names hold no line, and are numbered where they would be the same. Only attributes that
# the schema of Jenkins' xUnit plugin permits are used.


def render_junit(report: Report, style: Style) -> str:
    """Return the document, with one suite for each file that has findings."""
    suites: dict[str, list[Finding]] = {}
    for finding in report.findings:
        suites.setdefault(_legal(reported_path(finding.path)[1]), []).append(finding)
    failures = sum(map(report.fails, report.findings))
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<testsuites name="advise" tests="{len(report.findings) + 1}" failures="{failures}">',
    ]
    for path, findings in suites.items():
        taken: set[str] = set()
        cases = [line for one in findings for line in _case(one, path, taken, report.fails(one))]
        lines += _suite(path, len(findings), sum(map(report.fails, findings)), cases)
    told = escape("\n".join(map(_legal, coverage_lines(report))))
    case = ['    <testcase classname="advise" name="coverage">', *_output(told), "    </testcase>"]
    lines += _suite("advise", 1, 0, case)
    lines.append("</testsuites>")
    return "\n".join(lines) + "\n"


def _suite(name: str, tests: int, failures: int, cases: Iterable[str]) -> list[str]:
    head = f'tests="{tests}" failures="{failures}" errors="0"'
    return [f"  <testsuite name={_attribute(name)} {head}>", *cases, "  </testsuite>"]


def _case(finding: Finding, path: str, taken: set[str], fails: bool) -> list[str]:
    place = f"{path}:{finding.span.start_line}:{finding.span.start_column + 1}"
    name = plain = _legal(f"{finding.code} {finding.name} in {finding.kernel}")
    number = 1
    while name in taken:
        number += 1
        name = f"{plain}, {number}"
    taken.add(name)
    told = escape(_legal(f"{place}: {full_message(finding)}"))
    kind = f"message={_attribute(headline(finding))} type={_attribute(finding.code)}"
    return [
        f"    <testcase classname={_attribute(path)} name={_attribute(name)}>",
        *([f"      <failure {kind}>{told}</failure>"] if fails else _output(told)),
        "    </testcase>",
    ]


def _output(told: str) -> list[str]:
    return [f"      <system-out>{told}</system-out>"]


def _attribute(text: str) -> str:
    return quoteattr(_legal(text))


def _legal(text: str) -> str:
    """Return `text` without what XML 1.0 cannot hold, surrogates included."""
    return one_line(text).encode("utf-8", "replace").decode().translate(_NOT_XML)


_NOT_XML = {0xFFFE: "?", 0xFFFF: "?"}


# Reviewdog's diagnostic format; its columns count UTF-8 bytes.


def render_rdjson(report: Report, style: Style) -> str:
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


_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

_PROPERTIES = ("verdict", "saves_s", "share", "priced_as", "prediction")


def render_sarif(report: Report, style: Style) -> str:
    """Return the log, with the rules that fired and their pages as help."""
    from advisor.transform_registry import rules as installed

    about = {rule.code: rule for rule in installed()}
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
                "rules": [_rule(code, name, about.get(code)) for code, name in rules],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not report.failed,
                "toolExecutionNotifications": [
                    *(_notification(part, bases) for part in report.coverage.not_understood),
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


SOURCE_VARIABLE = "ADVISE_SOURCE_URL"
"""Where the sources of this project can be read, such as ``https://.../blob/main``: each rule's
module begins with its page."""


def _rule(code: str, name: str, about: Rule | None) -> Mapping[str, Any]:
    rule: dict[str, Any] = {
        "id": code,
        "name": "".join(word.capitalize() for word in name.split("-")),
        "shortDescription": {"text": name},
        "defaultConfiguration": {"level": "note"},
    }
    if about is not None:
        rule["help"] = {"text": page(about), "markdown": page(about)}
        source = os.environ.get(SOURCE_VARIABLE, "").rstrip("/")
        module = getattr(getattr(about, "propose", None), "__module__", "").replace(".", "/")
        if source and module:
            rule["helpUri"] = f"{source}/{module}.py"
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


def _notification(part: NotUnderstood, bases: Mapping[str, str]) -> Mapping[str, Any]:
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
