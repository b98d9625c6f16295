"""Which text is analysed when: never an old one, one at a time, and nothing is lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest
from lsp_session import changed
from lsprotocol.types import TextDocumentContentChangeEvent

from advisor.finding import Remark
from advisor.lsp.analyses import Analyses, Analysis, Document, OpenFile
from advisor.source import ParseProblem, SourceProblem, Span

pytestmark = pytest.mark.asyncio
URI = "file:///a.py"


class Engine:
    """Stands in for the engine: notes what it is asked, and can be made to wait."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.go = threading.Event()
        self.go.set()
        self.running = 0
        self.most_running = 0

    def analyse(self, path: str, text: str) -> Analysis:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        self.asked.append(text)
        assert self.go.wait(10)
        self.running -= 1
        if text == "broken":
            return Analysis(problem=ParseProblem(path, 1, 0, "does not parse"))
        if text == "wrong":
            return Analysis(problem=SourceProblem(path, 1, 0, "N must be at least 1"))
        if text == "bug":
            raise ZeroDivisionError
        return Analysis(remarks=(_remark(path, text),))


def _remark(path: str, text: str) -> Remark:
    return Remark(path, "", Span(1, 0, 1, 1), text)


def started(engine: Engine) -> tuple[Analyses, list[str]]:
    told: list[str] = []

    def finished(file: OpenFile) -> None:
        assert file.answer is not None
        assert file.answer.version == file.document.version
        told.append(said(file))

    analyses = Analyses(engine.analyse, finished)
    analyses.ready.set()
    return analyses, told


def said(file: OpenFile) -> str:
    assert file.answer is not None
    return " ".join(remark.message for remark in file.answer.remarks)


def opened(analyses: Analyses, text: str, uri: str = URI) -> None:
    analyses.open("a.py", Document(uri, "utf-16", 1, text))


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not true():
            await asyncio.sleep(0.001)


async def test_files_wait_for_one_worker_and_closed_ones_are_not_analysed() -> None:
    engine = Engine()
    analyses, told = started(engine)
    engine.go.clear()
    for number in range(4):
        opened(analyses, str(number), f"{URI}{number}")
    await until(lambda: engine.asked == ["0"])
    assert analyses.close(f"{URI}2")
    assert not analyses.close("file:///never.py")
    engine.go.set()
    assert await analyses.latest(f"{URI}3") is not None
    await until(lambda: len(told) == 3)
    assert engine.asked == told == ["0", "1", "3"]
    assert engine.most_running == 1
    assert await analyses.latest(f"{URI}2") is None


async def test_who_gives_up_waiting_takes_nothing_from_others() -> None:
    engine = Engine()
    analyses, _ = started(engine)
    engine.go.clear()
    opened(analyses, "text")
    first, second = (asyncio.create_task(analyses.latest(URI)) for _ in range(2))
    await until(lambda: engine.asked == ["text"])
    first.cancel()
    engine.go.set()
    found = await second
    assert found is not None
    assert said(found[0]) == "text"
    assert first.cancelled()


async def test_settings_come_first() -> None:
    engine = Engine()
    analyses, told = started(engine)
    analyses.ready.clear()
    opened(analyses, "text")
    await asyncio.sleep(0.05)
    assert engine.asked == []
    analyses.ready.set()
    await analyses.latest(URI)
    # new settings: what was known is not an answer any more
    engine.go.clear()
    analyses.restart()
    assert analyses.files[URI].answer is None
    engine.go.set()
    await analyses.latest(URI)
    assert engine.asked == told == ["text", "text"]


async def test_texts_that_cannot_be_understood() -> None:
    engine = Engine()
    analyses, _ = started(engine)
    opened(analyses, "good\n")
    await analyses.latest(URI)

    async def after(change: TextDocumentContentChangeEvent, version: int) -> OpenFile:
        analyses.change(URI, version, [change])
        found = await analyses.latest(URI)
        assert found is not None
        return found[0]

    file = await after(changed("broken"), 2)
    assert file.answer is not None
    assert not file.answer.understood
    assert file.answer.half_typed  # other tools say it
    assert said(file) == ""
    file = await after(changed("wrong"), 3)
    assert file.answer is not None
    assert file.answer.problem is not None
    assert not file.answer.half_typed
    file = await after(changed("bug"), 4)
    assert file.answer is not None
    assert "internal error" in file.answer.failure
    file = await after(changed("good\n"), 5)
    assert said(file) == "good\n"
    assert file.answer is not None
    assert file.answer.understood
    serials = {file.answer.serial}
    analyses.restart()
    found = await analyses.latest(URI)
    assert found is not None
    assert found[1].serial not in serials
    analyses.change("file:///never.py", 1, [changed("x")])  # logged, not fatal
