"""JUnit XML: a finding is a failed test case, and a run without findings one that passed."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

from advisor.finding import Finding
from advisor.report.model import Report
from advisor.report.places import full_message
from advisor.report.style import Style, one_line

_PASSED = '    <testcase classname="advise" name="nothing to gain"/>'


def render(report: Report, style: Style) -> str:
    """Return the document, with one suite for each file that has findings."""
    suites: dict[str, list[Finding]] = {}
    for finding in report.findings:
        suites.setdefault(finding.path, []).append(finding)
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<testsuites name="advise" tests="{len(report.findings) or 1}" '
        f'failures="{len(report.findings)}">',
    ]
    for path, findings in suites.items():
        lines += _suite(path, len(findings), [line for f in findings for line in _case(f)])
    if not suites:
        lines += _suite("advise", 0, [_PASSED])
    lines.append("</testsuites>")
    return "\n".join(lines) + "\n"


def _suite(name: str, failures: int, cases: Iterable[str]) -> list[str]:
    head = f'tests="{failures or 1}" failures="{failures}" errors="0"'
    return [f"  <testsuite name={_attribute(name)} {head}>", *cases, "  </testsuite>"]


def _case(finding: Finding) -> list[str]:
    place = f"{finding.path}:{finding.span.start_line}:{finding.span.start_column + 1}"
    name = f"{finding.code} {finding.name} at line {finding.span.start_line}"
    return [
        f"    <testcase classname={_attribute(finding.path)} name={_attribute(name)} "
        f'line="{finding.span.start_line}">',
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
