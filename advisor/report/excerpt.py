"""The line of the source that a finding is about, numbered and marked, with a short reason."""

from __future__ import annotations

import re

from advisor.edits import split_lines
from advisor.report.style import Style, display_width, printable, shortened
from advisor.source import Span

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
