"""Colour, width, and text that is safe to show on a terminal."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import IO

_ESCAPES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
# A scanned file may hold escape sequences; a report must not replay them.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_DEFAULT_WIDTH = 100
_NARROWEST = 40
_WIDEST = 120
_LABEL = 11


@dataclass(frozen=True, slots=True)
class Style:
    """How a text report may look."""

    color: bool = False
    width: int = _DEFAULT_WIDTH

    def paint(self, text: str, *looks: str) -> str:
        """Return `text` in the named looks, or as it is where there are no colours."""
        if not self.color or not text:
            return text
        return f"\x1b[{';'.join(_ESCAPES[look] for look in looks)}m{text}\x1b[0m"


def detect_style(stream: IO[str] | None, environment: Mapping[str, str]) -> Style:
    """Choose colours and width for `stream`; None is one that was closed before the start.

    ``NO_COLOR`` (not empty) forbids colours, ``FORCE_COLOR`` asks for them, else a terminal
    that is not dumb has them. Text that goes to a file or a pipe has a fixed width, so that
    it does not depend on the window it was made in, unless ``COLUMNS`` asks for another.
    """
    terminal = stream is not None and stream.isatty()
    if environment.get("NO_COLOR"):
        color = False
    elif environment.get("FORCE_COLOR"):
        color = True
    else:
        color = terminal and environment.get("TERM") != "dumb"
    width = _DEFAULT_WIDTH
    if terminal:
        from shutil import get_terminal_size

        width = get_terminal_size((_DEFAULT_WIDTH, 24)).columns
    elif (asked := environment.get("COLUMNS", "")).isdecimal() and int(asked):
        width = int(asked)
    return Style(color, min(max(width, _NARROWEST), _WIDEST))


def printable(text: str) -> str:
    """Return `text` with control and direction-changing characters made visible."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str) -> str:
    """Return `text` printable and on one line."""
    return printable(" ".join(text.split()))


def display_width(text: str) -> int:
    """Return how many terminal columns `text` takes (East Asian wide characters take two)."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0
        if unicodedata.combining(character)
        else 2
        if unicodedata.east_asian_width(character) in "WF"
        else 1
        for character in text
    )


def wrapped(
    text: str, style: Style, indent: str, hanging: str | None = None, most: int | None = None
) -> list[str]:
    """Return `text` in lines as wide as the style has them, with dots where they are too many."""
    return textwrap.wrap(
        one_line(text),
        style.width,
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_long_words=most is not None,
        break_on_hyphens=False,
        max_lines=most,
        placeholder=" ...",
    ) or [indent.rstrip()]


def shortened(text: str, width: int) -> str:
    """Return what fits of a text, cut behind a word, with dots where it was cut."""
    return wrapped(text, Style(width=max(width, 4)), "", most=1)[0]


def labelled(label: str, texts: Iterable[str], style: Style) -> list[str]:
    """Return each text wrapped beside the label, which stands on the first line only.

    Of several texts the lines that go on are set in, so that one can tell where each begins.
    """
    told = list(filter(None, texts))
    indent = " " * (_LABEL + 2)
    lines: list[str] = []
    for text in told:
        shown = wrapped(text, style, indent, hanging=indent + "  " * (len(told) > 1))
        if not lines:
            name = style.paint(f"{label:<{_LABEL - 2}}", "cyan")
            shown[0] = f"  {name}  {shown[0].lstrip()}"
        lines += shown
    return lines
