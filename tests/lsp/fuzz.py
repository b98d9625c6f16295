"""Random typing against the real server: ``python -m tests.lsp.fuzz --edits 10000``.

A driver edits one file as a user might: half-typed code, emoji, astral letters, tabs, line ends
of all kinds, jumps, pastes, undone changes. A reference model keeps the text as bytes of the
editor's encoding, so that it shares no arithmetic of positions with the server, and says for
every answer what it must be: for a text that can be read, exactly what the engine says of it; for
any other, only findings known from the last text that could, on lines that nobody touched.

Every answer names its version; one about a text that had changed before it was asked for is a
stale answer. Nothing may be lost: each checked version gets its answer.

Three files are typed at: a kernel, kernels with a plan of several steps, and a program for MPI. The
editor of every other run can be told to ask again: it gets findings first, and the plan may come
with a second answer, which must follow where the first one lacks it. What answers must be is asked
of a fresh engine for every text.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import IO, Any

from advisor.engine import Options, check_source
from advisor.finding import Finding, Remark
from advisor.source import SourceProblem, Span
from tests.lsp.wire import ProtocolError, Wire

MACHINE = "sp2"
LEAST = 1.01
URI = "file:///kernels/typed.py"
CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
START = """\
from typing import Annotated
import numpy as np
from numpy.typing import NDArray
from advisor import Block, Dist, Mesh, kernel

ranks = Mesh(rank=16)
note = "😀 漢", "𝑓"  # about nothing


@kernel(N=1000)
def smooth(
    𝑓ä: Annotated[NDArray[np.float64], Dist("N", "N", None, Block("rank"), on=ranks)],
) -> NDArray[np.float64]:
    above = 𝑓ä.copy()  # 👩‍🚀 before
    above[:, 1:] = 𝑓ä[:, :-1]
    return above
"""
PLANNED = """\
from typing import Annotated
import numpy as np
from numpy.typing import NDArray
from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(rank=16)
layers = 3  # 𝑓ä


@kernel(N=1000)
def eliminate(𝑓ä: Annotated[NDArray[np.float64], Dist("N", "N", None, Block("rank"), on=mesh)]):
    for k in range(𝑓ä.shape[0] - 1):
        𝑓ä[k + 1 :, k] = 𝑓ä[k + 1 :, k] / 𝑓ä[k, k]
        𝑓ä[k + 1 :, k + 1 :] -= 𝑓ä[k + 1 :, k, None] * 𝑓ä[k, None, k + 1 :]
    return 𝑓ä


@kernel(N=400)
def smooth(
    𝑓ä: Annotated[NDArray[np.float64], Dist("N", "N", None, Block("rank"), on=mesh)],
) -> NDArray[np.float64]:
    above = 𝑓ä.copy()  # 👩‍🚀 before
    above[:, 1:] = 𝑓ä[:, :-1]
    return above
"""
PROGRAM = """\
import numpy as np
from mpi4py import MPI

WIDTH = 300
comm = MPI.COMM_WORLD  # 😀 𝑓ä


def beside(comm):
    rank, size = comm.Get_rank(), comm.Get_size()
    return (rank - 1) % size, (rank + 1) % size


def made(n: int):
    𝑓ä = np.zeros((n, WIDTH))
    𝑓ä[0] = 1.0
    return 𝑓ä


def exchanged(𝑓ä, comm, steps):
    left, right = beside(comm)
    r = np.empty(WIDTH)
    for step in range(steps):
        t = 𝑓ä[1, :].copy()
        comm.Sendrecv(t, dest=left, recvbuf=r, source=right)  # 👩‍🚀
        𝑓ä[-1, :] = r


def shared(comm, n: int):
    for k in range(n):
        table = comm.bcast(made(n), root=0)
    return table


if __name__ == "__main__":
    field = made(20)
    exchanged(field, comm, 5)
"""
FILES = {"kernel": START, "plan": PLANNED, "program": PROGRAM}
PLAN = "best plan"
TYPED = (
    *"abN=(),:.[]\"' #\\0",
    "\n", "\r\n", "\r", "    ", "\t", "#", "pass", "if x:\n", "def f(", '"""', "'''",
    "😀", "𝑓", "ä", "漢", "e\u0301", "\u200d", "# 👩‍🚀 \f \u2028 \x85 #", "🏳️‍🌈 = 1",
    "# advise: ignore[ADV101]", "# advise: kernel N=", "N = 50\n", "x = 1  # ok\n", "\n\n",
    "return above\n", "above[1:, :]", "@kernel(N=10)\n", "Block(", 'Mesh(rank=4)', "\ufeff", "\0",
)  # fmt: skip


class Wrong(ProtocolError):
    """An answer was stale, or named a wrong place."""


@dataclass
class Editor:
    """The text as an editor holds it, in the encoding of its columns.

    Lines end at a line feed, a carriage return, or both, as the protocol says.
    """

    encoding: str
    start: str = START
    text: str = ""
    version: int = 1
    codec: str = field(init=False)
    width: int = field(init=False)

    def __post_init__(self) -> None:
        self.codec, self.width = CODECS[self.encoding]
        self.text = self.text or self.start

    def place(self, offset: int) -> dict[str, int]:
        """The position of a code point, by splitting encoded text at encoded line ends."""
        before = self.text[:offset].replace("\r\n", "\n").replace("\r", "\n")
        if self.text[offset - 1 : offset + 1] == "\r\n":
            raise Wrong("the driver cut a line end in half")
        rest = before.rpartition("\n")[2]
        return {
            "line": before.count("\n"),
            "character": len(rest.encode(self.codec)) // self.width,
        }

    def covered(self, start: dict[str, int], end: dict[str, int]) -> str:
        """The text between two positions, found by slicing encoded lines."""
        lines = _lines(self.text)
        chosen = lines[start["line"] : end["line"] + 1]
        encoded = [line.encode(self.codec, "surrogatepass") for line in chosen]
        for number, place in ((0, start), (-1, end)):
            if place["character"] * self.width > len(encoded[number]):
                raise Wrong(f"column {place} lies behind the end of its line")
        last = encoded[-1][: end["character"] * self.width]
        encoded[-1] = last
        encoded[0] = encoded[0][start["character"] * self.width :]
        return "\n".join(part.decode(self.codec) for part in encoded)

    def edit(self, start: int, end: int, new: str) -> dict[str, Any]:
        """Replace code points and return the change as the protocol has it."""
        change = {"range": {"start": self.place(start), "end": self.place(end)}, "text": new}
        self.text = self.text[:start] + new + self.text[end:]
        return change


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
            wanted = sorted(_expected(editor, finding) for finding in known.findings)
            if shown != wanted:
                raise Wrong(f"expected {wanted}\ngot {shown}\nfor {editor.text!r}")
            self._check_remarks(editor, known, items, first)
            return True
        before = {} if self.good is None else _lines_of_findings(self.good)
        now = _lines(editor.text)
        for item in found:
            first, last = (end["line"] for end in _ends(item))
            lines = now[first : last + 1]
            if lines not in before.get((item["code"], item["message"]), ()):
                raise Wrong(f"carried {item} to {lines}\nfor {editor.text!r}\nfrom {before}")
        return False

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


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _lines_of_findings(known: Known) -> dict[tuple[str, str], list[list[str]]]:
    """The lines that each finding covers; a carried one must still be on the same."""
    lines = _lines(known.text)
    covered: dict[tuple[str, str], list[list[str]]] = {}
    for finding in known.findings:
        span = finding.span
        here = lines[span.start_line - 1 : span.end_line]
        covered.setdefault((finding.code, finding.message), []).append(here)
    return covered


def _ends(item: dict[str, Any]) -> tuple[dict[str, int], dict[str, int]]:
    return item["range"]["start"], item["range"]["end"]


def _key(item: dict[str, Any]) -> tuple[int, int]:
    start = item["range"]["start"]
    return start["line"], start["character"]


def _expected(editor: Editor, finding: Finding) -> tuple[Any, ...]:
    return finding.code, finding.message, *_place_of(editor, finding.span)


def _place_of(editor: Editor, span: Span) -> tuple[str, int, int]:
    """What a span covers, and where it begins as the editor counts."""
    lines = _lines(editor.text)
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


Step = tuple[int, int, str]


def wild(source: random.Random, editor: Editor) -> Iterator[Step]:
    """Yield a user's action as changes (start, end, new), one after another; most break a file."""
    text = editor.text
    kind = source.random()
    here = _boundary(text, source.randint(0, len(text)))
    if kind < 0.45:  # type something
        yield here, here, source.choice(TYPED)
    elif kind < 0.6:  # type it letter by letter
        for key in source.choice(("x = 1\n", "# 😀 𝑓\r", "if N:\n    pass\n")):
            here = _boundary(editor.text, here)
            yield here, here, key
            here += 1
    elif kind < 0.9:  # delete a little
        yield here, _boundary(text, min(len(text), here + source.randint(1, 6))), ""
    else:  # paste over a stretch of lines
        end = _boundary(text, min(len(text), here + source.randint(0, 200)))
        yield here, end, source.choice((editor.start, "", "\n" * 3, "z = '😀'\n", "\t"))


def gentle(source: random.Random, editor: Editor) -> Iterator[Step]:
    """Yield a change that leaves a readable file readable, and moves what it says."""
    text = editor.text
    here = source.randint(0, len(text))
    end = text.find("\n", here)
    kind = source.random()
    if kind < 0.15:  # another number, such as a size: what is known of its kernel is gone
        places = [*re.finditer(r"(?<![\w.])[1-9]\d*(?![\w.])", text)]
        if places:
            chosen = source.choice(places)
            yield chosen.start(), chosen.end(), str(int(chosen[0]) + source.randint(1, 3))
    elif kind < 0.3 and end > 0:  # another end of the line
        start = end - (text[end - 1] == "\r")
        yield start, end + 1, source.choice(("\r\n", "\n", "\r"))
    elif kind < 0.7:  # a blank before a word, behind letters of several units
        places = [
            word.start()
            for line in re.finditer(r"𝑓ä.*", text)
            for word in re.compile(r"(?<=[ (\[,])\w").finditer(text, *line.span())
        ]
        if places:
            here = source.choice(places)
            yield here, here, source.choice((" ", "  ", "\t"))
    else:  # comments and blank lines
        end = len(text) if end < 0 else end - (text[end - 1 : end] == "\r")
        yield end, end, source.choice(("  # 👩‍🚀", "\t# 漢字", " ", "\n", "\r\n\r\n", "\r"))


def _boundary(text: str, offset: int) -> int:
    """No editor puts its cursor between the two characters of a line end."""
    return offset + 1 if text[offset - 1 : offset + 1] == "\r\n" else offset


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
        if shown is None or "| before | after |" not in shown["contents"]["value"]:
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
    server.change(URI, editor.version, changes)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--edits", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=20_261_121)
    parser.add_argument("--burst", type=int, default=10, help="most edits between two checks")
    parser.add_argument("--file", action="append", choices=FILES, help="only these files")
    parser.add_argument("--staged", action="store_true", help="findings first in every run")
    given = parser.parse_args()
    runs = [(name, encoding) for name in given.file or FILES for encoding in CODECS]
    share = -(-given.edits // len(runs))
    for number, (name, encoding) in enumerate(runs):
        staged = given.staged or bool(number % 2)
        tally = run(
            share,
            given.seed + number,
            encoding,
            given.burst,
            start=FILES[name],
            staged=staged,
        )
        way = "findings first" if staged else "all at once"
        print(f"{name}, {encoding}, {way}: {tally}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
