"""Columns as the editor counts them and as Python does.

Findings count code points, as LibCST does. An editor counts the code units of an encoding that
both sides agree on at the start; without an agreement that is UTF-16, where an emoji is two.
"""

from __future__ import annotations

from enum import StrEnum


class Encoding(StrEnum):
    """What one column is: the code unit of an encoding."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"


_LAST_OF_TWO_BYTES = "\u07ff"
_LAST_OF_ONE_UNIT = "\uffff"


def count_units(text: str, encoding: Encoding) -> int:
    """Return how many columns `text` takes."""
    if encoding is Encoding.UTF32 or text.isascii():
        return len(text)
    if encoding is Encoding.UTF16:
        return len(text) + sum(char > _LAST_OF_ONE_UNIT for char in text)
    return sum(_bytes_of(char) for char in text)


def code_points(line: str, column: int, encoding: Encoding) -> int:
    """Return how many code points of `line` stand before a column of the editor.

    A column beyond the end means the end; one within a character means the start of it.
    """
    if encoding is Encoding.UTF32 or line.isascii():
        return max(0, min(column, len(line)))
    passed = 0
    for index, char in enumerate(line):
        passed += _bytes_of(char) if encoding is Encoding.UTF8 else 1 + (char > _LAST_OF_ONE_UNIT)
        if passed > column:
            return index
    return len(line)


def _bytes_of(char: str) -> int:
    if char < "\x80":
        return 1
    if char <= _LAST_OF_TWO_BYTES:
        return 2
    return 3 if char <= _LAST_OF_ONE_UNIT else 4
