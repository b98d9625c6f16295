"""Which analyses run when: one at a time, at once or after a burst, and never for an old text."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from advisor.finding import Finding, Remark
from advisor.lsp.analysis import Analysis
from advisor.lsp.carried import carried
from advisor.lsp.document import Change, Document
from advisor.source import SourceProblem
from advisor.steps import Overtaken, ending_when, step

DEBOUNCE_S = 0.015
"""A text that was left alone for as long is analysed as soon as it changes. Of changes that follow
one another more closely, as a program makes them, the others wait until there is a pause as long.

A change overtakes an analysis, which ends at its next step; what it found is dropped.
"""

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
    findings, remarks : tuple
    problem : SourceProblem or None
        What is wrong with annotations; not that the text does not parse.
    failure : str
        One line when no prediction is possible.
    current : bool
        False when findings are carried over from an earlier text.
    """

    version: int
    serial: int
    findings: tuple[Finding, ...]
    remarks: tuple[Remark, ...]
    problem: SourceProblem | None
    failure: str
    current: bool


@dataclass(slots=True, eq=False)
class OpenFile:
    """A file in the editor, and what is known about it."""

    path: str
    document: Document
    due: float = 0.0
    """When to analyse it."""
    pause_at: float = 0.0
    """From when on it will have been left alone for long enough."""
    answer: Answer | None = None
    good: Analysis | None = None
    good_text: str = ""
    """What `good` is about."""
    task: asyncio.Task[None] | None = None
    stamp: int = 0
    """Changes with every change of text or settings."""


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
    finished : callable
        Called with every file that has a new answer.
    debounce_s : float
    """

    analyse: Analyse
    finished: Callable[[OpenFile], None]
    debounce_s: float = DEBOUNCE_S
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

    def change(self, uri: str, version: int, changes: Sequence[Change]) -> None:
        """Change the text of a file and analyse it, after a pause if it keeps changing."""
        file = self.files.get(uri)
        if file is None:
            _log.warning("change of a file that is not open: %s", uri)
            return
        for change in changes:
            file.document.apply(change)
        file.document.version = version
        now = asyncio.get_running_loop().time()
        pause_at = now + self.debounce_s
        file.due = now if now >= file.pause_at else pause_at
        file.pause_at = pause_at
        self._touch(file)

    def close(self, uri: str) -> bool:
        """Forget a file; return whether it was there."""
        file = self.files.pop(uri, None)
        if file is None:
            return False
        file.stamp += 1
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

    async def latest(self, uri: str) -> tuple[OpenFile, Answer] | None:
        """Return the answer about the newest text, when there is one; None for a closed file."""
        while (file := self.files.get(uri)) is not None:
            if file.answer is not None:
                return file, file.answer
            self._start(file)
            assert file.task is not None
            # unlike awaiting the task, this leaves it running when the request is cancelled
            await asyncio.wait({file.task})
        return None

    async def in_worker(self, work: Callable[[], Result]) -> Result:
        """Run something else in the worker, after what it is at."""
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
        while file.answer is None:
            await self.ready.wait()
            pause = file.due - loop.time()
            if pause > 0:
                await asyncio.sleep(pause)
                continue
            stamp, text = file.stamp, file.document.text

            def analyse(stamp: int = stamp, text: str = text) -> Analysis | None:
                # it may have changed while it was waiting for its turn, and may any time
                with ending_when(lambda: file.stamp != stamp):
                    try:
                        step()
                        return self.analyse(file.path, text)
                    except Overtaken:
                        return None

            future = loop.run_in_executor(self._worker, analyse)
            await asyncio.wait({future})
            analysis = _outcome(future)
            if file.stamp == stamp and analysis is not None:
                self._settle(file, analysis)
        self.finished(file)

    def _settle(self, file: OpenFile, analysis: Analysis) -> None:
        document = file.document
        if analysis.understood:
            document.mark()
            file.good, file.good_text = analysis, document.text
        good = file.good or Analysis()
        self._serial += 1
        file.answer = Answer(
            document.version,
            self._serial,
            tuple(carried(good.findings, document.origins)),
            tuple(carried(good.remarks, document.origins)),
            None if analysis.half_typed else analysis.problem,
            analysis.failure,
            analysis.understood,
        )


def _log_error(future: asyncio.Future[None]) -> None:
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
