"""The source of sums over loops: one statement on whole arrays."""

from __future__ import annotations

import ast

from advisor.ir.kernel import Kernel
from advisor.ir.nests import Nest
from advisor.ir.statements import is_total
from advisor.ir.values import Elementwise, Read, reads
from advisor.source import Edit, Span
from transforms.loops.array_source import edited, slice_edits
from transforms.loops.slices import shown_reads
from transforms.loops.summed import METHODS, Summed, is_count
from transforms.source.nest_source import is_all_of, span_of, statements_at
from transforms.source.writing import replace_statement, stands_alone


def sum_edits(found: Summed, nest: Nest, outer: int, kernel: Kernel) -> tuple[Edit, ...]:
    """Return the edits that put one statement in the place of the loops; none if it cannot be."""
    context, span = kernel.context, nest.loops[outer].span
    nodes = statements_at(context)
    node = nodes.get((found.store.span.start_line, found.store.span.start_column))
    if node is None or not is_all_of(nest, nodes) or not stands_alone(context, span):
        return ()
    text = _text(node, found, kernel)
    return () if text is None else (replace_statement(span, [text], context),)


def _text(node: ast.stmt, found: Summed, kernel: Kernel) -> str | None:
    """Return the statement that combines whole arrays."""
    term = _term(node, found)
    if term is None:
        return None
    shown = found.term
    if is_count(shown) and isinstance(shown, Elementwise):
        shown = shown.operands[0]
    before = list(reads(shown))
    if found.product is None:
        after = shown_reads(found.sliced)
    else:
        after = [(read, 0) for read in reads(found.sliced)]
    if found.product == (1, 0):
        after.reverse()
    edits = slice_edits((term,), before, after, kernel)
    if edits is None:
        return None
    text = _combining(term, edits, found, kernel)
    if text is None:
        return None
    place = found.store.array
    if not is_total(found.store):
        target = node.target if isinstance(node, ast.AugAssign) else None
        if not isinstance(target, ast.Subscript):
            return None
        own = [Read(found.store.array, found.store.region)]
        at = slice_edits((target,), own, [(found.place, 0)], kernel)
        if at is None:
            return None
        place = edited(_span(target, kernel), at, kernel)
    if found.operation in ("maximum", "minimum"):
        return f"{place} = {text}"
    sign = {"add": "+", "subtract": "-", "multiply": "*"}[found.operation]
    return f"{place} {sign}= {text}"


def _span(node: ast.expr, kernel: Kernel) -> Span:
    return span_of(node, kernel.context.lines)


def _combining(
    term: ast.expr, edits: list[tuple[Span, str]], found: Summed, kernel: Kernel
) -> str | None:
    if term.lineno != term.end_lineno:
        return None
    if found.product is not None:
        if not isinstance(term, ast.BinOp):
            return None
        sides = [edited(_span(side, kernel), edits, kernel) for side in (term.left, term.right)]
        return f"{sides[found.product[0]]} @ {sides[found.product[1]]}"
    text = edited(_span(term, kernel), edits, kernel)
    if is_count(found.term):
        module = kernel.context.array_module
        return None if module is None else f"{module}.count_nonzero({text})"
    if not isinstance(term, ast.Subscript):
        text = f"({text})"
    method = METHODS[found.operation]
    if found.operation in ("maximum", "minimum"):
        return f"{text}.{method}(initial={found.store.array})"
    if found.axes is None:
        return f"{text}.{method}()"
    axes = found.axes[0] if len(found.axes) == 1 else found.axes
    return f"{text}.{method}(axis={axes})"


def _term(node: ast.stmt, found: Summed) -> ast.expr | None:
    """Return the expression of what each iteration adds."""
    name = found.store.array
    if isinstance(node, ast.If):
        if is_count(found.term):
            return node.test
        (inner,) = node.body
        return inner.value if isinstance(inner, ast.Assign) else None
    if isinstance(node, ast.AugAssign):
        return node.value
    if not isinstance(node, ast.Assign) or not is_total(found.store):
        return None

    def is_own(part: ast.expr) -> bool:
        return isinstance(part, ast.Name) and part.id == name

    parts = []
    if isinstance(node.value, ast.BinOp):
        parts = [node.value.left, node.value.right]
    elif isinstance(node.value, ast.Call) and len(node.value.args) == 2:
        parts = node.value.args
    others = [part for part in parts if not is_own(part)]
    return others[0] if len(parts) == 2 and len(others) == 1 else None
