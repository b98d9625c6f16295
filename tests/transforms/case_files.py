"""Rule tests as data: programs, and programs that differ from them in some lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

CASES = Path(__file__).parent / "cases"


@dataclass(frozen=True)
class Changed:
    """A program with some lines changed."""

    title: str
    base: str
    source: str
    may_be_shown: bool


def read(path: Path) -> str:
    return path.read_bytes().decode("utf-8")


def sections(path: Path) -> list[tuple[str, str]]:
    """Return what stands below each line ``=== head`` of a document, with its head."""
    parts = iter(re.split(r"^=== (.*)\n", read(path), flags=re.M)[1:])
    return [(head, next(parts).rstrip("\n") + "\n") for head in parts]


def bodies(file: str, verdict: str) -> dict[str, tuple[str, str]]:
    """Return bodies of functions by their titles, and what stands below their ``---``."""
    parts = (
        (head.removesuffix(f": {verdict}"), head, text) for head, text in sections(CASES / file)
    )
    split = {title: text.partition("---\n") for title, head, text in parts if title != head}
    return {title: (text, below) for title, (text, _, below) in split.items()}


def changed(code: str, file: str) -> list[Changed]:
    """Return the programs that a text file describes by their differences."""
    folder = CASES / code
    _, *sections = ("\n" + read(folder / file)).split("\n== ")
    return [_changed(folder, section) for section in sections]


def _changed(folder: Path, section: str) -> Changed:
    title, *lines = section.rstrip("\n").split("\n")
    base = lines.pop(0).removeprefix("from ")
    may_be_shown = bool(lines) and lines[0] == "no edit"
    if may_be_shown:
        lines.pop(0)
    source = read(folder / f"{base}.py")
    while lines:
        old = _block(lines, "-")
        new = _block(lines, "+")
        assert old, f"{title}: no line starts with - or +: {lines[:1]}"
        assert ("\n" + source).count("\n" + old) == 1, f"{title}: {old!r} is not there once"
        source = source.replace(old, new, 1)
    return Changed(title, base, source, may_be_shown)


def _block(lines: list[str], mark: str) -> str:
    taken = ""
    while lines and lines[0].startswith(mark):
        taken += lines.pop(0)[1:] + "\n"
    return taken
