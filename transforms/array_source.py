"""Source of array statements, made from the source of statements on elements."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from advisor.ir.kernel import Kernel
from advisor.ir.nests import Nest
from advisor.ir.statements import Store
from advisor.ir.values import Point, Read, Subscript, reads
from advisor.source import Edit, Span
from costdb.expr import num
from transforms.nest_source import span_of, statements_at
from transforms.writing import python_text, replace_statement, stands_alone

ZERO = num(0)


def vector_edits(
    nest: Nest, outer: int, stores: tuple[Store, ...], kernel: Kernel
) -> tuple[Edit, ...]:
    """Return the edit that puts array statements in the place of a nest's inner loops.

    Empty where the source does not show what the intermediate form says of it.
    """
    context, span = kernel.context, nest.loops[outer].span
    nodes = statements_at(context)
    texts: list[str] = []
    for old, new in zip(nest.body, stores, strict=True):
        node = nodes.get((old.span.start_line, old.span.start_column))
        text = None if node is None else _statement(node, old, new, kernel)
        if text is None:
            return ()
        texts.append(text)
    if not stands_alone(context, span):
        return ()
    return (replace_statement(span, texts, context),)


def _statement(node: ast.stmt, old: Store, new: Store, kernel: Kernel) -> str | None:
    """Return a statement with slices for the elements it names."""
    if not isinstance(node, ast.Assign | ast.AugAssign) or old.span.start_line != old.span.end_line:
        return None
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    before, after = list(reads(old.value)), list(reads(new.value))
    if isinstance(node, ast.AugAssign):
        before, after = before[1:], after[1:]
    before.append(Read(old.array, old.region))
    after.append(Read(new.array, new.region))
    found = [*_elements(node.value), *_elements(target)]
    if [name for name, _ in found] != [read.array for read in before]:
        return None
    lines = kernel.context.lines
    edits: list[tuple[Span, str]] = []
    for (_, subscript), one, other in zip(found, before, after, strict=True):
        parts = _indices(subscript)
        if len(parts) != len(one.region):
            return None
        for part, was, becomes in zip(parts, one.region, other.region, strict=True):
            if was == becomes:
                continue
            text = _slice(becomes, kernel)
            if text is None:
                return None
            edits.append((span_of(part, lines), text))
    line = lines[old.span.start_line - 1]
    for span, text in sorted(edits, reverse=True):
        line = line[: span.start_column] + text + line[span.end_column :]
    end = len(line) - (len(lines[old.span.start_line - 1]) - old.span.end_column)
    return line[old.span.start_column : end]


def _elements(node: ast.expr) -> Iterator[tuple[str, ast.Subscript]]:
    """Yield the subscripts of names, in the order of the source."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        yield node.value.id, node
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield from _elements(child)


def _indices(node: ast.Subscript) -> list[ast.expr]:
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def _slice(part: Subscript, kernel: Kernel) -> str | None:
    if isinstance(part, Point):
        return None
    texts = kernel.context.scalar_texts
    low = "" if part.low == ZERO else python_text(part.low, texts)
    high = python_text(part.high, texts)
    if low is None or high is None:
        return None
    if "max(" in high and "max" in kernel.context.not_builtins:
        return None
    return f"{low}:{high}"
