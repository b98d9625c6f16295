"""What the server must say of a text: what a fresh engine says of it in this process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from advisor.engine import Options, check_source
from advisor.finding import Finding, Remark
from advisor.report.rows import headline
from advisor.source import SourceProblem, Span
from tests.lsp.fuzz.editor import Editor, Wrong, lines_of

MACHINE = "sp2"
LEAST = 1.01
PLAN = "best plan"


@dataclass
class Known:
    """What the engine says of a text, asked in this process."""

    text: str
    findings: tuple[Finding, ...]
    problem: bool
    remarks: tuple[Remark, ...] = ()


class Reference:
    """What answers must be; remembers the last text that could be read."""

    def __init__(self) -> None:
        self.options = Options(MACHINE, {}, (), (), LEAST)
        self.memory: dict[str, Known] = {}
        self.good: Known | None = None

    def knows(self, text: str) -> Known:
        if text not in self.memory:
            try:
                found = check_source("/kernels/typed.py", text, self.options)
                self.memory[text] = Known(text, found.findings, False, found.remarks)
            except SourceProblem:
                self.memory[text] = Known(text, (), True)
        return self.memory[text]

    def accepts(self, editor: Editor, items: list[dict[str, Any]], *, first: bool = False) -> bool:
        """Return whether an answer may be about the editor's text."""
        good = self.good
        try:
            self.check(editor, items, first=first)
        except Wrong:
            self.good = good
            return False
        return True

    def lacks(self, editor: Editor, items: list[dict[str, Any]]) -> bool:
        """Return whether a first answer about the editor's text lacks a plan."""
        shown = {item["message"] for item in items}
        plans = [one.message for one in self.knows(editor.text).remarks if PLAN in one.message]
        return any(plan not in shown for plan in plans)

    def check(self, editor: Editor, items: list[dict[str, Any]], *, first: bool = False) -> bool:
        """Check an answer about the editor's text; return whether the text could be read.

        A `first` answer may lack plans.
        """
        known = self.knows(editor.text)
        found = [item for item in items if "code" in item]
        for item in items:
            editor.covered(item["range"]["start"], item["range"]["end"])
        shown = sorted(
            (item["code"], item["message"], editor.covered(*_ends(item)), *_key(item))
            for item in found
        )
        if not known.problem:
            self.good = known
            editor.told = ()
            wanted = sorted(_expected(editor, finding) for finding in known.findings)
            if shown != wanted:
                raise Wrong(f"expected {wanted}\ngot {shown}\nfor {editor.text!r}")
            self._check_remarks(editor, known, items, first)
            return True
        now = lines_of(editor.text)
        for item in found:
            first, last = (end["line"] for end in _ends(item))
            lines, key = now[first : last + 1], (item["code"], item["message"])
            if not any(lines in before.get(key, ()) for before in self._before(editor)):
                before = {} if self.good is None else _lines_of_findings(self.good)
                raise Wrong(f"carried {item} to {lines}\nfor {editor.text!r}\nfrom {before}")
        return False

    def _before(self, editor: Editor) -> Iterator[dict[tuple[str, str], list[list[str]]]]:
        """Yield the lines of findings of the texts that the server may have read last.

        It begins with every key, so it may have read one that nobody asked about.
        """
        if self.good is not None:
            yield _lines_of_findings(self.good)
        for text in reversed(editor.told):
            known = self.knows(text)
            if not known.problem:
                yield _lines_of_findings(known)

    def _check_remarks(
        self, editor: Editor, known: Known, items: list[dict[str, Any]], first: bool
    ) -> None:
        shown = {
            (item["message"], editor.covered(*_ends(item)), *_key(item))
            for item in items
            if "code" not in item
        }
        wanted = {(remark.message, *_place_of(editor, remark.span)) for remark in known.remarks}
        missing = {one for one in wanted - shown if not (first and PLAN in one[0])}
        if missing or shown - wanted:
            raise Wrong(f"expected {wanted}\ngot {shown}\nfor {editor.text!r}")


def _lines_of_findings(known: Known) -> dict[tuple[str, str], list[list[str]]]:
    """The lines that each finding covers; a carried one must still be on the same."""
    lines = lines_of(known.text)
    covered: dict[tuple[str, str], list[list[str]]] = {}
    for finding in known.findings:
        span = finding.span
        here = lines[span.start_line - 1 : span.end_line]
        covered.setdefault((finding.code, headline(finding)), []).append(here)
    return covered


def _ends(item: dict[str, Any]) -> tuple[dict[str, int], dict[str, int]]:
    return item["range"]["start"], item["range"]["end"]


def _key(item: dict[str, Any]) -> tuple[int, int]:
    start = item["range"]["start"]
    return start["line"], start["character"]


def _expected(editor: Editor, finding: Finding) -> tuple[Any, ...]:
    return finding.code, headline(finding), *_place_of(editor, finding.span)


def _place_of(editor: Editor, span: Span) -> tuple[str, int, int]:
    """What a span covers, and where it begins as the editor counts."""
    lines = lines_of(editor.text)
    before = lines[span.start_line - 1][: span.start_column]
    if span.start_line == span.end_line:
        covered = lines[span.start_line - 1][span.start_column : span.end_column]
    else:
        covered = "\n".join(
            [
                lines[span.start_line - 1][span.start_column :],
                *lines[span.start_line : span.end_line - 1],
                lines[span.end_line - 1][: span.end_column],
            ]
        )
    column = len(before.encode(editor.codec)) // editor.width
    return covered, span.start_line - 1, column
