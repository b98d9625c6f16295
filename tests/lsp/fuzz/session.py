"""A run: an editor types at a real server, and every answer is held to the reference."""

from __future__ import annotations

import random
import tempfile
import time
from dataclasses import dataclass, replace
from typing import IO, Any

from tests.lsp.fuzz.editor import Editor, Wrong
from tests.lsp.fuzz.files import START
from tests.lsp.fuzz.reference import LEAST, MACHINE, Reference
from tests.lsp.fuzz.typist import gentle, wild
from tests.lsp.wire import ProtocolError, Wire

URI = "file:///kernels/typed.py"


@dataclass
class Tally:
    """What a run did."""

    edits: int = 0
    answers: int = 0
    readable: int = 0
    with_findings: int = 0
    carried: int = 0
    cancelled: int = 0
    overtaken: int = 0
    completed: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.edits} edits, {self.answers} answers checked: {self.readable} of texts that "
            f"can be read, {self.with_findings} of them with findings; {self.carried} with "
            f"findings carried over; {self.cancelled} requests cancelled, "
            f"{self.overtaken} overtaken; {self.completed} completed by a second answer; "
            f"{self.seconds:.0f} s"
        )


def started(encoding: str, log: IO[bytes], *, staged: bool = False) -> Wire:
    """Return a server that has agreed on the encoding of columns."""
    capabilities = {
        "general": {"positionEncodings": [encoding]},
        "textDocument": {"diagnostic": {}, "hover": {"contentFormat": ["markdown"]}},
        "workspace": {"diagnostics": {"refreshSupport": staged}},
    }
    server = Wire(MACHINE, log, capabilities, {"minSpeedup": LEAST})
    if server.abilities["positionEncoding"] != encoding:
        server.kill()
        raise Wrong("the encoding of columns was not agreed on")
    return server


def run(
    edits: int,
    seed: int,
    encoding: str,
    burst: int = 10,
    *,
    start: str = START,
    staged: bool = False,
) -> Tally:
    """Edit `edits` times and check an answer after every few edits.

    Raises
    ------
    Wrong
        At the first answer that is not right.
    """
    source = random.Random(seed)
    reference, editor, tally = Reference(), Editor(encoding, start), Tally()
    begun = time.monotonic()
    with tempfile.TemporaryFile() as log:
        server = started(encoding, log, staged=staged)
        try:
            server.open(URI, editor.text)
            while tally.edits < edits:
                most = min(burst, edits - tally.edits)
                _burst(source, reference, editor, server, tally, most, staged)
            server.stop()
        except (ProtocolError, OSError) as error:
            log.seek(0)
            report = log.read().decode(errors="replace")[-3000:]
            raise Wrong(f"seed {seed}, {encoding}, edit {tally.edits}: {error}\n{report}") from None
        finally:
            server.kill()
    tally.seconds = time.monotonic() - begun
    return tally


def _burst(
    source: random.Random,
    reference: Reference,
    editor: Editor,
    server: Wire,
    tally: Tally,
    most: int,
    staged: bool,
) -> None:
    done = 0
    wanted = source.randint(1, most)
    act = source.choice((gentle, gentle, wild))
    while done < wanted:
        changes = []
        for start, end, new in act(source, editor):
            changes.append(editor.edit(start, end, new))
            done += 1
        if source.random() < 0.05:  # some editors send the whole text
            changes = [{"text": editor.text}]
        if changes:
            _change(server, editor, changes)
    known = reference.knows(editor.text)
    dull = len(editor.text) > 3 * len(editor.start) or not (known.problem or known.findings)
    if (dull and source.random() < 0.7) or (known.problem and source.random() < 0.4):
        # undone, so that most of the texts can be read and have something to say about
        good = reference.good
        undone = editor.start if dull or good is None else good.text
        _change(server, editor, [editor.edit(0, len(editor.text), undone)])
        done += 1
    tally.edits += done
    document = {"textDocument": {"uri": URI}}
    if source.random() < 0.1:
        serial = server.request("textDocument/diagnostic", document)
        server.tell("$/cancelRequest", {"id": serial})
        server.answer(serial, refusal=-32800)
        tally.cancelled += 1
    if source.random() < 0.25:
        _overtake(source, reference, editor, server, tally, document, staged)
    report = server.ask("textDocument/diagnostic", document)
    tally.answers += 1
    if report["kind"] != "full":
        raise Wrong(f"no full report: {report}")
    readable = reference.check(editor, report["items"], first=staged)
    if staged and reference.lacks(editor, report["items"]):
        # the second answer follows by itself, and not before it says more
        while server.read().get("method") != "workspace/diagnostic/refresh":
            pass
        report = server.ask("textDocument/diagnostic", document)
        tally.answers += 1
        tally.completed += 1
        reference.check(editor, report["items"])
    codes = [item for item in report["items"] if "code" in item]
    tally.readable += readable
    tally.with_findings += readable and bool(codes)
    tally.carried += not readable and bool(codes)
    if codes:
        place = source.choice(codes)["range"]["start"]
        shown = server.ask("textDocument/hover", {**document, "position": place})
        # where nothing binds a size it has no times to show, and says for which values it pays
        told = "" if shown is None else shown["contents"]["value"]
        if "| before | after |" not in told and "**Pays** for" not in told:
            raise Wrong(f"no hover at {place}: {shown}")


def _overtake(
    source: random.Random,
    reference: Reference,
    editor: Editor,
    server: Wire,
    tally: Tally,
    document: dict[str, Any],
    staged: bool,
) -> None:
    """Ask, type on before the answer comes, and see that it is about one of the two texts."""
    before = replace(editor)
    serial = server.request("textDocument/diagnostic", document)
    time.sleep(source.uniform(0, 0.12))
    lines_above = source.choice(("# 😀\n", "\r\n", "import os\n"))
    _change(server, editor, [editor.edit(0, 0, lines_above)])
    tally.edits += 1
    tally.overtaken += 1
    items = server.answer(serial)["items"]
    if not any(reference.accepts(one, items, first=staged) for one in (before, editor)):
        raise Wrong(f"{items} is about neither of\n{before.text!r}\n{editor.text!r}")


def _change(server: Wire, editor: Editor, changes: list[dict[str, Any]]) -> None:
    editor.version += 1
    editor.told += (editor.text,)
    server.change(URI, editor.version, changes)
