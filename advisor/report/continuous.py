"""Findings as other programs read them: as JSON, and as build servers and code hosts do.

What a finding tells is one table of fields, `fields`; what a format makes of them is a template of
``templates.json``, in which ``$name`` stands for a field and ``{"$gain": [a, b]}`` for the one or
the other. Keys whose field is None are left out.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from functools import cache
from hashlib import sha256
from importlib import resources
from itertools import chain, count
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from advisor.files import is_file_name, reported_path
from advisor.finding import Coverage, Finding, NotUnderstood, Prediction, Verdict
from advisor.report.model import (
    Report,
    coverage_lines,
    fix_mark,
    full_message,
    headline,
    not_analysed,
    page,
)
from advisor.report.style import Style, json_text, one_line
from advisor.source import Span, file_and_cell, split_lines
from costdb.records import grouped

if TYPE_CHECKING:
    from advisor.ir.kernel import Rule

# The whole report as one JSON document; ``findings.schema.json`` describes it.
#
# Lines and columns count from 1, ends are exclusive, columns count code points.


SCHEMA_VERSION = 2

_NAMES = {"span": "location", "crossovers": "crossover", "omitted": "missing"}
"""What a field is called in the document, where it is not its own name."""


def render(report: Report, style: Style) -> str:
    """Return the document, indented, with a line end; `style` has no say."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "machine": report.machine,
        "findings": [finding_document(finding) for finding in report.findings],
        "remarks": [values(remark) for remark in report.remarks],
        "coverage": values(report.coverage),
    }
    return json_text(document)


def finding_document(finding: Finding) -> Mapping[str, Any]:
    """Return a finding as JSON values."""
    document = dict(values(finding))
    document["crossover"] = document["crossover"] or None
    return document


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
            told = {"complete": value.complete, "confidence": value.confidence}
            return {**told, **_of_fields(value)}
        case Coverage():
            return {"complete": value.complete, **_of_fields(value)}
    return _of_fields(value) if is_dataclass(value) else value


def _of_fields(data: Any) -> dict[str, Any]:
    found = {
        _NAMES.get(one.name, one.name): values(getattr(data, one.name)) for one in fields_of(data)
    }
    path, cell = file_and_cell(found.get("path", ""))
    return found if cell is None else {**found, "path": path, "cell": cell}


# JSON, an object a line: findings, remarks, coverage; for tools that read streams.


def render_json_lines(report: Report, style: Style) -> str:
    """Return the lines, each with ``schema_version``, ``type`` and the machine's name."""
    documents = [("finding", finding_document(finding)) for finding in report.findings]
    documents += [("remark", values(remark)) for remark in report.remarks]
    documents.append(("coverage", values(report.coverage)))
    lines = (
        {"schema_version": SCHEMA_VERSION, "type": kind, "machine": report.machine, **document}
        for kind, document in documents
    )
    return "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines)


Fields = Mapping[str, Any]
_PROPERTIES = ("verdict", "saves_s", "share", "priced_as", "prediction")


def fields(report: Report) -> list[dict[str, Any]]:
    """Return what each finding of a report tells build servers, by the names that templates use."""
    seen: Counter[str] = Counter()
    told = []
    for finding in report.findings:
        place = about_place(report, finding.path, finding.span)
        identity = f"{place['path']}\n{finding.fingerprint}"
        seen.update((identity, finding.fingerprint))
        numbered = f"{identity}\n{seen[identity]}".encode("utf-8", "backslashreplace")
        document = finding_document(finding)
        told.append(
            {
                **place,
                "code": finding.code,
                "name": finding.name,
                "message": full_message(finding),
                "gain": finding.verdict is Verdict.GAIN,
                "rank": _rank(finding),
                "numbered": sha256(numbered).hexdigest(),
                "occurrence": f"{finding.fingerprint}:{seen[finding.fingerprint]}",
                "properties": {name: document[name] for name in _PROPERTIES},
                "finding": finding,
            }
        )
    return told


def about_place(report: Report, path: str, span: Span) -> dict[str, Any]:
    """Return the fields of a place: lines and columns from 1, columns also in UTF-8 bytes."""
    lines = _lines(report.sources.get(path, ""))
    place = {
        "path": reported_path(path)[1],
        "line": span.start_line,
        "column": span.start_column + 1,
        "byte": _byte(span.start_line, span.start_column, lines),
        "end_line": span.end_line,
        "end_column": span.end_column + 1,
        "end_byte": _byte(span.end_line, span.end_column, lines),
    }
    return place | {
        "bytes": filled("rdjson_range", place),
        "region": filled("sarif_region", place),
    }


def filled(template: str, of: Fields) -> Any:
    """Return a template of ``templates.json`` with its fields."""
    return _filled(_templates()[template], of)


def _filled(template: Any, of: Fields) -> Any:
    match template:
        case {"$gain": [gain, other]}:
            return gain if of["gain"] else other
        case dict():
            values = {key: _filled(one, of) for key, one in template.items()}
            return {key: value for key, value in values.items() if value is not None}
        case list():
            return [_filled(one, of) for one in template]
        case str() if template.startswith("$"):
            return of.get(template[1:])
    return template


@cache
def _templates() -> Mapping[str, Any]:
    text = resources.files("advisor.report").joinpath("templates.json").read_bytes()
    found: Mapping[str, Any] = json.loads(text)
    return found


@cache
def _lines(source: str) -> Sequence[str]:
    return split_lines(source)


def _byte(line: int, column: int, lines: Sequence[str]) -> int:
    text = lines[line - 1] if line <= len(lines) else ""
    before = text[:column].encode("utf-8", "surrogatepass")
    return len(before) + max(0, column - len(text)) + 1


# Workflow commands that GitHub Actions shows beside the changed lines.


def render_github(report: Report, style: Style) -> str:
    """Return one line for each finding, a ``::warning`` where it is a clear gain; then coverage."""
    coverage = _escape("\n".join(coverage_lines(report)))
    commands = [*map(_command, fields(report)), f"::notice title=advise coverage::{coverage}"]
    return "".join(f"{command}\n" for command in commands)


def _command(of: Fields) -> str:
    last = of["finding"].span.last_line
    told = {"title": f"{of['code']} {of['name']}", "file": of["path"]}
    told |= {"line": of["line"], "endLine": last}
    if of["line"] == of["end_line"]:  # GitHub drops the lines of an annotation with both
        told |= {"col": of["column"], "endColumn": of["end_column"]}
    shown = ",".join(
        f"{name}={_escape(str(value)).replace(':', '%3A').replace(',', '%2C')}"
        for name, value in told.items()
    )
    return f"::{'warning' if of['gain'] else 'notice'} {shown}::{_escape(of['message'])}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def render_gitlab(report: Report, style: Style) -> str:
    """Return a JSON list; GitLab drops findings that share a fingerprint, so none do."""
    return json_text([filled("gitlab", one) for one in fields(report)])


# JUnit XML: a finding is a test case, failed where it fails a build; the last one is coverage.
#
# Servers know a case again by its class and name, and drop all but the first of two that share
# them: so names hold no line, and are numbered where they would be the same. Only attributes that
# the schema of Jenkins' xUnit plugin permits are used.


def render_junit(report: Report, style: Style) -> str:
    """Return the document, with one suite for each file that has findings."""
    suites = grouped((_legal(reported_path(one.path)[1]), one) for one in report.findings)
    failures = sum(map(report.fails, report.findings))
    tests = len(report.findings) + 1
    root = _element(None, "testsuites", name="advise", tests=tests, failures=failures)
    for path, findings in suites.items():
        failed = sum(map(report.fails, findings))
        suite = _suite(root, path, len(findings), failed)
        taken: set[str] = set()
        for one in findings:
            _case(suite, one, path, taken, report.fails(one))
    case = _element(_suite(root, "advise", 1, 0), "testcase", classname="advise", name="coverage")
    _element(case, "system-out").text = "\n".join(map(_legal, coverage_lines(report)))
    ElementTree.indent(root)
    text = ElementTree.tostring(root, "unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _element(parent: Element | None, tag: str, **attributes: object) -> Element:
    legal = {name: _legal(str(value)) for name, value in attributes.items()}
    return Element(tag, legal) if parent is None else SubElement(parent, tag, legal)


def _suite(root: Element, name: str, tests: int, failures: int) -> Element:
    return _element(root, "testsuite", name=name, tests=tests, failures=failures, errors=0)


def _case(suite: Element, finding: Finding, path: str, taken: set[str], fails: bool) -> None:
    place = f"{path}:{finding.span.start_line}:{finding.span.start_column + 1}"
    plain = _legal(f"{finding.code} {finding.name} in {finding.kernel}")
    numbered = (f"{plain}, {number}" for number in count(2))
    name = next(one for one in chain((plain,), numbered) if one not in taken)
    taken.add(name)
    case = _element(suite, "testcase", classname=path, name=name)
    kind = {"message": headline(finding), "type": finding.code}
    told = _element(case, "failure", **kind) if fails else _element(case, "system-out")
    told.text = _legal(f"{place}: {full_message(finding)}")


def _legal(text: str) -> str:
    """Return `text` without what XML 1.0 cannot hold, surrogates included."""
    return one_line(text).encode("utf-8", "replace").decode().translate(_NOT_XML)


_NOT_XML = {0xFFFE: "?", 0xFFFF: "?"}


def render_rdjson(report: Report, style: Style) -> str:
    """Return Reviewdog's document with all diagnostics, fixes of one edit as suggestions."""
    told = [
        *(filled("rdjson_finding", one | _suggestions(report, one)) for one in fields(report)),
        *(filled("rdjson_unread", _unread(report, p)) for p in report.coverage.not_understood),
    ]
    return json_text(filled("rdjson", {"diagnostics": told}))


def _suggestions(report: Report, of: Fields) -> dict[str, Any]:
    finding: Finding = of["finding"]
    # Reviewdog offers suggestions one by one; a fix of several edits must not be cut apart.
    if not fix_mark(finding) or finding.fix is None or len(finding.fix.edits) != 1:
        return {}
    (edit,) = finding.fix.edits
    place = about_place(report, finding.path, edit.span)
    return {"suggestions": [{"range": place["bytes"], "text": edit.replacement}]}


def _unread(report: Report, part: NotUnderstood) -> dict[str, Any]:
    place = about_place(report, part.path, Span(part.line, 0, part.line, 0))
    return {**place, "message": not_analysed(part)}


def render_sarif(report: Report, style: Style) -> str:
    """Return the log, with the rules that fired and their pages as help."""
    from advisor.transform_registry import rules as installed

    about = {rule.code: rule for rule in installed()}
    bases = _bases(report)
    rules = sorted({(finding.code, finding.name) for finding in report.findings})
    index = {code: number for number, (code, _) in enumerate(rules)}
    results = [
        filled("sarif_finding", {**one, **_fixes(report, one, bases), "index": index[one["code"]]})
        for one in fields(report)
    ]
    unread = (
        _unread(report, part) | {"artifact": _artifact(part.path, bases)}
        for part in report.coverage.not_understood
    )
    notes = ({"level": "note", "message": {"text": line}} for line in coverage_lines(report))
    roots = {name: {"uri": _uri(f"{root}/")} for root, name in bases.items()}
    log = {
        "rules": [_rule(code, name, about.get(code)) for code, name in rules],
        "read": not report.failed,
        "notes": [*(filled("sarif_unread", one) for one in unread), *notes],
        "machine": report.machine,
        "coverage": values(report.coverage),
        "bases": roots or None,
        "results": results,
    }
    return json_text(filled("sarif", log))


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


def _rule(code: str, name: str, about: Rule | None) -> Any:
    title = "".join(word.capitalize() for word in name.split("-"))
    known: Fields = {"code": code, "name": name, "title": title}
    if about is None:
        return filled("sarif_rule", known)
    source = os.environ.get(SOURCE_VARIABLE, "").rstrip("/")
    uri = f"{source}/{about.module.replace('.', '/')}.py" if source else None
    help_page = {"text": page(about), "markdown": page(about)}
    return filled("sarif_rule", {**known, "help": help_page, "uri": uri})


def _rank(finding: Finding) -> float:
    """Return the saved share of the kernel's time, in percent: SARIF ranks from 0 to 100."""
    speedup = finding.speedup
    if speedup <= 1 or math.isnan(speedup):
        return 0.0
    return round(100 * (1 - 1 / speedup), 1)


def _fixes(report: Report, of: Fields, bases: Mapping[str, str]) -> dict[str, Any]:
    finding: Finding = of["finding"]
    artifact, fix = _artifact(finding.path, bases), finding.fix
    if fix is None or not fix.edits:
        return {"artifact": artifact}
    edits = [
        filled(
            "sarif_edit",
            {**about_place(report, finding.path, edit.span), "text": edit.replacement},
        )
        for edit in fix.edits
    ]
    told = {"legality": f"{fix.applicability}: {fix.legality}", "replacements": edits}
    return {"artifact": artifact, "fixes": [filled("sarif_fix", {"artifact": artifact, **told})]}


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
