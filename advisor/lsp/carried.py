"""Findings of an earlier text, on the lines of the present one that are still the same.

While a line is half typed the file does not parse, and LibCST recovers nothing. Advice on lines
that nobody touched stays on the screen, where those lines are now; the rest is withheld.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from advisor.finding import Finding, Remark
from advisor.source import Span

Spanned = TypeVar("Spanned", Finding, Remark)


def carried(items: Iterable[Spanned], origins: Sequence[int | None]) -> Iterator[Spanned]:
    """Yield the items whose lines are all untouched and still together, where they are now.

    Parameters
    ----------
    items : iterable of Finding or Remark
        About the marked text.
    origins : sequence of (int or None)
        See :class:`advisor.lsp.document.Document`.
    """
    now = {origin: line for line, origin in enumerate(origins) if origin is not None}
    for item in items:
        span = item.span
        first = now.get(span.start_line - 1)
        if first is None:
            continue
        shift = first + 1 - span.start_line
        lines = range(span.start_line - 1, span.end_line)
        if all(now.get(line) == line + shift for line in lines):
            moved = Span(
                span.start_line + shift,
                span.start_column,
                span.end_line + shift,
                span.end_column,
            )
            yield replace(item, span=moved)
