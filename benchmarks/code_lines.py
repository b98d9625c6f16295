"""Count what the house consists of: lines of code, without blanks, comments and docstrings.

``python -m benchmarks.code_lines [REVISION]`` prints lines and files of each room, and where a git
revision is named, those of that revision beside them.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PRODUCT = ("advisor", "transforms", "costdb")
ROOMS = (*PRODUCT, "tests", "benchmarks")

_SILENT = frozenset(
    {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
)
_WITH_DOCSTRING = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def code_lines(text: str) -> int:
    """Return how many lines of a module hold code."""
    documented: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            documented.update(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
    held: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _SILENT:
            held.update(range(token.start[0], token.end[0] + 1))
    return len(held - documented)


def counted(modules: Iterable[tuple[str, str]]) -> dict[str, tuple[int, int]]:
    """Return lines and files of each room, of modules given by path and text."""
    found = dict.fromkeys(ROOMS, (0, 0))
    for path, text in modules:
        room = path.partition("/")[0]
        if room in found:
            lines, files = found[room]
            found[room] = lines + code_lines(text), files + 1
    return found


def here() -> Iterator[tuple[str, str]]:
    """Yield the modules of the work tree that git knows or would."""
    listed = _git("ls-files", "--cached", "--others", "--exclude-standard", "*.py")
    for path in dict.fromkeys(listed.splitlines()):
        if (ROOT / path).exists():
            yield path, (ROOT / path).read_text()


def at(revision: str) -> Iterator[tuple[str, str]]:
    """Yield the modules of a revision."""
    for path in _git("ls-tree", "-r", "--name-only", revision).splitlines():
        if path.endswith(".py"):
            yield path, _git("show", f"{revision}:{path}")


def _git(*words: str) -> str:
    done = subprocess.run(("git", *words), cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def main(arguments: list[str]) -> None:
    """Print the table."""
    now = counted(here())
    before = counted(at(arguments[0])) if arguments else None
    groups = {"product": PRODUCT, **{room: (room,) for room in ROOMS}}
    for name, rooms in groups.items():
        lines, files = (sum(now[room][part] for room in rooms) for part in (0, 1))
        row = f"{name:<12}{lines:>8,} lines {files:>5} files"
        if before is not None:
            was, were = (sum(before[room][part] for room in rooms) for part in (0, 1))
            row += f"   {lines - was:+8,} lines {files - were:+5} files"
        print(row)


if __name__ == "__main__":
    main(sys.argv[1:])
