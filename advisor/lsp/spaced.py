"""A text with room between its functions, so that most of what is typed moves nothing else.

What is known of a program's functions is known of their lines. A new line in one of them would
move all below it; so programs are read with blank lines in front of functions, as many as bring
each to the start of a block of lines. What is found is told where it stands in the real text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from advisor.edits import split_lines
from advisor.frontend.syntax.outline import TopLevel, top_level

BLOCK = 32
"""Lines. A function that grows beyond a multiple of it moves those below, by as many."""


@dataclass(frozen=True, slots=True)
class Spaced:
    """A text with blank lines between its functions.

    Attributes
    ----------
    source : str
    lines : tuple of int
        For each of its lines, the line of the real text; blank ones stand for the next.
    """

    source: str
    lines: tuple[int, ...]

    def in_file(self, line: int) -> int:
        """Return the line of the real text for a line of this one, from 1."""
        return self.lines[line - 1] if 1 <= line <= len(self.lines) else line


def spaced(source: str, block: int = BLOCK) -> Spaced | None:
    """Return a text with room between its functions; None when it does not parse."""
    statements = top_level(source)
    if statements is None:
        return None
    lines = split_lines(source)
    # a line feed behind a carriage return would be no line end of its own
    newline = "\r\n" if "\r" in source else "\n"
    texts, numbers = list[str](), list[int]()
    begin = 1
    for first in (*_first_lines(statements, lines), len(lines) + 1):
        texts += lines[begin - 1 : first - 1]
        numbers += range(begin, first)
        if first <= len(lines):
            room = -len(texts) % block
            texts += [newline] * room
            numbers += [first] * room
        begin = first
    return Spaced("".join(texts), tuple(numbers))


def _first_lines(statements: Sequence[TopLevel], lines: Sequence[str]) -> Iterator[int]:
    """Yield where long statements begin, functions mostly, with the comments above them."""
    end = 0
    for one in statements:
        if one.function or one.is_compound:
            first = one.first
            while first - 1 > end and lines[first - 2].lstrip().startswith("#"):
                first -= 1
            if first > end:
                yield first
        end = one.last
