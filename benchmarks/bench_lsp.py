"""How soon an editor has the diagnostics of a changed text.

Run from the project's directory: ``python -m benchmarks.bench_lsp``. The server runs as an editor
runs it, on every file of ``examples`` that it has something to do with. Each edit changes one
place, as a key does, and the clock runs from before the change is sent until its diagnostics have
been read. It is sent when those of the text before have been read, as by somebody who types and
looks; afterwards the text is put back as it was.

The columns *CPU* have what the server itself computed until then, on all its threads: a busy
neighbour on the same cores makes only the others longer.

Edits are drawn, half of code (another operator or whole number), half of what stands around it
(a comment, a blank line). Afterwards the diagnostics of every text are compared with what the
engine says of it, and a difference ends the run. Goal: within 100 ms for 95 of 100 edits of every
file. A machine may be a profile of the user's own, as ``--machine here`` or a path.
"""

from __future__ import annotations

import argparse
import io
import random
import statistics
import sys
import tempfile
import time
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from advisor.engine import Options, check_source, needs_reading
from advisor.report.model import headline
from advisor.source import SourceProblem
from tests.lsp.wire import Wire

GOAL_MS = 100
ROOT = Path(__file__).parent.parent
_OTHER = {"+": "-", "-": "+", "*": "+", "+=": "-=", "-=": "+=", "<": "<=", ">": ">="}
"""Operators, each with one that may stand in its place."""

Said = list[tuple[int, int, str, str]]
"""Line and column from 0, code and message of diagnostics."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Text in place of what stands from `start` to before `end` of a line, all from 0."""

    line: int
    start: int
    end: int
    text: str

    def of(self, text: str) -> str:
        """Return the text with this edit."""
        lines = text.split("\n")
        line = lines[self.line]
        lines[self.line] = line[: self.start] + self.text + line[self.end :]
        return "\n".join(lines)


def examples() -> dict[str, str]:
    """Return the texts of the examples that the tool reads, by path from the project's folder."""
    files = sorted((ROOT / "examples").rglob("*.py"))
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files}
    return {name: text for name, text in texts.items() if needs_reading(text, str(ROOT / name))}


def drawn_edits(text: str, source: random.Random) -> Iterator[Edit]:
    """Yield edits of a text, each of another place or with another text than those before."""
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    code = [one for one in tokens if one.string in _OTHER or one.string.isdigit()]
    ends = {one.end[0]: one.end[1] for one in tokens if one.type == tokenize.NEWLINE}
    number = 0
    while True:
        source.shuffle(code)
        for token in code or tokens[:1]:
            number += 1
            (row, start), (_, end) = token.start, token.end
            if code:
                other = _OTHER.get(token.string) or str(int(token.string) + number)
                yield Edit(row - 1, start, end, other)
            line = source.choice(sorted(ends))
            column = len(text.split("\n")[line - 1])
            around = f"  # {number}" if source.random() < 0.8 else f"\n# {number}"
            yield Edit(line - 1, column, column, around)


class Session:
    """A server with one open file."""

    def __init__(self, machine: str, path: Path, text: str, log: IO[bytes]) -> None:
        capabilities = {
            "general": {"positionEncodings": ["utf-32"]},
            "textDocument": {"publishDiagnostics": {"versionSupport": True}},
        }
        self.wire = Wire(machine, log, capabilities)
        self.uri = path.as_uri()
        self.version = 1
        self.wire.open(self.uri, text)
        self.diagnostics()

    def change(self, change: dict[str, Any]) -> Said:
        """Change the text and return what is first said of it."""
        self.version += 1
        self.wire.change(self.uri, self.version, [change])
        return self.diagnostics()

    def edit(self, edit: Edit) -> Said:
        """Type something, in place of something on the same line."""
        start = {"line": edit.line, "character": edit.start}
        end = {"line": edit.line, "character": edit.end}
        return self.change({"range": {"start": start, "end": end}, "text": edit.text})

    def diagnostics(self) -> Said:
        """Wait for the diagnostics of the newest version."""
        while True:
            message = self.wire.read()
            if message.get("method") == "textDocument/publishDiagnostics":
                parameters = message["params"]
                if parameters["version"] == self.version:
                    return sorted(map(_said, parameters["diagnostics"]))


def _said(item: dict[str, Any]) -> tuple[int, int, str, str]:
    start = item["range"]["start"]
    return start["line"], start["character"], item.get("code", ""), item["message"]


def by_engine(machine: str, path: str, text: str) -> Said | None:
    """Return what the engine says of a text, in this process; None where it cannot be read."""
    options = Options(machine, {}, (), (), None, plans=False)
    try:
        result = check_source(path, text, options)
    except SourceProblem:
        return None
    wanted = [(one.span, one.code, headline(one)) for one in result.findings]
    wanted += [(one.span, "", one.message) for one in result.remarks]
    return sorted((s.start_line - 1, s.start_column, code, said) for s, code, said in wanted)


def measure(machine: str, name: str, text: str, edits: int, seed: int) -> list[tuple[float, float]]:
    """Return the times of edits, in ms: on the clock, and what the server computed.

    Raises
    ------
    AssertionError
        A text was answered otherwise than the engine does.
    """
    path, drawn = ROOT / name, drawn_edits(text, random.Random(seed))
    times, made = list[tuple[float, float]](), list[tuple[Edit, Said]]()
    with tempfile.TemporaryFile() as log:
        session = Session(machine, path, text, log)
        for _ in range(edits):
            edit = next(drawn)
            computed_s, started_s = session.wire.cpu_s() or 0.0, time.perf_counter()
            said = session.edit(edit)
            took_s = time.perf_counter() - started_s
            times.append((1e3 * took_s, 1e3 * ((session.wire.cpu_s() or 0.0) - computed_s)))
            made.append((edit, said))
            session.change({"text": text})
        session.wire.stop()
    for edit, said in made:
        wanted = by_engine(machine, str(path), edit.of(text))
        assert wanted is None or wanted == said, (edit, said)
    return times


def row(name: str, times: list[tuple[float, float]]) -> str:
    """Return a line of the table."""
    clock, computed = zip(*times, strict=True)
    verdict = "kept" if _last(clock) <= GOAL_MS else "missed"
    columns = [f(one) for one in (clock, computed) for f in (statistics.median, _last, max)]
    return f"{name:<36}{''.join(f'{one:>7.0f}' for one in columns)}   {verdict}"


def _last(times: Sequence[float]) -> float:
    """Return what 95 of 100 stay below."""
    return statistics.quantiles(times, n=20, method="inclusive")[-1]


def main() -> int:
    """Measure and print a table; 1 when the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--edits", type=int, default=40, help="for each file")
    parser.add_argument("--machine", default="t3e", help="a profile, or one that was calibrated")
    parser.add_argument("--file", action="append", help="only files with this in their name")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(f"time to diagnostics in ms, {given.edits} edits each, goal {GOAL_MS} ms")
    heads = (f"{head:>7}" for head in ("median", "95 %", "worst", "CPU", "95 %", "worst"))
    print(f"{'file':<36}{''.join(heads)}", flush=True)
    every = list[tuple[float, float]]()
    for name, text in examples().items():
        if not given.file or any(part in name for part in given.file):
            times = measure(given.machine, name, text, given.edits, given.seed)
            every += times
            print(row(name, times), flush=True)
    print(row("all", every))
    return int(_last([clock for clock, _ in every]) > GOAL_MS)


if __name__ == "__main__":
    sys.exit(main())
