"""The lines of the source that a finding is about, numbered and marked."""

from __future__ import annotations

from advisor.edits import split_lines
from advisor.report.places import last_line
from advisor.report.style import Style, display_width, printable
from advisor.source import Span

_MOST_LINES = 6
_TAB = 8


def excerpt(source: str, span: Span, style: Style) -> list[str]:
    """Return display lines: the statement with its line numbers, a marker under or beside it.

    One line is underlined; several have a bar beside them, and their middle is left out when
    they are many. Empty when the span does not lie in `source`.
    """
    lines = split_lines(source)
    if not 1 <= span.start_line <= span.end_line <= len(lines):
        return []
    last = last_line(span)
    numbers: list[int | None] = list(range(span.start_line, last + 1))
    if len(numbers) > _MOST_LINES:
        numbers[_MOST_LINES - 2 : -1] = [None]
    gutter = len(str(last))
    room = style.width - gutter - 5
    shown = []
    for number in numbers:
        if number is None:
            shown.append(f"  {'':>{gutter}} {style.paint('|', 'cyan')} ...")
            continue
        text = _expand(lines[number - 1])
        bar = style.paint("|" if last == span.start_line else ">", "cyan")
        shown.append(f"  {number:>{gutter}} {bar} {_crop(text, 0, room)}".rstrip())
    if last == span.start_line:
        line = lines[span.start_line - 1]
        before = display_width(_expand(line[: span.start_column]))
        end = span.end_column if span.end_line == last else len(line)
        marked = display_width(_expand(line[:end])) - before
        text = _expand(line)
        if before + marked > room:
            shown[-1] = f"  {span.start_line:>{gutter}} {bar} {_crop(text, before, room)}".rstrip()
            before = min(before, _lead(before, room))
        marks = "^" * max(1, min(marked, room - before))
        shown.append(f"  {'':>{gutter}} {bar} {' ' * before}{style.paint(marks, 'yellow')}")
    return shown


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
