"""Tables for people: columns as wide as their widest cell, numbers to the right."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.report.style import Style, display_width, one_line


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: int, style: Style) -> str:
    """Return lines with a head; the first `left` columns are text, the others numbers."""
    shown = [[one_line(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(display_width(row[column]) for row in shown) for column in range(len(heads))]
    lines = []
    for row in shown:
        cells = []
        for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
            gap = " " * (width - display_width(cell))
            cells.append(cell + gap if column < left else gap + cell)
        lines.append("  ".join(cells).rstrip())
    lines[0] = style.paint(lines[0], "dim")
    return "".join(f"{line}\n" for line in lines)
