"""The source of loop nests: where the headers of the loops stand, and what they say."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from advisor.ir.kernel import SourceContext
from advisor.ir.nests import Nest
from advisor.source import Span


@dataclass(frozen=True, slots=True)
class Header:
    """What stands between ``for`` and the colon.

    Attributes
    ----------
    span : Span
    text : str
    names : frozenset of str
        Every name in it but the index.
    function : str
        What makes the range: ``range``, or ``prange`` of numba; ``""`` where nothing is called.
    """

    span: Span
    text: str
    names: frozenset[str]
    function: str = ""

    def by(self, function: str) -> str | None:
        """Return the text with another function in its place; None where it cannot be told."""
        before, found, behind = self.text.partition(f"{self.function}(")
        return f"{before}{function}({behind}" if self.function and function and found else None


def span_of(node: ast.expr | ast.stmt, lines: list[str]) -> Span:
    """Return the span of a node, whose columns count bytes."""
    assert node.end_lineno is not None and node.end_col_offset is not None
    return Span(
        node.lineno,
        _column(lines[node.lineno - 1], node.col_offset),
        node.end_lineno,
        _column(lines[node.end_lineno - 1], node.end_col_offset),
    )


def _column(line: str, byte: int) -> int:
    return len(line.encode()[:byte].decode())


def statements_at(context: SourceContext) -> dict[tuple[int, int], ast.stmt]:
    """Return the statements of a file by where they start: line and column."""
    lines = context.lines
    try:
        tree = ast.parse(context.source)
    except SyntaxError:
        # newer than the Python that runs this
        return {}
    found: dict[tuple[int, int], ast.stmt] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            span = span_of(node, lines)
            found[span.start_line, span.start_column] = node
    return found


def is_all_of(nest: Nest, nodes: dict[tuple[int, int], ast.stmt]) -> bool:
    """Return whether the loops of the source hold nothing but what a nest says.

    Numbers of one iteration, say, stand in the values that are computed from them.
    """
    found = [nodes.get((loop.span.start_line, loop.span.start_column)) for loop in nest.loops]
    counts = [1] * (len(nest.loops) - 1) + [len(nest.body)]
    return all(
        isinstance(node, ast.For) and len(node.body) == count
        for node, count in zip(found, counts, strict=True)
    )


def headers(nest: Nest, context: SourceContext) -> tuple[Header, ...] | None:
    """Return the headers of a nest's loops, outermost first; None where they cannot be found."""
    nodes, lines = statements_at(context), context.lines
    if not is_all_of(nest, nodes):
        return None
    found: list[Header] = []
    for loop in nest.loops:
        node = nodes.get((loop.span.start_line, loop.span.start_column))
        if not isinstance(node, ast.For) or not isinstance(node.target, ast.Name):
            return None
        first, last = span_of(node.target, lines), span_of(node.iter, lines)
        span = Span(first.start_line, first.start_column, last.end_line, last.end_column)
        names = {n.id for n in ast.walk(node.iter) if isinstance(n, ast.Name)}
        function = ""
        if isinstance(node.iter, ast.Call):
            function = context.text(span_of(node.iter.func, lines))
        found.append(Header(span, context.text(span), frozenset(names), function))
    return tuple(found)


def first_line(span: Span, context: SourceContext) -> Span:
    """Return the first line of a compound statement."""
    line = context.lines[span.start_line - 1]
    return Span(span.start_line, span.start_column, span.start_line, len(line.rstrip()))
