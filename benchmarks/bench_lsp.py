"""How soon an editor has the diagnostics of a changed text.

Run from the project's directory: ``python -m benchmarks.bench_lsp``. The server runs as an
editor runs it. Files of about 500 lines are made of the kernels and programs in ``examples``,
under new names; each edit changes one random line, as a key does, and the clock runs from before
the change is sent until its diagnostics have been read. It is sent when those of the edit before
have been read, as by somebody who types and looks; a search for plans may then still be going on.
Afterwards the diagnostics of all texts that can be read are compared with what the engine says of
them, and a difference ends the run.

The columns *CPU* have what the server itself computed until then, on all its threads: median and
95 of 100 as well. On a host that others share, slow code makes both pairs of columns long, and a
busy neighbour the first pair only. A search for plans that goes on meanwhile is part of it.

Plans of several steps may come a moment later, with all diagnostics again. For some of the texts
that have one, the same edit is made once more and the clock runs until the plan is there; the
column *plans* has the median.

A machine may be the user's own, as in ``--machine here``; the store of its calibration is where
the environment variable ``ADVISE_DATA_DIR`` says, or in the usual place.

Three kinds of edits, a row for each: *layout* types blanks, comments and brackets in functions;
*kernel* puts another operator, operand or number in place of one inside a function, so that its
costs are asked again; *frame* changes a number or an import outside all functions, which every
kernel of the file rests on and so is analysed again. Files of many kernels take as much longer
then as they have kernels: those rows have no goal.

Goal: within 100 ms for 95 of 100 edits of layout and in kernels.
"""

from __future__ import annotations

import argparse
import ast
import io
import random
import re
import statistics
import sys
import tempfile
import time
import tokenize
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from advisor.edits import split_lines
from advisor.engine import Options
from advisor.lsp.memory import KernelMemory
from advisor.source import SourceProblem
from tests.lsp.wire import Wire

_OTHER = {"+": "-", "-": "+", "*": "+", "+=": "-=", "-=": "+="}
"""Operators, each with one that may stand in its place."""

KINDS = ("layout", "kernel", "frame")

EXAMPLES = Path(__file__).parent.parent / "examples"
LINES = 500
GOAL_MS = 100
PATH = "/kernels/bench.py"
URI = f"file://{PATH}"
PLANS_TIMED = 5
"""Edits for which the wait for a plan is measured."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Text in place of what stands from `start` to before `end` of a line, all from 0."""

    line: int
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Kernel:
    """One example: what stands around its functions and classes, and they themselves."""

    name: str
    frame: str
    functions: tuple[tuple[str, str], ...]


def examples() -> list[Kernel]:
    """Return the annotated examples, and the programs for MPI."""
    found = []
    for path in (*sorted(EXAMPLES.glob("*.py")), *sorted(EXAMPLES.glob("mpi/*.py"))):
        source = path.read_text(encoding="utf-8")
        lines = split_lines(source)
        frame, functions = [], []
        for node in ast.parse(source).body:
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
            text = "".join(lines[first - 1 : node.end_lineno])
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                functions.append((node.name, text))
            elif not isinstance(node, ast.If) and not _is_docstring(node):
                frame.append(text)
        name = str(path.relative_to(EXAMPLES).with_suffix(""))
        found.append(Kernel(name, "".join(frame), tuple(functions)))
    return found


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def file_of(kernel: Kernel) -> str:
    """Return a file of copies of an example; those of one copy call each other."""
    text, copy = kernel.frame, 0
    own = re.compile(rf"\b({'|'.join(name for name, _ in kernel.functions)})\b")
    while text.count("\n") < LINES:
        for _, function in kernel.functions:
            text += "\n\n" + own.sub(rf"\1_{copy}", function)
        copy += 1
    return text


class Session:
    """A server with one open file."""

    def __init__(self, machine: str, text: str, log: IO[bytes]) -> None:
        capabilities = {
            "general": {"positionEncodings": ["utf-32"]},
            "textDocument": {"publishDiagnostics": {"versionSupport": True}},
        }
        self.wire = Wire(machine, log, capabilities)
        self.version = 1
        self.wire.open(URI, text)
        self.diagnostics()

    def edit(self, edit: Edit) -> None:
        """Type something, in place of something on the same line."""
        start = {"line": edit.line, "character": edit.start}
        end = {"line": edit.line, "character": edit.end}
        self._change({"range": {"start": start, "end": end}, "text": edit.text})

    def replace(self, text: str) -> None:
        """Put another text in place of all."""
        self._change({"text": text})

    def _change(self, change: dict[str, Any]) -> None:
        self.version += 1
        self.wire.change(URI, self.version, [change])

    def diagnostics(self, *, plan: bool = False) -> Said:
        """Wait for the diagnostics of the newest version, or for those with a plan."""
        while True:
            message = self.wire.read()
            if message.get("method") == "textDocument/publishDiagnostics":
                parameters = message["params"]
                if parameters["version"] == self.version:
                    found = sorted(map(_said, parameters["diagnostics"]))
                    if not plan or any(PLAN in text for *_, text in found):
                        return found


PLAN = "best plan"
Said = list[tuple[int, int, str, str]]
"""Line and column from 0, code and message of diagnostics."""


def _said(item: dict[str, Any]) -> tuple[int, int, str, str]:
    start = item["range"]["start"]
    return start["line"], start["character"], item.get("code", ""), item["message"]


@dataclass(frozen=True, slots=True)
class Measured:
    """What edits took.

    Attributes
    ----------
    times_ms : list of float
        Of every edit.
    cpu_ms : list of float
        What the server computed meanwhile; empty where the system does not tell.
    readable : float
        The share that left the file readable.
    plans_ms : list of float
        Of some edits, until there was a plan too.
    """

    times_ms: list[float]
    cpu_ms: list[float]
    readable: float
    plans_ms: list[float]


class Wrong(AssertionError):
    """An answer is not what the engine says."""


class Reference:
    """What the engine says of texts, in this process."""

    def __init__(self, machine: str) -> None:
        self.options = Options(machine, {}, (), (), None, details=False)
        self.memory = KernelMemory()

    def checked(self, text: str, found: Said) -> bool:
        """Return whether a text has a plan; refuse first diagnostics that are not the engine's.

        Raises
        ------
        Wrong
        """
        try:
            result = self.memory.check(PATH, text, self.options)
        except SourceProblem:
            return False
        wanted = [(one.span, one.code, one.message) for one in result.findings]
        wanted += [(one.span, "", one.message) for one in result.remarks]
        said = sorted((s.start_line - 1, s.start_column, c, m) for s, c, m in wanted)
        for one in said:
            if one not in found and PLAN not in one[-1]:
                raise Wrong(f"not told: {one}")
        for one in found:
            if one not in said:
                raise Wrong(f"told: {one}")
        return any(PLAN in text for *_, text in said)


def measure(machine: str, text: str, kind: str, edits: int, seed: int) -> Measured | None:
    """Return the times of edits; None where a file has no place for edits of this kind.

    Raises
    ------
    Wrong
        A text was answered otherwise than the engine does.
    """
    source = random.Random(seed)
    places = _places(text, kind)
    if not places:
        return None
    lines = text.split("\n")
    times, computed, made = list[float](), list[float](), list[tuple[Edit, str, Said]]()
    with tempfile.TemporaryFile() as log:
        session = Session(machine, text, log)
        for number in range(edits):
            if kind == "layout":
                edit = _typed(source, source.choice(places).line, lines, number)
            else:
                edit = _changed(source, source.choice(places), text, number)
            line = lines[edit.line]
            lines[edit.line] = line[: edit.start] + edit.text + line[edit.end :]
            before, started = session.wire.cpu_s(), time.perf_counter()
            session.edit(edit)
            found = session.diagnostics()
            times.append(1e3 * (time.perf_counter() - started))
            after = session.wire.cpu_s()
            if before is not None and after is not None:
                computed.append(1e3 * (after - before))
            made.append((edit, "\n".join(lines), found))
            # taken back, so that most texts can be read, and stay like the example
            if kind != "layout" or edit.text == "(":
                lines = text.split("\n")
                session.replace(text)
                session.diagnostics()
        session.wire.stop()
    readable = [(edit, new, found) for edit, new, found in made if _parses(new)]
    reference = Reference(machine)
    planned = [edit for edit, new, found in readable if reference.checked(new, found)]
    again = list(dict.fromkeys(planned))[:PLANS_TIMED] if kind == "kernel" else []
    return Measured(times, computed, len(readable) / edits, _until_planned(machine, text, again))


def _until_planned(machine: str, text: str, edits: list[Edit]) -> list[float]:
    """Return how long it takes until an edit's plan is there, in ms."""
    if not edits:
        return []
    times = []
    with tempfile.TemporaryFile() as log:
        session = Session(machine, text, log)
        for edit in edits:
            started = time.perf_counter()
            session.edit(edit)
            session.diagnostics(plan=True)
            times.append(1e3 * (time.perf_counter() - started))
            session.replace(text)
            session.diagnostics()
        session.wire.stop()
    return times


def _typed(source: random.Random, place: int, lines: list[str], number: int) -> Edit:
    """Return a key and where it falls: mostly harmless ones, or all answers were short ones."""
    column, text = _key(source, lines[place], number)
    return Edit(place, column, column, text)


def _key(source: random.Random, line: str, number: int) -> tuple[int, str]:
    kind = source.random()
    if kind < 0.04:
        return len(line), "("
    if kind < 0.5 and line.strip() and not line.rstrip().endswith('"""') and "#" not in line:
        return len(line), f"  # {number}"
    indent = len(line) - len(line.lstrip())
    blanks = [place for place in range(indent, len(line)) if line[place] == " "]
    return (source.choice(blanks), " ") if blanks else (len(line), " ")


def _places(text: str, kind: str) -> list[Edit]:
    """Return what an edit of a kind may take the place of, as edits that change nothing."""
    made = ast.FunctionDef | ast.ClassDef
    functions = [node for node in ast.parse(text).body if isinstance(node, made)]
    bodies, whole_functions = set[int](), set[int]()
    for node in functions:
        first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
        whole_functions.update(range(first, (node.end_lineno or first) + 1))
        bodies.update(range(node.body[0].lineno, (node.end_lineno or first) + 1))
    if kind == "layout":
        return [Edit(line - 1, 0, 0, "") for line in sorted(whole_functions)]
    found = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        (row, start), (_, end) = token.start, token.end
        whole = token.type == tokenize.NUMBER and token.string.isdigit()
        if kind == "kernel" and row in bodies:
            if whole or token.string in _OTHER:
                found.append(Edit(row - 1, start, end, token.string))
        elif kind == "frame" and row not in whole_functions and (whole or _imports(token)):
            found.append(Edit(row - 1, start, end, token.string))
    return found


def _imports(token: tokenize.TokenInfo) -> bool:
    """Return whether a token is of an import on one line."""
    return token.string == "import" and "(" not in token.line


def _changed(source: random.Random, place: Edit, text: str, number: int) -> Edit:
    """Return an edit that changes what stands at a place."""
    if place.text == "import":
        line = text.split("\n")[place.line]
        return Edit(place.line, len(line), len(line), f"; import abc as abc_{number}")
    if place.text in _OTHER:
        return replace(place, text=_OTHER[place.text])
    return replace(place, text=str(int(place.text) + source.randint(1, 3)))


def _middle_and_end(times_ms: list[float]) -> tuple[float, float]:
    """Return the median, and what 95 of 100 stay below."""
    return statistics.median(times_ms), statistics.quantiles(times_ms, n=20)[-1]


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def main() -> int:
    """Measure and print a table; 1 when the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--edits", type=int, default=60, help="for each file")
    parser.add_argument("--machine", default="t3e", help="a profile, or one that was calibrated")
    parser.add_argument("--kernel", action="append", help="only these examples")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only these edits")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(f"time to diagnostics in ms, {given.edits} edits each")
    print(
        f"{'file of':<18} {'edits':<7} lines  median    95 %  CPU median    95 %   plans"
        f"   goal {GOAL_MS} ms"
    )
    missed = False
    for kernel in examples():
        if given.kernel and kernel.name not in given.kernel:
            continue
        text = file_of(kernel)
        for kind in given.kind or KINDS:
            found = measure(given.machine, text, kind, given.edits, given.seed)
            if found is None:
                continue
            median, worst = _middle_and_end(found.times_ms)
            told_cpu = "         -       -"
            if found.cpu_ms:
                told_cpu = "{:>10.0f} {:>7.0f}".format(*_middle_and_end(found.cpu_ms))
            plans = f"{statistics.median(found.plans_ms):.0f}" if found.plans_ms else "-"
            kept = worst <= GOAL_MS
            missed |= not kept and kind != "frame"
            told = "every kernel again" if kind == "frame" else "kept" if kept else "missed"
            print(
                f"{kernel.name:<18} {kind:<7} {text.count(chr(10)):>5} {median:>7.0f} {worst:>7.0f}"
                f"  {told_cpu} {plans:>7}   {told} ({found.readable:.0%} of the texts readable)",
                flush=True,
            )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
