"""After any edits a server says of a text what advise says of it."""

from __future__ import annotations

import random
import re
import tempfile
import tokenize
from collections.abc import Iterator
from typing import IO, Any

import pytest

from advisor.engine import Options, check_source
from advisor.frontend.trees import tree_of
from advisor.report.model import headline
from advisor.source import SourceProblem
from benchmarks.bench_lsp import drawn_edits, examples
from tests.lsp.typed_files import PLANNED, PROGRAM
from tests.lsp.wire import Wire

MACHINE = "t3e"
FILES = {
    **{name: text for name, text in examples().items() if "gauss" not in name},  # as below
    "program.py": PROGRAM,
    "several.py": PLANNED + PROGRAM.replace("import numpy as np\n", "") + "# advise: trip 3\n",
}
TYPED = (
    "(", '"""', "😀", "\r\n", "\n", "\n\n", "    ", "\t", "# advise: ignore[ADV101]",
    "# 👩‍🚀 \f \u2028",
    "N = 50\n", "import numpy as np\n", "def more():\n    global N\n\n", "\0", "@kernel(N=10)\n",
)  # fmt: skip
STEPS = 2
Change = tuple[int, int, str]
"""Offsets and the text between them."""


def changes(text: str, source: random.Random) -> Iterator[Change]:
    """Yield changes of a text, each of what the ones before made of it."""
    while True:
        try:
            edit = next(drawn_edits(text, source))
            start = sum(len(line) + 1 for line in text.split("\n")[: edit.line]) + edit.start
            change = start, start + edit.end - edit.start, edit.text
        except (SyntaxError, LookupError, ValueError, tokenize.TokenError):
            change = 0, len(text), ""
        kind = source.random()
        if kind < 0.3:
            here = source.randrange(len(text) + 1)
            change = here, min(len(text), here + source.choice((0, 0, 1, 9))), source.choice(TYPED)
        elif kind < 0.45:
            lines = [one.start() for one in re.finditer("^", text, re.MULTILINE)]
            here, there = sorted(source.choices((*lines, len(text)), k=2))
            change = here, min(there, here + 80), source.choice(("", text[here:there]))
        start, end, new = change
        # an editor puts its cursor before a line end, not into one
        start, end = (at + (text[at - 1 : at + 1] == "\r\n") for at in (start, end))
        text = text[:start] + new + text[end:]
        yield start, end, new


class Editor:
    """A server, and files that are typed at."""

    def __init__(self, log: IO[bytes]) -> None:
        capabilities: dict[str, Any] = {
            "general": {"positionEncodings": ["utf-16"]},
            "textDocument": {"diagnostic": {}},
        }
        self.server = Wire(MACHINE, log, capabilities)
        self.versions: dict[str, int] = {}

    def open(self, name: str, text: str) -> None:
        self.versions[name] = 1
        self.server.open(f"file:///kernels/{name}", text)

    def change(self, name: str, text: str, change: Change) -> str:
        """Change a file, and return its text."""
        start, end, new = change
        self.versions[name] += 1
        between = {"start": place(text, start), "end": place(text, end)}
        item = {"range": between, "text": new}
        self.server.change(f"file:///kernels/{name}", self.versions[name], [item])
        return text[:start] + new + text[end:]

    def said(self, name: str) -> list[dict[str, Any]]:
        """Return all diagnostics of a file as it is now."""
        identifier = {"textDocument": {"uri": f"file:///kernels/{name}"}}
        report = self.server.ask("textDocument/diagnostic", identifier)
        return list(report["items"])


def place(text: str, offset: int) -> dict[str, int]:
    """Return a place as the protocol counts by UTF-16, worked out without the server's code."""
    *above, line = re.split(r"\r\n|\n|\r", text[:offset])
    return {"line": len(above), "character": len(line.encode("utf-16-le")) // 2}


def by_engine(name: str, text: str) -> list[tuple[int, str, str]] | None:
    """Return lines, codes and messages of what ``advise`` says, with nothing at hand from before.

    None where the text cannot be read.
    """
    tree_of.cache_clear()
    try:
        found = check_source(
            f"/kernels/{name}", text, Options(MACHINE, {}, (), (), None, details=False, plans=False)
        )
    except SourceProblem:
        return None
    told = [(one.span.start_line, one.code, headline(one)) for one in found.findings]
    told += [(one.span.start_line, "", one.message) for one in found.remarks]
    return sorted(told)


@pytest.mark.parametrize("seed", range(2))
def test_what_is_said_after_any_edits_is_what_advise_says(seed: int) -> None:
    source = random.Random(seed)
    names = [name for number, name in enumerate(reversed(FILES)) if number % 6 == seed]
    texts, compared = {name: FILES[name] for name in names}, 0
    with tempfile.TemporaryFile() as log:
        editor = Editor(log)
        for name, text in texts.items():
            editor.open(name, text)
        for _ in range(STEPS):
            for name, text in texts.items():
                drawn = changes(text, source)
                for _ in range(source.randint(1, 3)):
                    texts[name] = editor.change(name, texts[name], next(drawn))
                wanted = by_engine(name, texts[name])
                if not wanted:
                    # what is not read keeps some findings; it is put back for the next edits
                    assert wanted is None or editor.said(name) == []
                    whole = (0, len(texts[name]), FILES[name])
                    texts[name] = editor.change(name, texts[name], whole)
                    wanted = by_engine(name, texts[name])
                found = [
                    (one["range"]["start"]["line"] + 1, one.get("code", ""), one["message"])
                    for one in editor.said(name)
                ]
                assert sorted(found) == wanted, texts[name]
                compared += bool(wanted)
        editor.server.stop()
    assert compared > STEPS
