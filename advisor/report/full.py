"""The report for a person: gain first, then the place, the numbers, and the reasons."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from advisor.finding import (
    OBSERVED,
    Applicability,
    Assumption,
    Confidence,
    Finding,
    Prediction,
    Remark,
)
from advisor.report.concise import remark_line
from advisor.report.excerpt import excerpt
from advisor.report.model import Report, fix_mark
from advisor.report.style import Style, display_width, one_line
from advisor.report.units import Column, column_for, duration, ratio

_LABEL = 11
_Row = tuple[str, str, str, str]
_LEAST = re.compile(r"^(\w+) >= (\d+)$")


def render(report: Report, style: Style) -> str:
    """Return every finding as a block, then the remarks, then a line that sums up."""
    blocks = [
        "\n".join(block(finding, report.sources.get(finding.path), style))
        for finding in report.findings
    ]
    if report.remarks:
        blocks.append("\n".join(line for r in report.remarks for line in _remark(r, style)))
    blocks.append(summary(report))
    return "\n\n".join(blocks) + "\n"


def summary(report: Report) -> str:
    """Return the closing line: how many findings, and which options would apply them."""
    count = len(report.findings)
    if not count:
        return _nothing(report)
    noun = "finding" if count == 1 else "findings"
    marks = [fix_mark(finding) for finding in report.findings]
    offers = []
    if safe := marks.count("[*]"):
        offers.append(f"[*] {safe} fixable with --fix")
    if unsafe := marks.count("[+]"):
        offers.append(f"[+] {unsafe} with --fix --unsafe-fixes")
    return " ".join([f"{count} {noun} on {report.machine}.", ", ".join(offers)]).rstrip()


def _nothing(report: Report) -> str:
    """Return why there is no finding."""
    others = report.looked_into + report.passed_over
    if report.failed and not others:
        return "Nothing could be read, so nothing was checked."
    if not report.failed and not report.machine:
        return "Nothing to check: there is no Python file here that is not excluded."
    files = "1 file" if others == 1 else f"{others} files"
    read = "what could be read" if report.failed else files
    if not report.looked_into and others:
        why = "no kernel is marked there, and there is no program for MPI or numba"
        return f"Nothing to check in {read}: {why}."
    if report.failed:
        return (
            f"Nothing to gain on {report.machine} in what could be read; the problems stand apart."
        )
    return f"Nothing to gain on {report.machine}, as far as the models can tell."


def block(finding: Finding, source: str | None, style: Style) -> list[str]:
    """Return the lines about one finding; with its statement where the source is at hand."""
    span = finding.span
    place = f"{one_line(finding.path)}:{span.start_line}:{span.start_column + 1}"
    head = f"{finding.code} {finding.name}, kernel {one_line(finding.kernel)}"
    lines = [
        f"{style.paint(place, 'bold')}: {style.paint(head, 'cyan')}",
        *(
            style.paint(line, "bold", "green")
            for line in _wrap(finding.message, style, indent="  ")
        ),
    ]
    if source is not None:
        lines += _after_blank(excerpt(source, span, style))
    lines += _after_blank(_table(finding, style))
    lines.append("")
    for label, texts in _reasons(finding):
        lines += labelled(label, texts, style)
    return lines


def _remark(remark: Remark, style: Style) -> list[str]:
    """Return the line of a remark, wrapped."""
    plain = remark_line(remark, Style())
    painted = remark_line(remark, style)
    lines = _wrap(plain, style, indent="", hanging="    ")
    # the paint lies before the message, which is the same in both
    message = len(one_line(remark.message))
    head, painted_head = plain[: len(plain) - message], painted[: len(painted) - message]
    if lines[0].startswith(head):
        lines[0] = painted_head + lines[0].removeprefix(head)
    return lines


def _after_blank(lines: Sequence[str]) -> list[str]:
    return ["", *lines] if lines else []


def _table(finding: Finding, style: Style) -> list[str]:
    """Return the predicted times, their intervals and their parts as aligned columns."""
    prediction = finding.prediction
    if prediction is None:
        return []
    times = column_for(prediction.before_s, prediction.after_s)
    head: list[_Row] = [
        ("", "before", "after", ""),
        (
            f"predicted ({times.unit})",
            _number(prediction.before_s, times),
            _number(prediction.after_s, times),
            f"{ratio(prediction.speedup)} faster"
            if prediction.speedup >= 1
            else f"{ratio(prediction.speedup)} as fast",
        ),
    ]
    p, number = prediction, times.number
    low: _Row = ("  low", number(p.before_low_s), number(p.after_low_s), ratio(p.low))
    high: _Row = ("  high", number(p.before_high_s), number(p.after_high_s), ratio(p.high))
    beside: _Row = (
        "  interval",
        f"{low[1]} .. {high[1]}",
        f"{low[2]} .. {high[2]}",
        f"{low[3]} .. {high[3]}",
    )
    terms: list[_Row] = [
        (
            f"  {one_line(term.label)}",
            _number(term.before_s, times),
            _number(term.after_s, times),
            one_line(term.model),
        )
        for term in finding.evidence.terms
    ]
    lines = _aligned([*head, beside, *terms])
    if max(map(display_width, lines)) > style.width:
        lines = _aligned([*head, low, high, *terms])
    return [style.paint(lines[0], "dim"), style.paint(lines[1], "bold"), *lines[2:]]


def _aligned(rows: Sequence[_Row]) -> list[str]:
    """Return lines with the label to the left and the two times to the right."""
    widths = [max(display_width(row[column]) for row in rows) for column in range(3)]
    lines = []
    for row in rows:
        label, before, after = (
            _pad(cell, width, right=column > 0)
            for column, (cell, width) in enumerate(zip(row, widths, strict=False))
        )
        lines.append(f"  {label}  {before}  {after}  {row[3]}".rstrip())
    return lines


def _pad(text: str, width: int, *, right: bool) -> str:
    fill = " " * (width - display_width(text))
    return fill + text if right else text + fill


def _number(seconds: float | None, times: Column) -> str:
    return "-" if seconds is None else times.number(seconds)


def _reasons(finding: Finding) -> Iterable[tuple[str, Sequence[str]]]:
    evidence = finding.evidence
    yield "why", [finding.reason, *evidence.facts]
    yield "rejected", [_alternative(a.title, a.time_s, a.reason) for a in finding.alternatives]
    yield "pays", _pays(finding)
    yield "rests on", _sizes(finding.assumptions)
    yield "machine", [_provenance(finding)]
    yield "measured", evidence.measured
    yield "caution", [*_doubts(finding.prediction), *evidence.remarks]
    yield "fix", [_fix(finding)]


def _sizes(assumptions: Sequence[Assumption]) -> list[str]:
    """Return the sizes, those of an observed run by themselves: a line of source says less."""
    stated = [a for a in assumptions if not a.origin.startswith(OBSERVED)]
    lines = [", ".join(f"{a.name} = {a.value} ({a.origin})" for a in stated)]
    for origin in dict.fromkeys(a.origin for a in assumptions if a not in stated):
        sizes = ", ".join(f"{a.name} = {a.value}" for a in assumptions if a.origin == origin)
        lines.append(f"{OBSERVED}: {sizes}{origin.removeprefix(OBSERVED)}")
    return lines


def _alternative(title: str, time_s: float | None, reason: str) -> str:
    return f"{title}, {'not priced' if time_s is None else duration(time_s)}: {reason}"


def _provenance(finding: Finding) -> str:
    evidence = finding.evidence
    calibration = f" ({evidence.calibration})" if evidence.calibration else ""
    return f"{evidence.machine}{calibration}; least certain number: {evidence.provenance}"


def _pays(finding: Finding) -> list[str]:
    condition = finding.condition
    if condition is None:
        return [_crossover(c.pays) for c in finding.crossovers]
    names = ", ".join(condition.open_sizes)
    binds = " ".join(f"-D {name}=..." for name in condition.open_sizes)
    return [condition.text, f"nothing binds {names}, so no time is predicted: pass {binds}"]


def _crossover(pays: str) -> str:
    where, searched, end = pays.removeprefix("pays ").partition(", searched")
    text = _LEAST.sub(r"from \1 = \2", where)
    return f"{text}{searched}{end}, all else equal"


def _doubts(prediction: Prediction | None) -> list[str]:
    if prediction is None:
        return []
    doubts = []
    if prediction.confidence is Confidence.LOW:
        doubts.append("low confidence: the interval reaches where there is no gain")
    if not prediction.in_range:
        doubts.append("outside the range that the machine was calibrated for")
    return doubts


def _fix(finding: Finding) -> str:
    fix = finding.fix
    if fix is None:
        return "none offered: to be done by hand"
    offers = {
        Applicability.SAFE: "[*] safe, fixable with --fix",
        Applicability.UNSAFE: "[+] unsafe, applied only with --fix --unsafe-fixes",
        Applicability.DISPLAY: "for the reader only",
    }
    return f"{offers[fix.applicability]}: {fix.legality}"


def labelled(label: str, texts: Iterable[str], style: Style) -> list[str]:
    """Return each text wrapped beside the label, which stands on the first line only.

    Of several texts the lines that go on are set in, so that one can tell where each begins.
    """
    told = list(filter(None, texts))
    indent = " " * (_LABEL + 2)
    lines: list[str] = []
    for text in told:
        wrapped = _wrap(text, style, indent, hanging=indent + "  " * (len(told) > 1))
        if not lines:
            name = style.paint(f"{label:<{_LABEL - 2}}", "cyan")
            wrapped[0] = f"  {name}  {wrapped[0].lstrip()}"
        lines += wrapped
    return lines


def _wrap(text: str, style: Style, indent: str, hanging: str | None = None) -> list[str]:
    return textwrap.wrap(
        one_line(text),
        style.width,
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [indent.rstrip()]
