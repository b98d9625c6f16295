"""Source of a loop that is done in chunks of an axis that its statements have whole."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from advisor.ir.kernel import Kernel, SourceContext
from advisor.ir.statements import Loop
from advisor.source import Edit, Span
from transforms.source.writing import python_text, stands_alone


def chunk_edits(kernel: Kernel, loop: Loop, axis: int, name: str, width: int) -> tuple[Edit, ...]:
    """Return the edits that put a loop over chunks of `axis` around a loop.

    Parameters
    ----------
    kernel : Kernel
    loop : Loop
        In whose statements every subscript of an array has a bare ``:`` at `axis`.
    axis : int
    name : str
        Of the new index.
    width : int
        Of a chunk.

    Returns
    -------
    tuple of Edit
        Empty where the text is not as plain as that.
    """
    context = kernel.context
    found = _statement(loop, context)
    lines = range(loop.span.start_line, loop.span.end_line + 1)
    plain = all(context.lines[number - 1].isascii() for number in lines)
    if found is None or not plain or "range" in context.not_builtins:
        return ()
    assigned = [part for part in found.body if isinstance(part, ast.Assign | ast.AugAssign)]
    if not len(assigned) == len(found.body) == len(loop.body):
        # something else in the loop, such as a call to print, would be done for every chunk
        return ()
    slices = list(_slices(found, kernel, axis))
    extent = _extent(found, kernel, axis)
    if extent is None or None in slices or not stands_alone(context, loop.span):
        return ()
    first = loop.span
    indent = context.lines[first.start_line - 1][: first.start_column]
    start = Span(first.start_line, first.start_column, first.start_line, first.start_column)
    head = f"for {name} in range(0, {extent}, {width}):\n{indent}{context.indent}"
    edits = [Edit(start, head)]
    edits += [
        Edit(Span(number, 0, number, 0), context.indent)
        for number in lines[1:]
        if context.lines[number - 1].strip()
    ]
    text = f"{name} : {name} + {width}"
    edits += [Edit(span, text) for span in slices if span is not None]
    return tuple(sorted(edits, key=lambda edit: edit.span))


def _statement(loop: Loop, context: SourceContext) -> ast.For | None:
    place = (loop.span.start_line, loop.span.start_column)
    for node in ast.walk(ast.parse(context.source)):
        if isinstance(node, ast.For) and (node.lineno, node.col_offset) == place:
            return node
    return None


def _slices(loop: ast.For, kernel: Kernel, axis: int) -> Iterator[Span | None]:
    """Yield where ``:`` stands for the axis in each subscript; None for anything else."""
    inside = [node for part in loop.body for node in ast.walk(part)]
    subscripts = [node for node in inside if isinstance(node, ast.Subscript)]
    subscripted = {id(node.value) for node in subscripts}
    for node in inside:
        if isinstance(node, ast.Name) and node.id in kernel.arrays and id(node) not in subscripted:
            yield None
    for node in subscripts:
        if not isinstance(node.value, ast.Name) or node.value.id not in kernel.arrays:
            continue
        entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        dimensions = len(kernel.extents(node.value.id))
        entry = entries[axis] if len(entries) == dimensions else None
        bare = isinstance(entry, ast.Slice) and not (entry.lower or entry.upper or entry.step)
        one_line = entry is not None and entry.lineno == entry.end_lineno
        if entry is None or not bare or not one_line:
            yield None
        else:
            end = entry.end_col_offset or entry.col_offset
            yield Span(entry.lineno, entry.col_offset, entry.lineno, end)


def _extent(loop: ast.For, kernel: Kernel, axis: int) -> str | None:
    for part in loop.body:
        for node in ast.walk(part):
            if isinstance(node, ast.Name) and node.id in kernel.arrays:
                extent = kernel.extents(node.id)[axis]
                return python_text(extent, kernel.context.scalar_texts)
    return None
