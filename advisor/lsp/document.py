"""The text of an open file, kept in step with the editor.

The library's own documents are not used: they cut lines wherever ``str.splitlines`` does, at
form feeds and U+2028 too, where neither editors nor Python see the end of a line."""

from __future__ import annotations

from lsprotocol.types import (
    Position,
    PositionEncodingKind,
    Range,
    TextDocumentContentChangeEvent,
    TextDocumentContentChangePartial,
)
from pygls.workspace import PositionCodec

from advisor.source import Span, split_lines
from costdb.records import dataclass, field

Encoding = PositionEncodingKind | str
"""What one column is: the code unit of an encoding."""


def count_units(text: str, encoding: Encoding) -> int:
    """Return how many columns `text` takes."""
    return len(text) if text.isascii() else PositionCodec(encoding).client_num_units(text)


def code_points(line: str, column: int, encoding: Encoding) -> int:
    """Return how many code points of `line` stand before a column of the editor.

    A column beyond the end means the end; one within a character means the start of it.
    """
    if line.isascii():
        return max(0, min(column, len(line)))
    passed, codec = 0, PositionCodec(encoding)
    for index, char in enumerate(line):
        passed += codec.client_num_units(char)
        if passed > column:
            return index
    return len(line)


@dataclass(slots=True)
class Document:
    """An open file.

    Attributes
    ----------
    uri : str
    encoding : Encoding
        Of the editor's columns.
    version : int
        As the editor numbers them.
    text : str
    lines : list of str
        With their ends.
    """

    uri: str
    encoding: Encoding
    version: int
    text: str
    lines: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.text = _joined_surrogates(self.text)
        self.lines = split_lines(self.text)

    def apply(self, change: TextDocumentContentChangeEvent) -> None:
        """Carry out a change, of a part or of all of the text."""
        text = change.text
        if isinstance(change, TextDocumentContentChangePartial):
            start, end = self._offset(change.range.start), self._offset(change.range.end)
            text = self.text[:start] + text + self.text[max(start, end) :]
        self.text = _joined_surrogates(text)
        self.lines = split_lines(self.text)

    def position(self, line: int, column: int) -> Position:
        """Return a place in the editor's terms.

        Parameters
        ----------
        line : int
            From 1. One behind the text means its end.
        column : int
            Code points from 0. One behind the line means its end.
        """
        if line > len(self.lines):
            line, column = len(self.lines), len(self.lines[-1])
        before = self._content(line - 1)[:column]
        return Position(line - 1, count_units(before, self.encoding))

    def range_of(self, span: Span) -> Range:
        """Return a span in the editor's terms."""
        return Range(
            self.position(span.start_line, span.start_column),
            self.position(span.end_line, span.end_column),
        )

    def place(self, position: Position) -> tuple[int, int]:
        """Return a place of the editor as line from 1 and code points from 0, within the text."""
        if position.line >= len(self.lines):
            return len(self.lines), len(self.lines[-1])
        content = self._content(position.line)
        return position.line + 1, code_points(content, position.character, self.encoding)

    def end_of_line(self, line: int) -> Position:
        """Return the end of a line, counted from 1."""
        return self.position(line, len(self.lines[line - 1]))

    def _content(self, index: int) -> str:
        return self.lines[index].rstrip("\r\n")

    def _offset(self, position: Position) -> int:
        line, column = self.place(position)
        return sum(map(len, self.lines[: line - 1])) + column


def _joined_surrogates(text: str) -> str:
    """Return `text` with halves of a character put together, which JSON may bring one by one."""
    if text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
