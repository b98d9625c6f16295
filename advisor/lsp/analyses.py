"""Which analyses run when: one at a time, and never for an old text.

A change overtakes an analysis, which ends at its next step; what it found is dropped. What takes a
search comes second: a text's findings are told first, and told again with all there is to say once
that is known, unless the text has changed by then. Whatever else waits for the worker goes before
such a search, which begins anew afterwards and soon is where it was, as what it has priced is
remembered.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from difflib import SequenceMatcher
from typing import Any, TypeVar

from lsprotocol.types import TextDocumentContentChangeEvent

from advisor.finding import Finding, Remark
from advisor.lsp.analysis import Analysis
from advisor.lsp.document import Document
from advisor.source import Span, split_lines
from advisor.steps import Overtaken, ending_when, step
from costdb.records import dataclass, field, replace

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


SEARCH_AFTER_S = 0.2
"""A search begins when its text was left alone for so long after its answer: who types on does not
wait for its next step."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """What there is to say about one version of a file.

    Attributes
    ----------
    version : int
        Of the file; all positions are in its text.
    serial : int
        Tells answers apart, whatever the editor does with version numbers.
    said : Analysis
        Its findings are carried over from an earlier text where the present one does not parse.
    """

    version: int
    serial: int
    said: Analysis

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is suggested."""
        return self.said.findings

    @property
    def current(self) -> bool:
        """Whether that is about the present text."""
        return self.said.understood


@dataclass(slots=True, eq=False)
class OpenFile:
    """A file in the editor, and what is known about it."""

    path: str
    document: Document
    answer: Answer | None = None
    good: Analysis | None = None
    good_text: str = ""
    """What `good` is about."""
    task: asyncio.Task[None] | None = None
    stamp: int = 0
    """Changes with every change of text or settings."""
    touched: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the text or the settings have changed."""
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
        Path and text to analysis; runs in the worker, where it may raise `Overtaken`.
    complete : callable
        The same for a text whose analysis was not whole.
    finished : callable
        Called with every file that has a new answer, and whether there was one before about the
        same text, which was not whole.
    """

    analyse: Analyse
    complete: Analyse
    finished: Callable[[OpenFile, bool], None]
    files: dict[str, OpenFile] = field(default_factory=dict)
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the settings are known; before that no text is analysed."""
    _worker: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="analysis")
    )
    _serial: int = 0
    _waiting: int = 0
    """What is in the worker, or waits for it, and goes before searches."""

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

    async def latest(self, uri: str, *, whole: bool = False) -> tuple[OpenFile, Answer] | None:
        """Return the answer about the newest text, when there is one; None for a closed file.

        Parameters
        ----------
        uri : str
        whole : bool
            Whether to wait for all there is to say.
        """
        while (file := self.files.get(uri)) is not None:
            if file.answer is not None and (file.answer.said.whole or not whole):
                return file, file.answer
            self._start(file)
            file.news.clear()
            await file.news.wait()
        return None

    async def in_worker(self, work: Callable[[], Result]) -> Result:
        """Run something else in the worker, after what it is at, unless that is a search."""
        with self._ahead_of_searches():
            return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    def warm_up(self, work: Callable[[], None]) -> None:
        """Run something in the worker that makes the first analysis faster."""
        future = asyncio.get_running_loop().run_in_executor(self._worker, work)
        future.add_done_callback(_log_error)

    def stop(self) -> None:
        """Start nothing more."""
        for uri in tuple(self.files):
            self.close(uri)
        self._worker.shutdown(wait=False, cancel_futures=True)

    @contextmanager
    def _ahead_of_searches(self) -> Iterator[None]:
        """Have searches end at their next step for what is in the worker, or will be."""
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    def _touch(self, file: OpenFile) -> None:
        file.stamp += 1
        file.answer = None
        file.touched.set()
        self._start(file)

    def _start(self, file: OpenFile) -> None:
        if file.task is None or file.task.done():
            file.task = asyncio.get_running_loop().create_task(self._work(file))

    async def _work(self, file: OpenFile) -> None:
        """Analyse the text of a file until there is a whole answer about the newest one."""
        loop = asyncio.get_running_loop()
        try:
            while file.answer is None or not file.answer.said.whole:
                await self.ready.wait()
                first, stamp, text = file.answer is None, file.stamp, file.document.text
                if not first:
                    file.touched.clear()
                    with suppress(TimeoutError):
                        await asyncio.wait_for(file.touched.wait(), SEARCH_AFTER_S)
                        continue
                future = loop.run_in_executor(
                    self._worker, self._analysed, file, stamp, text, first
                )
                with self._ahead_of_searches() if first else nullcontext():
                    await asyncio.wait({future})
                analysis = _outcome(future)
                if file.stamp == stamp and analysis is not None:
                    self._settle(file, analysis)
        finally:
            file.news.set()

    def _analysed(self, file: OpenFile, stamp: int, text: str, first: bool) -> Analysis | None:
        """Return what there is to say of a text, in the worker; None if that was overtaken."""

        def useless() -> bool:
            # it may have changed while it was waiting for its turn, and may any time
            return file.stamp != stamp or (not first and self._waiting > 0)

        with ending_when(useless):
            try:
                step()
                return (self.analyse if first else self.complete)(file.path, text)
            except Overtaken:
                return None

    def _settle(self, file: OpenFile, analysis: Analysis) -> None:
        """Take an analysis of the newest text in, and tell of it if it says anything new."""
        before = file.answer
        if before is None:
            file.answer = self._answer(file, analysis)
        else:
            more = analysis if analysis.understood else before.said
            news = (more.findings, more.remarks) != (before.said.findings, before.said.remarks)
            whole = replace(before, said=replace(before.said, whole=True))
            file.answer = self._answer(file, replace(more, whole=True)) if news else whole
        file.news.set()
        if before is None or file.answer.serial != before.serial:
            self.finished(file, before is not None)

    def _answer(self, file: OpenFile, analysis: Analysis) -> Answer:
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
        return Answer(document.version, self._serial, analysis)


def _log_error(future: asyncio.Future[Any]) -> None:
    error = None if future.cancelled() else future.exception()
    if error is not None:
        _log.error("internal error", exc_info=error)


def _outcome(future: asyncio.Future[Analysis | None]) -> Analysis | None:
    """Return what the worker found; a bug in a rule is logged and says nothing to the user."""
    error = future.exception()
    if error is None:
        return future.result()
    _log.error("internal error during an analysis", exc_info=error)
    return Analysis(failure="internal error during the analysis; see the server's log")
