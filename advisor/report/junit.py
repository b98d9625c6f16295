"""JUnit XML: a finding is a test case, failed where it fails a build; the last one is coverage.

Servers know a case again by its class and name, and drop all but the first of two that share
them: so names hold no line, and are numbered where they would be the same. Only attributes that
the schema of Jenkins' xUnit plugin permits are used.
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

from advisor.finding import Finding
from advisor.project import reported_path
from advisor.report.model import Report
from advisor.report.rows import coverage_lines, full_message, headline
from advisor.report.style import Style, one_line


def render(report: Report, style: Style) -> str:
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
