"""Small pieces of Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"([\\|*_<>\[\]])")
_PAGE = re.compile(r"(?<![\w`/(])docs/((?:[\w-]+/)*[\w-]+\.md)")
_BACKTICKED = re.compile(r"(`[^`]*`)")


def plain(text: str) -> str:
    """Return text from elsewhere so that it reads as it is; code in backticks stays code."""
    parts = _BACKTICKED.split(" ".join(text.split()))
    return "".join(
        part.replace("|", "\\|") if part.startswith("`") else _SPECIAL.sub(r"\\\1", part)
        for part in parts
    )


def code(text: str) -> str:
    """Return text as a code span."""
    return f"`{text}`"


def number(value: object) -> str:
    """Return a JSON number in the digits that its document has."""
    return json.dumps(value)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose cells are Markdown already."""
    lines = [f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def fence(text: str, language: str) -> str:
    """Return a code block; the fence is longer than any within."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    ticks = "`" * (longest + 1)
    return f"{ticks}{language}\n{text.rstrip()}\n{ticks}\n"


def first_sentence(text: str) -> str:
    """Return the first sentence of the first paragraph of running text."""
    paragraph = next((p for p in text.split("\n\n") if p.strip() and not p.startswith("#")), "")
    return re.split(r"(?<=[.:])\s", " ".join(paragraph.split()) + " ", maxsplit=1)[0].rstrip(":.")


def to_pages(markdown: str, depth: int) -> str:
    """Link each mention of a file of ``docs`` to its page.

    Parameters
    ----------
    markdown : str
        Without links of its own.
    depth : int
        Folders that the page is in which it stands.
    """
    return _PAGE.sub(rf"[\g<0>]({'../' * depth}\1)", markdown)
