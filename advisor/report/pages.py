"""Pages and comments: of findings, predictions, choices, verifications and calibrations."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from advisor.files import reported_path
from advisor.finding import Finding
from advisor.report import html
from advisor.report.full import HEADS, excerpt
from advisor.report.html import diff_of
from advisor.report.model import (
    Report,
    coverage_lines,
    figures,
    fix_option,
    ordered,
    rows,
    sentence,
)
from advisor.report.prediction import ChoicesReport, PredictionReport, interval, shown_bindings
from advisor.report.style import Style, one_line, ratio
from advisor.report.svg import Bar, Dot, Plot, bars, fits, ranges, scatter
from costdb.choosing import Choice
from costdb.records import counted

if TYPE_CHECKING:
    from costdb.calibration.campaign import FittedSection, Made


# Findings as a comment on a pull request: one table, then a folded part for each.


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


HTML, MARKDOWN = "html", "markdown"
_MOST_CHOICES = 24


def of_report(report: object, output_format: str) -> str:
    """Return a prediction, or choices side by side."""
    if isinstance(report, PredictionReport):
        return of_prediction(report, output_format)
    assert isinstance(report, ChoicesReport)
    return of_choices(report, output_format)


def of_prediction(report: PredictionReport, output_format: str) -> str:
    """Return a predicted time and what it is made of."""
    found = report.prediction
    parts = tuple((term.label, term.mid) for term in found.estimate.terms if term.mid > 0)
    told = [shown_bindings(found.bindings), interval(found.estimate), *report.remarks]
    plots = [bars("Where the time goes", [Bar("time", parts)])] if parts else []
    return _written(output_format, report.title, filter(None, told), plots)


def of_choices(report: ChoicesReport, output_format: str) -> str:
    """Return choices side by side, fastest first; of many the first ones."""
    shown = report.choices[:_MOST_CHOICES]
    reaches = [
        Dot(_name(one), time.low, time.mid, time.high)
        for one in shown
        if math.isfinite((time := one.estimate).high)
    ]
    told = [shown_bindings(report.given)] if report.given else []
    if len(shown) > 1:
        best, last = shown[0], shown[-1]
        times = ratio(last.estimate.mid / best.estimate.mid)
        told.append(
            f"{_name(best)} is fastest; {_name(last)} takes"
            f" {times} its time. {len(shown)} of {report.considered} choices are shown."
        )
    plots = [ranges("Predicted times", reaches)] if reaches else []
    return _written(output_format, report.title, told, plots)


def _name(choice: Choice) -> str:
    """Return what is chosen; where it is one thing, without saying which."""
    only = list(choice.bindings.values())
    return str(only[0]) if len(only) == 1 else shown_bindings(choice.bindings)


def of_verification(document: Mapping[str, Any], lines: Sequence[str], output_format: str) -> str:
    """Return predicted times beside measured ones.

    Parameters
    ----------
    document : mapping
        As ``verification.schema.json`` says.
    lines : sequence of str
        What it comes to, in words.
    output_format : str
    """
    dots = list(_dots(document))
    title = f"Predicted and measured, on {document['machine']}"
    plots = [scatter("Predicted over measured time", dots)] if dots else []
    return _written(output_format, title, (document["calibration"], *lines), plots)


def _dots(document: Mapping[str, Any]) -> Iterator[Dot]:
    for kernel in document["kernels"]:
        for one in kernel["variants"]:
            if one["predicted"] and one["measured"]:
                name = f"{kernel['kernel']}, {one['rule'] or 'as written'}"
                yield Dot(name, *_ends(one["predicted"]), one["measured"]["median_s"])
    for program in document["programs"]:
        if program["predicted"] and program["measured_s"]:
            name = f"{program['path']}, {program['ranks']} ranks"
            yield Dot(name, *_ends(program["predicted"]), program["measured_s"])


def _ends(stated: Mapping[str, float]) -> tuple[float, float, float]:
    return stated["low_s"], stated["mid_s"], stated["high_s"]


def _written(output_format: str, title: str, told: Iterable[str], plots: Sequence[Plot]) -> str:
    if output_format == HTML:
        return html.page(title, told, map(html.figure, plots))
    return page(title, told, [(plot.title, plot.heads, plot.rows) for plot in plots])


# A calibration: for each section its models' errors, and fitted over measured times.

_MICROSECOND = 1e-6


def of_calibration(made: Made) -> str:
    """Return the page of a calibration."""
    document = made.document
    leads = (
        f"{document['title']}; {document['library']}; {document['date']}.",
        "Every point shown was kept from the fits.",
    )
    notes = document.get("notes")
    told = map(str, notes if isinstance(notes, list) else ())
    body = [part for section in made.sections for part in _fitted(section)]
    body += [html.heading(2, "Notes"), html.bullets(told)]
    return html.page(f"Calibration of {document['name']}", leads, body)


def _fitted(section: FittedSection) -> Iterator[str]:
    yield html.heading(2, section.name)
    samples = sum(len(timing.samples_us) for timing in section.timings)
    yield html.bullets(
        [
            f"{counted(len(section.timings), 'point')}, {counted(samples, 'sample')} in "
            f"{counted(len(section.measured.launches), 'launch', 'launches')}, "
            f"begun {section.measured.begun.split('.')[0]} UTC"
        ]
    )
    qualities = section.fitted.qualities
    rows = [
        (one.operation, f"{100 * one.median_error:.1f} %", str(len(one.pairs))) for one in qualities
    ]
    yield html.table(("operation", "median error", "points"), rows)
    dots = [
        Dot(one.operation, at, at, at, taken * _MICROSECOND)
        for one in qualities
        for taken, told in one.pairs
        for at in [told * _MICROSECOND]
        if min(taken, told) > 0
    ]
    if dots:
        yield html.figure(fits("Fitted over measured time", dots))
