"""Markdown that shows text as it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$])")


def plain(text: str) -> str:
    """Return `text` so that Markdown shows it on one line as it is."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; all columns but the first and the last hold numbers."""
    rule = [":--", *("--:" for _ in head[1:-1]), ":--"]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))
