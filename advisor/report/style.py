"""Colour, width, and text that is safe to show on a terminal."""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any

from costdb.records import dataclass


def json_text(document: Any, *, ascii_only: bool = True) -> str:
    """Return a document as JSON, indented, with a line end; it has no NaN and nothing infinite."""
    return json.dumps(document, indent=2, ensure_ascii=ascii_only, allow_nan=False) + "\n"


# Times and ratios as people read them: three significant digits in the unit that fits.

_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))
_SIZES = dict(_UNITS)


def significant(value: float) -> str:
    """Return `value` with three significant digits, without an exponent where it can be read.

    >>> significant(3.1416), significant(31.416), significant(31416.0)
    ('3.14', '31.4', '31416')
    """
    if not math.isfinite(value):
        return "unbounded" if value > 0 else "unknown"
    if value == 0:
        return "0"
    # read off the text: the rounded value may be larger than any number
    size = int(f"{value:.2e}".partition("e")[2])
    if not -4 < size < 9:
        return f"{value:.2e}"
    return f"{value:.{max(0, 2 - size)}f}"


def unit_of(seconds: float) -> str:
    """Return the largest unit in which `seconds` shows at least one."""
    if not math.isfinite(seconds) or seconds == 0:
        return "s"
    rounded = abs(float(f"{seconds:.2e}"))
    # A hair of slack: 1e-3 / 1e-3 need not be 1 in binary.
    return next((unit for unit, size in _UNITS if rounded >= size * (1 - 1e-9)), "ns")


def duration(seconds: float) -> str:
    """Return a time with its unit, such as ``3.12 ms``."""
    unit = unit_of(seconds)
    return f"{significant(seconds / _SIZES[unit])} {unit}"


def change(before: float, after: float) -> str:
    """Return two times, such as ``25.3 -> 20.1 ms``; in units of their own where these differ."""
    first, last = duration(before), duration(after)
    unit = last.partition(" ")[2]
    first = "0" if before == 0 else first.removesuffix(f" {unit}")
    return f"{first} -> {'0' if after == 0 else last}"


@dataclass(frozen=True, slots=True)
class Column:
    """One unit and one number of decimals for all the times of a table."""

    unit: str
    decimals: int

    def number(self, seconds: float) -> str:
        """Return the number of units in `seconds`; one too small to show as ``<0.01``."""
        value = seconds / _SIZES[self.unit]
        if not math.isfinite(value):
            return significant(value)
        text = f"{value:.{self.decimals}f}"
        if value > 0 and float(text) == 0:
            return f"<{10.0**-self.decimals:.{self.decimals}f}"
        return text


def column_for(*seconds: float) -> Column:
    """Return a column that shows the largest time well and the smallest with three digits.

    Times far apart cost the small ones digits: there are at most four decimals.
    """
    finite = [time for time in seconds if math.isfinite(time) and time > 0]
    if not finite:
        return Column("s", 2)
    unit = unit_of(max(finite))
    smallest = float(f"{min(finite) / _SIZES[unit]:.2e}")
    return Column(unit, min(max(2 - math.floor(math.log10(smallest)), 0), 4))


def ratio(value: float) -> str:
    """Return a speed-up such as ``1.25x``."""
    if not math.isfinite(value):
        return significant(value)
    if value >= 1e9:
        return f"{significant(value)}x"
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f}x"


def percent(share: float) -> str:
    """Return a share such as ``20 %``, and a small one as ``0.04 %``."""
    return f"{100 * share:.0f} %" if share >= 0.0095 or share <= 0 else f"{100 * share:.1g} %"


_ESCAPES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
# A scanned file may hold escape sequences; a report must not replay them.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_DEFAULT_WIDTH = 100
_NARROWEST = 40
_WIDEST = 120
_LABEL = 11


@dataclass(frozen=True, slots=True)
class Style:
    """How a text report may look.

    `closing` is whether it ends with what was analysed and what was not.
    """

    color: bool = False
    width: int = _DEFAULT_WIDTH
    closing: bool = True

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
    from rich.cells import cell_len  # what Typer brings along, for other texts only

    return cell_len(text)


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


# Tables for people: columns as wide as their widest cell, numbers to the right.


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: int, style: Style) -> str:
    """Return lines with a head; the first `left` columns are text, the others numbers."""
    shown = [[one_line(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(display_width(row[column]) for row in shown) for column in range(len(heads))]
    lines = []
    for row in shown:
        cells = []
        for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
            gap = " " * (width - display_width(cell))
            cells.append(cell + gap if column < left else gap + cell)
        lines.append("  ".join(cells).rstrip())
    lines[0] = style.paint(lines[0], "dim")
    return "".join(f"{line}\n" for line in lines)
