"""Which analyses run when: one at a time, and never for an old text.

What an analysis found of a text that has changed since is dropped.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from difflib import SequenceMatcher
from typing import TypeVar

from lsprotocol.types import (
    Position,
    PositionEncodingKind,
    Range,
    TextDocumentContentChangeEvent,
    TextDocumentContentChangePartial,
)
from pygls.workspace import PositionCodec

from advisor import engine
from advisor.engine import Options, RankKernel
from advisor.finding import Finding, Ranked, Remark
from advisor.ir.kernel import Kernel
from advisor.source import Edit, ParseProblem, SourceProblem, Span, apply_edits, split_lines
from costdb.records import dataclass, field, replace

# --- document -------------------------------------------------------------------------------------
# The text of an open file, kept in step with the editor.
#
# The library's own documents are not used: they cut lines wherever ``str.splitlines`` does, at form
# feeds and U+2028 too, where neither editors nor Python see the end of a line.


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


# --- analyses -------------------------------------------------------------------------------------


# The engine as the language server asks it: every outcome is a value, none ends the server.


@dataclass(frozen=True, slots=True)
class Analysis:
    """What one text gave.

    Attributes
    ----------
    findings, remarks : tuple
        Unless `understood` none, or those carried over from an earlier text.
    problem : SourceProblem or None
        Why the text could not be understood.
    failure : str
        One line when no prediction is possible for any text, as without a machine.
    version : int
        Of the file; all positions are in its text.
    serial : int
        Tells answers apart, whatever the editor does with version numbers.
    """

    findings: tuple[Finding, ...] = ()
    remarks: tuple[Remark, ...] = ()
    problem: SourceProblem | None = None
    failure: str = ""
    version: int = 0
    serial: int = 0

    @property
    def understood(self) -> bool:
        """Whether the findings are about this text."""
        return self.problem is None and not self.failure

    @property
    def half_typed(self) -> bool:
        """Whether the text is no Python, which other tools tell the user."""
        return isinstance(self.problem, ParseProblem)


def analyse(path: str, source: str, options: Options, rank: RankKernel | None = None) -> Analysis:
    """Return what ``advise`` says of a file with this text."""
    from costdb.machines import MachineError

    if not options.observed and not engine.needs_reading(source, path):
        return Analysis()
    if not _is_text(source):
        return Analysis(problem=ParseProblem(path, 1, 0, "holds half of a character"))
    try:
        result = engine.check_source(path, source, options, rank)
    except SourceProblem as problem:
        return Analysis(problem=problem)
    except (MachineError, LookupError) as error:
        return Analysis(failure=str(error))
    for one in result.failures:
        _log.error("%s%s", one.trace, one.told(path))
    return Analysis(result.findings, result.remarks)


def with_details(
    path: str, source: str, options: Options, findings: Iterable[Finding]
) -> list[Finding]:
    """Return findings of a text, which may have moved since, with all that they rest on."""
    found = list(findings)
    codes = tuple(sorted({one.code for one in found}))
    full = analyse(path, source, replace(options, select=codes, plans=False)).findings
    known = {(one.fingerprint, one.prediction): one for one in full}
    # what is not there again is shown as it is: it lacks some lines
    detailed = (known.get((one.fingerprint, one.prediction), one) for one in found)
    return [replace(more, span=one.span) for more, one in zip(detailed, found, strict=True)]


def rewrite_edits(
    path: str, source: str, options: Options, finding: Finding
) -> tuple[Edit, ...] | None:
    """Return the edits of a finding's rewrite; None when the finding is not there."""
    wanted = (finding.fingerprint, finding.span)
    for found in analyse(path, source, replace(options, select=(finding.code,))).findings:
        if (found.fingerprint, found.span) == wanted and found.fix is not None:
            return found.fix.edits
    return None


def suppression_edits(
    path: str, source: str, options: Options, finding: Finding
) -> tuple[Edit, ...] | None:
    """Return the edit that adds ``# advise: ignore[CODE]`` for a finding.

    Behind its first line, or above it where that line goes on behind a backslash or within a
    string. None when neither makes the engine leave the finding out.
    """
    alone = replace(options, select=(finding.code,))

    def count(text: str) -> int | None:
        # not by fingerprint, which the comment on its line changes
        analysis = analyse(path, text, alone)
        alike = (_identity(found) == _identity(finding) for found in analysis.findings)
        return sum(alike) if analysis.understood else None

    comment, number = f"# advise: ignore[{finding.code}]", finding.span.start_line
    line = split_lines(source)[number - 1].rstrip("\r\n")
    indent, end = line[: len(line) - len(line.lstrip())], len(line.rstrip())
    behind = Edit(Span(number, end, number, len(line)), f"  {comment}")
    above = Edit(Span(number, 0, number, 0), f"{indent}{comment}\n")
    before = count(source)
    for edit in (behind, above) if before else ():
        after = count(apply_edits(source, (edit,)))
        if after is not None and before is not None and after < before:
            return (edit,)
    return None


def _identity(finding: Finding) -> tuple[str, str, str]:
    return finding.code, finding.kernel, finding.message


def _is_text(source: str) -> bool:
    """Return whether `source` can be encoded; an editor may send half of a surrogate pair."""
    return source.isascii() or not any("\ud800" <= char <= "\udfff" for char in source)


MOST_KERNELS = 400


@dataclass(slots=True)
class KernelMemo:
    """Ranks kernels as :func:`advisor.engine.rank_kernel` does, unchanged ones only once.

    A kernel is unchanged where its lines are, with their text, and where all that was read of it
    is the same: declarations elsewhere, imports, sizes, what runs showed. Only the edits of its
    findings may be out of date: they tell whether there are any, and are made anew by the engine
    when somebody wants them.
    """

    _known: dict[object, tuple[object, Ranked]] = field(default_factory=dict)

    def rank(self, path: str, kernel: Kernel, options: Options) -> Ranked:
        """Return what is to be said of a kernel.

        Raises
        ------
        SourceProblem, MachineError
            As the engine does.
        """
        from costdb.machines import load_machine

        context = kernel.context
        first, last = context.whole
        text = context.lines[first - 1 : last]
        read = replace(
            kernel,
            general=None,
            kinds=tuple,
            context=replace(context, source="", identifiers=frozenset()),
        )
        rests_on = read, text, options, load_machine(options.machine or "")
        # a function that was seen with several signatures is several kernels
        name = path, kernel.name, tuple(array.dtype for array in kernel.arrays.values())
        before, found = self._known.pop(name, (None, None))
        if found is None or before != rests_on:
            found = engine.rank_kernel(path, kernel, options)
        self._known[name] = rests_on, found
        if len(self._known) > MOST_KERNELS:
            del self._known[next(iter(self._known))]
        return found


Spanned = TypeVar("Spanned", Finding, Remark)


def carried(
    items: Iterable[Spanned], before: Sequence[str], now: Sequence[str]
) -> tuple[Spanned, ...]:
    """Return what is about lines that are all untouched and still together, where they are now.

    While a line is half typed the file does not parse, and LibCST recovers nothing. Advice on
    lines that nobody touched stays on the screen; the rest is withheld.

    Parameters
    ----------
    items : iterable of Finding or Remark
        About the lines of `before`.
    before, now : sequence of str
    """
    shifts: dict[int, int] = {}
    for old, new, count in SequenceMatcher(None, before, now, autojunk=False).get_matching_blocks():
        shifts.update(dict.fromkeys(range(old + 1, old + 1 + count), new - old))
    moved = []
    for item in items:
        span = item.span
        by = {shifts.get(line) for line in range(span.start_line, span.end_line + 1)}
        shift = by.pop()
        if shift is not None and not by:
            start, end = span.start_line + shift, span.end_line + shift
            place = Span(start, span.start_column, end, span.end_column)
            moved.append(replace(item, span=place))
    return tuple(moved)


_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class OpenFile:
    """A file in the editor, and what is known about it."""

    path: str
    document: Document
    answer: Analysis | None = None
    good: Analysis | None = None
    good_text: str = ""
    """What `good` is about."""
    task: asyncio.Task[None] | None = None
    stamp: int = 0
    """Changes with every change of text or settings."""
    news: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there is another answer, or none will ever come."""


Result = TypeVar("Result")
Analyse = Callable[[str, str], Analysis]


@dataclass(slots=True, eq=False)
class Analyses:
    """The open files and the one worker that analyses them.

    All methods are called in the event loop.

    Attributes
    ----------
    analyse : callable
        Path and text to analysis; runs in the worker.
    finished : callable
        Called with every file that has a new answer.
    """

    analyse: Analyse
    finished: Callable[[OpenFile], None]
    files: dict[str, OpenFile] = field(default_factory=dict)
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the settings are known; before that no text is analysed."""
    _worker: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="analysis")
    )
    _serial: int = 0

    def open(self, path: str, document: Document) -> None:
        """Take a file in and analyse it at once."""
        self.close(document.uri)
        file = OpenFile(path, document)
        self.files[document.uri] = file
        self._start(file)

    def change(
        self, uri: str, version: int, changes: Sequence[TextDocumentContentChangeEvent]
    ) -> None:
        """Change the text of a file and analyse it."""
        file = self.files.get(uri)
        if file is None:
            _log.warning("change of a file that is not open: %s", uri)
            return
        for change in changes:
            file.document.apply(change)
        file.document.version = version
        self._touch(file)

    def close(self, uri: str) -> bool:
        """Forget a file; return whether it was there."""
        file = self.files.pop(uri, None)
        if file is None:
            return False
        file.stamp += 1
        file.news.set()
        if file.task is not None:
            file.task.cancel()
        return True

    def restart(self) -> None:
        """Analyse everything anew, because settings changed; nothing known before holds."""
        for file in self.files.values():
            file.good = None
            self._touch(file)

    def recheck_beside(self, paths: Iterable[str]) -> bool:
        """Analyse anew the open files that may rest on changed files, which lie beside them.

        Returns
        -------
        bool
            Whether there are any.
        """
        changed = {(os.path.dirname(path), os.path.basename(path)) for path in paths}  # noqa: PTH119, PTH120
        found = False
        for file in self.files.values():
            folder, name = os.path.split(file.path)
            if any(folder == place and name != other for place, other in changed):
                self._touch(file)
                found = True
        return found

    async def latest(self, uri: str) -> tuple[OpenFile, Analysis] | None:
        """Return the answer about the newest text, when there is one; None for a closed file."""
        while (file := self.files.get(uri)) is not None:
            if file.answer is not None:
                return file, file.answer
            self._start(file)
            file.news.clear()
            await file.news.wait()
        return None

    async def in_worker(self, work: Callable[[], Result]) -> Result:
        """Run something else in the worker, after what it is at."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    def stop(self) -> None:
        """Start nothing more."""
        for uri in tuple(self.files):
            self.close(uri)
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _touch(self, file: OpenFile) -> None:
        file.stamp += 1
        file.answer = None
        self._start(file)

    def _start(self, file: OpenFile) -> None:
        if file.task is None or file.task.done():
            file.task = asyncio.get_running_loop().create_task(self._work(file))

    async def _work(self, file: OpenFile) -> None:
        """Analyse the text of a file until there is an answer about the newest one."""
        loop = asyncio.get_running_loop()
        try:
            while file.answer is None:
                await self.ready.wait()
                stamp, text = file.stamp, file.document.text
                future = loop.run_in_executor(self._worker, self._analysed, file, stamp, text)
                await asyncio.wait({future})
                analysis = _outcome(future)
                if file.stamp == stamp and analysis is not None:
                    file.answer = self._answer(file, analysis)
                    self.finished(file)
        finally:
            file.news.set()

    def _analysed(self, file: OpenFile, stamp: int, text: str) -> Analysis | None:
        """Return what there is to say of a text, in the worker; None if that was overtaken."""
        # it may have changed while it was waiting for its turn
        return self.analyse(file.path, text) if file.stamp == stamp else None

    def _answer(self, file: OpenFile, analysis: Analysis) -> Analysis:
        document = file.document
        if analysis.understood:
            file.good, file.good_text = analysis, document.text
        elif file.good is not None:
            lines = split_lines(file.good_text), document.lines
            analysis = replace(
                analysis,
                findings=carried(file.good.findings, *lines),
                remarks=carried(file.good.remarks, *lines),
            )
        self._serial += 1
        return replace(analysis, version=document.version, serial=self._serial)


def _outcome(future: asyncio.Future[Analysis | None]) -> Analysis | None:
    """Return what the worker found; a bug in a rule is logged and says nothing to the user."""
    error = future.exception()
    if error is None:
        return future.result()
    _log.error("internal error during an analysis", exc_info=error)
    return Analysis(failure="internal error during the analysis; see the server's log")
