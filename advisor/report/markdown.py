"""Findings as a comment on a pull request: one table, then a folded part for each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from advisor.files import reported_path
from advisor.finding import Finding
from advisor.report.full import HEADS, excerpt
from advisor.report.html import diff_of
from advisor.report.model import Report
from advisor.report.rows import coverage_lines, figures, fix_option, ordered, rows, sentence
from advisor.report.style import Style, one_line

# What would be markup, a mention, a reference or a link; code spans would not hold backticks.
_MARKUP = re.compile(r"([\\`*_\[\]<#|~&$]|^[>+-])")
_LINKED = re.compile(r"@|(?<=\w)://|(?<=www)\.")


def render(report: Report, style: Style) -> str:
    """Return the comment; what users wrote is shown as text, never as markup."""
    findings = ordered(report.findings)
    *told, last = coverage_lines(report)
    parts = [f"### advise\n\n{_text(last)}"]
    if findings:
        parts.append(_table(("class", *HEADS), map(_cells, findings)))
    parts += [_folded(one, report.sources.get(one.path, "")) for one in findings]
    notes = [f"{one.path}:{one.span.start_line}: {one.message}" for one in report.remarks]
    if notes or told:
        parts.append("\n".join(f"- {_text(one)}" for one in (*notes, *told)))
    return "\n\n".join(parts) + "\n"


def page(
    title: str,
    told: Iterable[str],
    tables: Iterable[tuple[str, Sequence[str], Iterable[Sequence[str]]]],
) -> str:
    """Return a heading, sentences, and tables of which each has a title, heads and rows."""
    parts = [f"### {_text(title)}", *map(_text, told)]
    for name, heads, cells in tables:
        parts += [f"**{_text(name)}**", _table(heads, cells)]
    return "\n\n".join(parts) + "\n"


def _text(said: str) -> str:
    """Return text as Markdown that shows it and notifies nobody."""
    escaped = _MARKUP.sub(r"\\\1", one_line(said))
    return _LINKED.sub("\\g<0>\N{ZERO WIDTH SPACE}", escaped)


def _table(heads: Sequence[str], cells: Iterable[Sequence[str]]) -> str:
    rows = (f"| {' | '.join(map(_text, row))} |" for row in cells)
    return "\n".join((f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *rows))


def _cells(one: Finding) -> Sequence[str]:
    gain, *others = figures(one)
    where = f"{reported_path(one.path)[1]}:{one.span.start_line} {one.kernel}"
    told = where, sentence(one.title), fix_option(one)
    return (one.verdict.upper(), gain or "?", *others, *told)


def _folded(finding: Finding, source: str) -> str:
    place = f"{reported_path(finding.path)[1]}:{finding.span.start_line}"
    title = f"{finding.verdict.upper()} {place} {finding.code} {finding.name}"
    told = "\n".join(f"- **{name}** {_text(said)}" for name, said in rows(finding).items())
    parts = [
        f"<details><summary>{_summary(title)}</summary>",
        _text(sentence(finding.reason)),
        _fenced("text", excerpt(source, finding.span, Style())),
        told,
        _fenced("diff", diff_of(finding, source)),
        "</details>",
    ]
    return "\n\n".join(filter(None, parts))


def _summary(said: str) -> str:
    """Return text within HTML, where a backslash escapes nothing."""
    from html import escape

    return _LINKED.sub("\\g<0>\N{ZERO WIDTH SPACE}", escape(one_line(said)))


def _fenced(language: str, lines: Sequence[str]) -> str:
    if not lines:
        return ""
    text = "\n".join(map(str.rstrip, lines))
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
