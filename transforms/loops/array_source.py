"""Source of array statements, made from the source of statements on elements."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from advisor.ir.kernel import Kernel
from advisor.ir.nests import Nest
from advisor.ir.statements import Store
from advisor.ir.values import Point, Range, Read, Subscript, reads
from advisor.source import Edit, Span
from costdb.expr import num
from transforms.loops.slices import shown_reads
from transforms.source.nest_source import is_all_of, span_of, statements_at
from transforms.source.writing import python_text, replace_statement, stands_alone

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
    if not is_all_of(nest, nodes):
        return ()
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
    before, after = list(reads(old.value)), shown_reads(new.value)
    if isinstance(node, ast.AugAssign):
        before, after = before[1:], after[1:]
    before.append(Read(old.array, old.region))
    after.append((Read(new.array, new.region), 0))
    edits = slice_edits((node.value, target), before, after, kernel)
    if edits is None:
        return None
    return edited(old.span, edits, kernel)


def slice_edits(
    nodes: tuple[ast.expr, ...], before: list[Read], after: list[tuple[Read, int]], kernel: Kernel
) -> list[tuple[Span, str]] | None:
    """Return the edits that make slices of the elements in some expressions.

    None where the source does not show the elements, in this order, or computes with numbers only.

    Parameters
    ----------
    nodes : tuple of ast.expr
    before : list of Read
        The elements.
    after : list of (Read, int)
        The slices that they become, and how many new axes follow each.
    kernel : Kernel
    """
    found = [element for node in nodes for element in _elements(node)]
    if [name for name, _ in found] != [read.array for read in before]:
        return None
    if any(_of_numbers(part, kernel) for node in nodes for part in ast.walk(node)):
        return None
    lines = kernel.context.lines
    edits: list[tuple[Span, str]] = []
    for (_, subscript), one, (other, added) in zip(found, before, after, strict=True):
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
        if added:
            last = span_of(parts[-1], lines)
            kept = dict(edits).get(last, kernel.context.text(last))
            edits = [edit for edit in edits if edit[0] != last]
            edits.append((last, kept + ", None" * added))
    return edits


def edited(span: Span, edits: list[tuple[Span, str]], kernel: Kernel) -> str:
    """Return the text of a span on one line, after edits of that line."""
    original = line = kernel.context.lines[span.start_line - 1]
    for part, text in sorted(edits, reverse=True):
        if span.contains(part):
            line = line[: part.start_column] + text + line[part.end_column :]
    end = len(line) - (len(original) - span.end_column)
    return line[span.start_column : end]


def _of_numbers(node: ast.AST, kernel: Kernel) -> bool:
    """Return whether a call takes numbers only, or may, or a choice needs one."""
    if isinstance(node, ast.IfExp):
        return True
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    if isinstance(called, ast.Name):
        return called.id != "abs"
    base = called
    while isinstance(base, ast.Attribute):
        base = base.value
    return not (isinstance(base, ast.Name) and base.id == kernel.context.array_module)


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


def sliced_text(read: Read, kernel: Kernel) -> str | None:
    """Return the source of a region; None where a bound has no name in the source."""
    texts = kernel.context.scalar_texts
    parts = [
        python_text(part.at, texts) if isinstance(part, Point) else _slice(part, kernel)
        for part in read.region
    ]
    known = [part for part in parts if part is not None]
    return f"{read.array}[{', '.join(known)}]" if len(known) == len(parts) else None


def _slice(part: Subscript, kernel: Kernel) -> str | None:
    if not isinstance(part, Range):
        return None
    texts = kernel.context.scalar_texts
    low = "" if part.low == ZERO else python_text(part.low, texts)
    high = python_text(part.high, texts)
    if low is None or high is None:
        return None
    if "max(" in high and "max" in kernel.context.not_builtins:
        return None
    return f"{low}:{high}"
