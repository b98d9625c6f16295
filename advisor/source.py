"""Places in source text, and changes to it.

Lines count from 1 and columns from 0, in code points, as in LibCST; ends are exclusive.
Reports and protocols convert at their own edge.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from costdb.records import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of source text."""

    start_line: int
    start_column: int
    end_line: int
    end_column: int

    @property
    def start(self) -> tuple[int, int]:
        """Line and column where it begins."""
        return self.start_line, self.start_column

    @property
    def end(self) -> tuple[int, int]:
        """Line and column behind it."""
        return self.end_line, self.end_column

    @property
    def last_line(self) -> int:
        """The last line of which this holds some text."""
        ends_above = self.end_column == 0 and self.end_line > self.start_line
        return self.end_line - 1 if ends_above else self.end_line

    def contains(self, other: Span) -> bool:
        """Return whether `other` lies within this span."""
        return self.start <= other.start and other.end <= self.end


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


class NotebookProblem(SourceProblem):
    """A notebook that cannot be read; the place is one of its JSON."""


class NotPython(NotebookProblem):
    """A notebook in another language."""


class CellsLost(ValueError):
    """An edited text from which the cells of a notebook cannot be told any more; one line."""


NOTEBOOK = ".ipynb"


def file_and_cell(path: str) -> tuple[str, int | None]:
    """Return file and cell of ``nb.ipynb:cell 3``; no cell of any other path."""
    file, _, number = path.rpartition(":cell ")
    return (file, int(number)) if file.endswith(NOTEBOOK) and number.isdecimal() else (path, None)


# The line ends of Python and LibCST. str.splitlines would also cut at form feeds and U+2028.
_LINE_END = re.compile(r"\r\n|\n|\r")
_BARE_LINE_FEED = re.compile(r"(?<!\r)\n")


class EditError(ValueError):
    """Edits that cannot be carried out together, or that lie outside the text."""


def split_lines(source: str) -> list[str]:
    """Return the lines of `source` with their ends; joined they give `source` again.

    A text that ends in a line end has an empty last line, where an edit may still insert.
    """
    starts = [0, *(match.end() for match in _LINE_END.finditer(source))]
    return [source[a:b] for a, b in zip(starts, [*starts[1:], len(source)], strict=True)]


def newline_of(source: str) -> str:
    r"""Return the line end that `source` uses most, ``"\n"`` when it has none."""
    ends = _LINE_END.findall(source)
    return max(("\n", "\r\n", "\r"), key=ends.count)


def conflicting(one: Edit, other: Edit) -> bool:
    """Return whether the result would depend on which of two edits is applied first."""
    a, b = one.span, other.span
    if a.start == a.end and b.start == b.end:
        return a.start == b.start
    return a.start < b.end and b.start < a.end


def apply_edits(source: str, edits: Iterable[Edit]) -> str:
    """Return `source` with every edit carried out.

    Spans refer to `source` as it is given; columns count code points. Line feeds in a
    replacement become the line end that `source` uses.

    Raises
    ------
    EditError
        When two edits overlap, or a span does not lie within the text.
    """
    lines = split_lines(source)
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    newline = newline_of(source)

    ordered = sorted(edits, key=lambda edit: edit.span)
    for one, other in pairwise(ordered):
        if conflicting(one, other):
            span = other.span
            raise EditError(
                f"two edits overlap at line {span.start_line}, column {span.start_column + 1}"
            )

    pieces: list[str] = []
    done = 0
    for edit in ordered:
        start = _offset(lines, offsets, *edit.span.start)
        end = _offset(lines, offsets, *edit.span.end)
        if end < start:
            raise EditError(f"an edit ends before it starts, at line {edit.span.start_line}")
        pieces += [source[done:start], _BARE_LINE_FEED.sub(newline, edit.replacement)]
        done = end
    pieces.append(source[done:])
    return "".join(pieces)


def unified_diff(path: str, before: str, after: str) -> str:
    """Return the change as ``diff -u`` prints it; empty when there is none."""
    if before == after:
        return ""
    from difflib import unified_diff as diff_lines

    # As patch and git do it: only a line feed ends a line of a diff.
    old, new = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (before, after))
    pieces = []
    for line in diff_lines(old, new, fromfile=path, tofile=path):
        pieces.append(line)
        if not line.endswith("\n"):
            pieces.append("\n\\ No newline at end of file\n")
    return "".join(pieces)


def _offset(lines: Sequence[str], offsets: Sequence[int], line: int, column: int) -> int:
    if not 1 <= line <= len(lines):
        raise EditError(f"an edit names line {line} of a text of {len(lines)} lines")
    text = lines[line - 1]
    if not 0 <= column <= len(text.rstrip("\r\n")):
        raise EditError(f"an edit names column {column + 1}, beyond the end of line {line}")
    return offsets[line - 1] + column


def imports_of(tree: ast.Module) -> dict[str, str]:
    """Return modules and functions that a file imports, by their names in it."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found |= {one.asname: one.name for one in names if one.asname}
                roots = (one.name.partition(".")[0] for one in names if not one.asname)
                found |= {root: root for root in roots}
            case ast.ImportFrom(module=str(module), names=names):
                found |= {one.asname or one.name: f"{module}.{one.name}" for one in names}
    return found
