"""Places in source text, and changes to it.

Lines count from 1 and columns from 0, in code points, as in LibCST; ends are exclusive.
Reports and protocols convert at their own edge.
"""

from __future__ import annotations

from costdb.records import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of source text."""

    start_line: int
    start_column: int
    end_line: int
    end_column: int

    @property
    def last_line(self) -> int:
        """The last line of which this holds some text."""
        ends_above = self.end_column == 0 and self.end_line > self.start_line
        return self.end_line - 1 if ends_above else self.end_line

    def contains(self, other: Span) -> bool:
        """Return whether `other` lies within this span."""
        return (self.start_line, self.start_column) <= (
            other.start_line,
            other.start_column,
        ) and (other.end_line, other.end_column) <= (self.end_line, self.end_column)


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the text of a span. An empty span inserts."""

    span: Span
    replacement: str


class SourceProblem(ValueError):
    """Something wrong in a scanned file, with its place; shown as one line, exit code 2."""

    def __init__(self, path: str, line: int, column: int, message: str) -> None:
        super().__init__(f"{path}:{line}:{column + 1}: {message}")
        self.path = path
        self.line = line
        self.column = column
        self.message = message


class ParseProblem(SourceProblem):
    """The file is not Python, or not yet: an editor sees this with every half-typed line."""
