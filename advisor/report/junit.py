"""JUnit XML: a finding is a failed test case, and a run without findings one that passed.

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
from advisor.report.places import full_message
from advisor.report.style import Style, one_line

_PASSED = '    <testcase classname="advise" name="{}"/>'


def render(report: Report, style: Style) -> str:
    """Return the document, with one suite for each file that has findings."""
    suites: dict[str, list[Finding]] = {}
    for finding in report.findings:
        suites.setdefault(_legal(reported_path(finding.path)[1]), []).append(finding)
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<testsuites name="advise" tests="{len(report.findings) or 1}" '
        f'failures="{len(report.findings)}">',
    ]
    for path, findings in suites.items():
        taken: set[str] = set()
        cases = [line for finding in findings for line in _case(finding, path, taken)]
        lines += _suite(path, len(findings), cases)
    if not suites:
        said = "nothing to gain in what could be read" if report.failed else "nothing to gain"
        lines += _suite("advise", 0, [_PASSED.format(said)])
    lines.append("</testsuites>")
    return "\n".join(lines) + "\n"


def _suite(name: str, failures: int, cases: Iterable[str]) -> list[str]:
    head = f'tests="{failures or 1}" failures="{failures}" errors="0"'
    return [f"  <testsuite name={_attribute(name)} {head}>", *cases, "  </testsuite>"]


def _case(finding: Finding, path: str, taken: set[str]) -> list[str]:
    place = f"{path}:{finding.span.start_line}:{finding.span.start_column + 1}"
    name = plain = _legal(f"{finding.code} {finding.name} in {finding.kernel}")
    number = 1
    while name in taken:
        number += 1
        name = f"{plain}, {number}"
    taken.add(name)
    return [
        f"    <testcase classname={_attribute(path)} name={_attribute(name)}>",
        f"      <failure message={_attribute(finding.message)} type={_attribute(finding.code)}>"
        f"{escape(_legal(f'{place}: {full_message(finding)}'))}</failure>",
        "    </testcase>",
    ]


def _attribute(text: str) -> str:
    return quoteattr(_legal(text))


def _legal(text: str) -> str:
    """Return `text` without what XML 1.0 cannot hold, surrogates included."""
    return one_line(text).encode("utf-8", "replace").decode().translate(_NOT_XML)


_NOT_XML = {0xFFFE: "?", 0xFFFF: "?"}
