"""Writing source: lines in the place of others."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from io import StringIO
from keyword import iskeyword
from tokenize import COMMENT, generate_tokens

from advisor.ir.kernel import SourceContext, lines_of
from advisor.source import Edit, Span, walked
from advisor.source import fresh_name as fresh_name
from advisor.source import span_of as span_of
from advisor.source import tree_of as tree_of

Edits = Callable[[], tuple[Edit, ...]]
"""Builds edits when somebody looks at them."""


# --- where statements stand ---------------------------------------------------------------------


def indent_at(span: Span, context: SourceContext) -> str:
    """Return what stands before a place on its line."""
    return context.lines[span.start_line - 1][: span.start_column]


def starts_line(span: Span, context: SourceContext) -> bool:
    """Return whether nothing but blanks stands before a place on its line."""
    return not indent_at(span, context).strip()


def stands_alone(context: SourceContext, span: Span) -> bool:
    """Return whether nothing but blanks and a comment shares the lines of a statement."""
    lines = context.lines
    after = lines[span.end_line - 1][span.end_column :].strip()
    continued = span.start_line > 1 and lines[span.start_line - 2].endswith("\\")
    return starts_line(span, context) and not continued and (not after or after.startswith("#"))


def before(span: Span) -> Span:
    """Return the empty place at which a stretch of source begins."""
    return Span(span.start_line, span.start_column, span.start_line, span.start_column)


def parenthesised(span: Span, context: SourceContext) -> Span:
    """Return an expression with the parentheses around it, unless they hold more, or call."""
    lines, (first, start), (last, end) = context.lines, span.start, span.end
    while first > 1 and not lines[first - 1][:start].strip():
        first, start = first - 1, len(lines[first - 2])
    while last < len(lines) and not lines[last - 1][end:].strip():
        last, end = last + 1, 0
    ahead, behind = lines[first - 1][:start].rstrip(), lines[last - 1][end:]
    before, end = ahead[:-1].rstrip(), end + len(behind) - len(behind.lstrip())
    word = re.split(r"\W", before)[-1]
    apart = len(before) < len(ahead) - 1 and iskeyword(word)
    called = not apart if word else before.endswith((")", "]", "}", '"', "'"))
    if not (ahead.endswith("(") and behind.lstrip().startswith(")")) or called or "#" in before:
        return span
    return Span(first, len(ahead) - 1, last, end + 1)


def line_of(first: int, last: int | None = None) -> Span:
    """Return a whole line, or several, their ends included."""
    return Span(first, 0, (last or first) + 1, 0)


def stretch(first: Span, last: Span) -> Span:
    """Return all from where one place begins to where another one ends."""
    return Span(first.start_line, first.start_column, last.end_line, last.end_column)


def first_line(span: Span, context: SourceContext) -> Span:
    """Return the first line of a compound statement."""
    line = context.lines[span.start_line - 1]
    return Span(span.start_line, span.start_column, span.start_line, len(line.rstrip()))


def statements_at(context: SourceContext) -> Mapping[tuple[int, int], ast.stmt]:
    """Return the statements of a file by where they start: line and column."""
    return _statements_of(context.source)


@lru_cache(maxsize=4)
def _statements_of(source: str) -> Mapping[tuple[int, int], ast.stmt]:
    lines = lines_of(source)
    found = ((span_of(n, lines), n) for n in nodes_of(source) if isinstance(n, ast.stmt))
    return {(span.start_line, span.start_column): node for span, node in found}


def nodes_of(source: str) -> tuple[ast.AST, ...]:
    """Return every node of a file's tree, as `ast.walk` has them."""
    return walked(tree_of(source))


def _suites_of(source: str) -> Mapping[tuple[int, int], tuple[list[ast.stmt], int]]:
    found: dict[tuple[int, int], tuple[list[ast.stmt], int]] = {}
    lines = lines_of(source)
    for parent in nodes_of(source):
        for part in ("body", "orelse", "finalbody"):
            nodes = getattr(parent, part, None)
            if not isinstance(nodes, list):
                continue  # of a lambda or a conditional expression
            for at, node in enumerate(nodes):
                span = span_of(node, lines)
                found[span.start_line, span.start_column] = (nodes, at)
    return found


def suite_at(span: Span, context: SourceContext) -> tuple[list[ast.stmt], int] | None:
    """Return the statements that the one which starts where a span does stands among, and where."""
    return _suites_of(context.source).get((span.start_line, span.start_column))


def statement_at(span: Span, context: SourceContext) -> ast.stmt | None:
    """Return the statement that starts where a span does."""
    return statements_at(context).get((span.start_line, span.start_column))


# --- edits --------------------------------------------------------------------------------------


def comments_within(place: Span, source: str) -> list[str]:
    """Return the comments that stand in a stretch of source, which an edit would lose."""
    return [
        token.string
        for token in generate_tokens(StringIO(source).readline)
        if token.type == COMMENT and place.contains(Span(*token.start, *token.end))
    ]


def in_place_of(place: Span, lines: list[str], context: SourceContext) -> Edits:
    """Return what puts lines in the place of a stretch of source, its comments kept above them."""
    return partial(_in_place_of, place, lines, context)


def _in_place_of(place: Span, lines: list[str], context: SourceContext) -> tuple[Edit, ...]:
    kept = comments_within(place, context.source)
    return (Edit(place, f"\n{indent_at(place, context)}".join([*kept, *lines])),)


def without_statement(place: Span, context: SourceContext) -> tuple[Edit, ...]:
    """Return what leaves out a statement, or puts `pass` where there is no other."""
    nodes, _ = suite_at(place, context) or ([], 0)
    line = line_of(place.start_line, place.end_line)
    # all may be left out, one by one
    calls = all(isinstance(getattr(one, "value", None), ast.Call) for one in nodes)
    if (calls and nodes[0].lineno == place.start_line) or comments_within(line, context.source):
        return _in_place_of(place, ["pass"], context)
    return (Edit(line, ""),)


def with_calls(node: ast.AST, texts: Mapping[str, str]) -> str:
    """Return a piece of source with names in the place of some calls."""

    class Replaced(ast.NodeTransformer):
        def visit_Call(self, call: ast.Call) -> ast.expr:
            text = texts.get(ast.unparse(call))
            if text is None:
                self.generic_visit(call)
            return call if text is None else ast.Name(text, ast.Load())

    return ast.unparse(Replaced().visit(ast.parse(ast.unparse(node))))


def together(*edits: Edits) -> Edits:
    """Return what makes several edits at once."""
    return lambda: tuple(edit for each in edits for edit in each())


def replace_statement(span: Span, lines: list[str], context: SourceContext) -> Edit:
    """Return the edit that puts `lines` in the place of a statement of a kernel.

    Comments within the statement come before the new lines. With no lines and no comments the
    statement's own line goes, unless a comment follows on it.
    """
    source_lines = context.lines
    indent = indent_at(span, context)
    kept = [context.text(comment) for comment in context.comments if span.contains(comment)]
    rest = source_lines[span.end_line - 1][span.end_column :]
    if not lines and rest.strip():
        # a comment follows, and takes the place of the statement
        column = span.end_column + len(rest) - len(rest.lstrip())
        above = "".join(f"{comment}\n{indent}" for comment in kept)
        return Edit(Span(span.start_line, span.start_column, span.end_line, column), above)
    if lines or kept:
        return Edit(span, f"\n{indent}".join([*kept, *lines]))
    return Edit(Span(span.start_line, 0, span.end_line + 1, 0), "")
