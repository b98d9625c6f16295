"""The report for a person: a block for each of a few findings, one table of many."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from os.path import commonpath
from shlex import quote

from advisor.files import is_file_name
from advisor.finding import Applicability, Finding, Remark, Verdict
from advisor.report.model import (
    LOOKS,
    Report,
    coverage_lines,
    figures,
    fix_mark,
    fix_option,
    headline,
    ordered,
    rows,
    sentence,
)
from advisor.report.style import (
    Style,
    display_width,
    duration,
    json_text,
    one_line,
    printable,
    ratio,
    shortened,
    table,
    wrapped,
)
from advisor.source import Span, file_and_cell, split_lines
from costdb.records import grouped

# One line for each finding, for those who jump from line to line; the last ones are coverage.


def render_concise(report: Report, style: Style) -> str:
    """Return ``path:line:col: code [*] class speed-up (interval), ...: what to do`` lines."""
    lines = [_finding(finding, style) for finding in report.findings]
    if style.closing:
        lines += [remark_line(remark, style) for remark in report.remarks]
        lines += coverage_lines(report)
    return "".join(f"{line}\n" for line in lines)


def _finding(finding: Finding, style: Style) -> str:
    span = finding.span
    verdict, _, rest = headline(finding).partition(" ")
    parts = [
        f"{one_line(finding.path)}:{span.start_line}:{span.start_column + 1}:",
        style.paint(finding.code, "bold"),
        fix_mark(finding),
        style.paint(verdict, *LOOKS[finding.verdict]),
        rest,
    ]
    return " ".join(filter(None, parts))


def remark_line(remark: Remark, style: Style) -> str:
    """Return a remark as one line, without its end."""
    place = f"{one_line(remark.path)}:{remark.span.start_line}:{remark.span.start_column + 1}:"
    return f"{place} {style.paint('note:', 'dim')} {one_line(remark.message)}"


# The line of the source that a finding is about, numbered and marked, with a short reason.

_TAB = 8
_LEAST = 32
"""Columns behind the marker that are worth beginning the reason there."""


def excerpt(source: str, span: Span, style: Style, reason: str = "") -> list[str]:
    """Return the first line of a statement, and a marker under it with the reason behind.

    Empty when the span does not lie in `source`.
    """
    lines = split_lines(source)
    if not 1 <= span.start_line <= span.end_line <= len(lines):
        return []
    last, number = span.last_line, f"{span.start_line:>5}"
    bar = style.paint("|", "cyan")
    room = style.width - len(number) - 3
    line = lines[span.start_line - 1]
    text, before = _expand(line), display_width(_expand(line[: span.start_column]))
    end = span.end_column if span.end_line == span.start_line else len(line)
    marked = display_width(_expand(line[:end])) - before
    if before + marked > room:
        text, before = _crop(text, before, room), min(before, _lead(before, room))
    else:
        text = _crop(text, 0, room)
    marks = "^" * max(1, min(marked, room - before))
    # one clause: all of it is what `advise explain` shows
    clause = re.split(r"[;:.] ", reason, maxsplit=1)[0].rstrip(".")
    said = f"(to line {last}) {clause}" if last > span.start_line else clause
    marker = f"{'':>5} {bar} {' ' * before}{style.paint(marks, 'yellow')}"
    behind = room - before - len(marks) - 1
    if behind >= min(_LEAST, display_width(said)):
        return _lines(number, bar, text, f"{marker} {shortened(said, behind)}")
    below = f"{'':>5} {bar} {shortened(said, room)}"
    return [*_lines(number, bar, text, marker), below]


def _lines(number: str, bar: str, text: str, marker: str) -> list[str]:
    return [f"{number} {bar} {text}".rstrip(), marker.rstrip()]


def _expand(line: str) -> str:
    return printable(line.rstrip("\r\n").expandtabs(_TAB))


def _lead(column: int, room: int) -> int:
    """Return at which column of the window a place deep in a long line is shown."""
    return min(column, room // 4)


def _crop(text: str, column: int, room: int) -> str:
    """Return the part of `text` around `column` that fits, with dots where it was cut."""
    if display_width(text) <= room:
        return text
    start = column - _lead(column, room)
    shown = text[start : start + room]
    if start:
        shown = "..." + shown[3:]
    if start + room < len(text):
        shown = shown[:-3] + "..."
    return shown


MOST_LINES = 12
"""Of one finding."""
_HEADING = 3
"""Lines that each begins with: where, what, and an empty one."""

_MOST_BLOCKS = 3
_LABEL = 9
HEADS = ("gain", "could be", "saves", "share", "where", "what", "fix")
_WHAT = HEADS.index("what")
_LEAST_WHAT, _MOST_WHERE = 24, 30


def render(report: Report, style: Style) -> str:
    """Return every finding, then the remarks, then what was analysed and what was not."""
    findings, sources = report.findings, report.sources
    if len(findings) > _MOST_BLOCKS:
        parts = ["\n".join(filter(None, (_table(findings, style), _priced(findings, style))))]
    else:
        parts = ["\n".join(block(one, sources.get(one.path), style)) for one in findings]
    if not style.closing:
        return "\n\n".join(parts) + "\n" if findings else ""
    if report.remarks:
        notes = [remark_line(remark, Style()) for remark in report.remarks]
        parts.append("\n".join(line for n in notes for line in wrapped(n, style, "", "    ")))
    parts.append("\n".join(_closing(report, style)))
    return "\n\n".join(parts) + "\n"


def block(finding: Finding, source: str | None, style: Style) -> list[str]:
    """Return at most `MOST_LINES` about a finding; with its statement where there is a source."""
    shown = [] if source is None else excerpt(source, finding.span, style, finding.reason)
    told = rows(finding)
    what = shortened(sentence(finding.title), style.width - 2)
    # whose time it is, and under which conditions an edit holds, is never left out
    unsafe = finding.fix is not None and finding.fix.applicability is Applicability.UNSAFE
    kept = ("time", "fix") if unsafe else ("time",)
    whole: dict[str, list[str]] = {}
    more, room = 0, MOST_LINES - _HEADING - len(told)
    for name in kept:
        whole[name] = wrapped(told[name], style, " " * _LABEL, most=1 + room - more)
        more += len(whole[name]) - 1
    if shown and more + 3 > room and told.pop("build", ""):
        # `explain` says it, and the rule's page
        room += 1
    # `explain` has the statement, and the reason, too
    shown = shown if not more else shown[:2] if more + 3 <= room else []
    lines = [_head(finding, style), f"  {what}", *([""] * bool(shown)), *shown, ""]
    spare = MOST_LINES - len(lines) - len(told) - more
    for name, text in told.items():
        # what does not fit goes on where there is a line left, and else is left to `explain`
        most = 1 + max(0, spare) * (name != "fix")
        shown = whole.get(name) or wrapped(text, style, " " * _LABEL, most=most)
        spare -= 0 if name in whole else len(shown) - 1
        shown[0] = f"  {style.paint(f'{name:<{_LABEL - 2}}', 'cyan')}{shown[0][_LABEL:]}"
        lines += shown
    return lines


def _head(finding: Finding, style: Style) -> str:
    """Return place, rule and kernel, and the class to the right."""
    place = f"{one_line(finding.path)}:{finding.span.start_line}"
    verdict = finding.verdict.upper()
    room = style.width - display_width(place) - len(verdict) - 4
    rule = shortened(f"{finding.code} {finding.name} in {finding.kernel}", max(room, 30))
    gap = " " * max(room - display_width(rule), 0)
    return (
        f"{style.paint(place, 'bold')}  {rule}{gap}"
        f"  {style.paint(verdict, *LOOKS[finding.verdict])}"
    )


def _table(findings: Sequence[Finding], style: Style) -> str:
    """Return a line for each finding, by class, the most time saved first."""
    folder = commonpath([one_line(one.path).rpartition("/")[0] for one in findings])
    of_class = ordered(findings)
    cells = [_cells(one, len(folder) + 1 if folder else 0) for one in of_class]
    widths = [max(map(display_width, column)) for column in zip(HEADS, *cells, strict=True)]
    room = max(style.width - sum(widths) + widths[_WHAT] - 2 * len(widths), _LEAST_WHAT)
    for row in cells:
        row[_WHAT] = shortened(row[_WHAT], room)
    lines = table(HEADS, cells, len(HEADS), style).splitlines()
    shown = lines[:1]
    for place, one in enumerate(of_class):
        if not place or of_class[place - 1].verdict is not one.verdict:
            shown.append(style.paint(one.verdict.upper(), *LOOKS[one.verdict]))
        shown.append(lines[place + 1])
        indent = " " * (sum(widths[:_WHAT]) + 2 * _WHAT)
        shown += [f"{indent}or {shortened(one_line(also), room - 3)}" for also in one.others]
    return "\n".join(shown)


def _priced(findings: Sequence[Finding], style: Style) -> str:
    """Return whose times a table holds; which rows, where they are not all of one."""
    told = Counter(one_line(one.priced_as) for one in findings if one.priced_as)
    each = [f"{whose} ({count})" if len(told) > 1 else whose for whose, count in told.items()]
    return "\n".join(wrapped(f"times: {'; '.join(each)}", style, "", "  ")) if each else ""


def _cells(finding: Finding, folder: int) -> list[str]:
    place = f"{one_line(finding.path)[folder:]}:{finding.span.start_line}"
    where = f"{place} {one_line(finding.kernel)}"
    where = where if display_width(where) <= _MOST_WHERE else place
    gain, *others = figures(finding)
    return [gain or "?", *others, where, one_line(finding.title), fix_option(finding)]


def _closing(report: Report, style: Style) -> list[str]:
    """Return coverage, what all gains together save, and where there is more."""
    *others, last = coverage_lines(report)
    lines = [line for text in others for line in wrapped(text, style, "", "  ")]
    findings = report.findings
    lines += wrapped(f"{last}{_together(findings)}", style, "", "  ")
    first = next((one for one in findings if is_file_name(one.path)), None)
    if first is not None:
        path = quote(one_line(first.path))
        explain = f"More: advise explain {path}:{first.span.start_line}"
        verify = f"Time it here: advise verify {path}"
        fits = display_width(explain) + display_width(verify) + 3 <= style.width
        runs = file_and_cell(first.path)[1] is None
        lines += ([f"{explain}   {verify}"] if fits else [explain, verify]) if runs else [explain]
    return lines


def _together(findings: Sequence[Finding]) -> str:
    """Return what the best gain of each kernel saves; parts that depend on others are not added."""
    best: dict[tuple[str, str], tuple[float, float]] = {}
    gains = [one for one in findings if one.verdict is Verdict.GAIN]
    for one, times in ((one, one.prediction) for one in gains):
        if times is None:
            continue
        known = (times.before_s - times.after_s, times.before_s)
        key = one.path, one.kernel
        best[key] = max(known, best.get(key, known))
    if len(best) < 2 or len({one.priced_as for one in gains}) > 1:
        return ""
    saved, before = (sum(values) for values in zip(*best.values(), strict=True))
    return (
        f" The best gain of each kernel applied, each called once:"
        f" {duration(before)} -> {duration(before - saved)}."
    )


SCHEMA_VERSION = 1


def render_statistics(report: Report, *, as_json: bool) -> str:
    """Return one line, or one JSON object, for each rule that fired; the most frequent first."""
    by_code = grouped((finding.code, finding) for finding in report.findings)
    ordered = sorted(by_code.items(), key=lambda item: (-len(item[1]), item[0]))
    rows = [_row(code, findings) for code, findings in ordered]
    if as_json:
        told = {"machine": report.machine, "statistics": rows}
        return json_text({"schema_version": SCHEMA_VERSION, **told})
    width = max((len(str(row["count"])) for row in rows), default=0)
    return "".join(
        f"{row['count']:>{width}}  {row['code']}  {row['name']}: "
        f"{row['fixable']} fixable, {_gain(row)}\n"
        for row in rows
    )


def _gain(row: dict[str, str | int | float]) -> str:
    if not row["best_speedup"]:
        return "gain depends on sizes that nothing binds"
    return f"saves {duration(float(row['saved_s']))}, best {ratio(float(row['best_speedup']))}"


def _row(code: str, findings: list[Finding]) -> dict[str, str | int | float]:
    return {
        "code": code,
        "name": findings[0].name,
        "count": len(findings),
        "fixable": sum(bool(fix_mark(finding)) for finding in findings),
        "saved_s": sum(p.before_s - p.after_s for f in findings if (p := f.prediction)),
        "best_speedup": max(finding.speedup for finding in findings),
    }
