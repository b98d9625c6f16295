"""Entries of distributions: arrays with others, whether they may change, how they are written."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial

from advisor.distribution import (
    ArraySpec,
    AxisMap,
    BlockDim,
    CyclicDim,
    MeshSpec,
    NotDistributed,
)
from advisor.ir.kernel import DeclaredArray, Kernel, Legality, Proposal, SourceContext
from advisor.source import Edit, Span, every
from costdb.records import only
from transforms.kit.kernels import displayed, safe
from transforms.kit.rewrite import before, indent_at, span_of

PACKAGE = "advisor"
Arrays = Mapping[str, DeclaredArray]
INERT = safe("the annotation is inert at run time, so no result can change")


READ = displayed("the program itself reads the declaration that would change when it runs")
SHARED = displayed(
    "the distribution or the mesh is shared with other kernels or arrays, which would change too"
)


def factorisations(number: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yield all ordered ways to write a number as a product of `parts` factors."""
    if parts == 1:
        yield (number,)
        return
    for first in range(1, number + 1):
        if number % first == 0:
            for rest in factorisations(number // first, parts - 1):
                yield (first, *rest)


def named(arrays: Iterable[str]) -> str:
    """Return how to speak of arrays."""
    return ", ".join(f"`{name}`" for name in arrays)


def specified(kernel: Kernel, arrays: Arrays, change: Callable[[ArraySpec], ArraySpec]) -> Kernel:
    """Return a kernel with other declarations of some arrays."""
    changed = {name: replace(array, spec=change(array.spec)) for name, array in arrays.items()}
    return kernel.with_arrays({**kernel.arrays, **changed})


def dealt(
    kernel: Kernel,
    arrays: Arrays,
    dimension: int,
    dim: AxisMap,
    title: str,
    reason: str,
    mesh: MeshSpec | None = None,
) -> Proposal:
    """Return the proposal to deal out one dimension of some arrays otherwise.

    Parameters
    ----------
    kernel : Kernel
    arrays : mapping of str to DeclaredArray
    dimension : int
    dim : AxisMap
        What its entry shall say.
    title, reason : str
    mesh : MeshSpec or None
        Over which it is dealt out, if that is not the arrays' own.
    """

    def change(spec: ArraySpec) -> ArraySpec:
        dims = (*spec.dims[:dimension], dim, *spec.dims[dimension + 1 :])
        return replace(spec, dims=dims, mesh=mesh or spec.mesh)

    return Proposal(
        title=title,
        reason=reason,
        span=next(iter(arrays.values())).places.whole,
        variant=specified(kernel, arrays, change),
        legality=legality_of_entries(kernel, arrays, (dimension,)),
        edits=partial(_dealt_edits, kernel, arrays, dimension, dim),
    )


def _dealt_edits(kernel: Kernel, arrays: Arrays, dimension: int, dim: AxisMap) -> tuple[Edit, ...]:
    for array in arrays.values():
        if dimension >= len(array.places.dimensions) or not array.spec.mesh.axes:
            return ()
    changes = [(array.places.dimensions[dimension], dim) for array in arrays.values()]
    return entry_edits(changes, kernel.context)


def legality_of_entries(kernel: Kernel, arrays: Arrays, dimensions: Sequence[int]) -> Legality:
    """Return whether entries of some arrays can be changed without changing anything else.

    Parameters
    ----------
    kernel : Kernel
    arrays : mapping of str to DeclaredArray
        Those of the kernel whose entries would change.
    dimensions : sequence of int
        Which entries would; dimensions that an array does not have are passed over.
    """
    changed = [
        array.places.dimensions[d]
        for array in arrays.values()
        for d in dimensions
        if d < len(array.places.dimensions)
    ]
    return unless_read(kernel, arrays, changed)


def unless_read(kernel: Kernel, arrays: Arrays, spans: Sequence[Span]) -> Legality:
    """Return whether parts of declarations can be changed without changing anything else."""
    if are_shared(kernel, arrays, spans):
        return SHARED
    read = _read_at_run_time(kernel.context.source)
    lines = [range(one.start_line, one.end_line + 1) for one in spans]
    return READ if any(not read.isdisjoint(one) for one in lines) else INERT


@lru_cache(maxsize=8)
def _read_at_run_time(source: str) -> frozenset[int]:
    """Return the lines of module-level declarations that something else than annotations uses."""
    if not (tree := ast.parse(source)).body:
        return frozenset()
    annotations: list[ast.AST] = []
    for node in ast.walk(tree):
        match node:
            case ast.arg(annotation=ast.expr() as found) | ast.AnnAssign(annotation=found):
                annotations.append(found)
            case ast.FunctionDef(returns=ast.expr() as found):
                annotations.append(found)
    made = {
        target.id: node
        for node in only(ast.Assign, tree.body)
        for target in only(ast.Name, node.targets)
    }
    # what is used in a declaration is read where that is
    inert = {id(part) for one in (*annotations, *made.values()) for part in ast.walk(one)}
    used = {
        node.id
        for node in every(ast.Name, tree)
        if isinstance(node.ctx, ast.Load) and id(node) not in inert
    }
    waiting, lines = list(used), set[int]()
    while waiting:
        statement = made.pop(waiting.pop(), None)
        if statement is not None:
            lines |= {*range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)}
            waiting += (one.id for one in every(ast.Name, statement.value))
    return frozenset(lines)


def are_shared(kernel: Kernel, arrays: Arrays, spans: Iterable[Span]) -> bool:
    """Return whether other kernels, or other arrays than some, have parts of declarations, too."""
    others = {
        span
        for name, array in kernel.arrays.items()
        if name not in arrays
        for span in (*array.places.dimensions, *(place for _, place in array.places.mesh))
    }
    return not others.union(kernel.context.shared).isdisjoint(spans)


def entry_edits(
    changes: Iterable[tuple[Span, AxisMap]], context: SourceContext
) -> tuple[Edit, ...]:
    """Return the edits that write other entries, with the import that they need.

    Parameters
    ----------
    changes : iterable of (Span, AxisMap)
        Where an entry stands, and what it shall say.
    context : SourceContext

    Returns
    -------
    tuple of Edit
        In order of their places; empty where the file gives no name to write.
    """
    edits: dict[Edit, None] = {}
    for span, dim in changes:
        written = _entry(span, dim, context)
        if written is None:
            return ()
        edits.update(dict.fromkeys(written))
    return tuple(sorted(edits, key=lambda edit: edit.span))


def _entry(span: Span, dim: AxisMap, context: SourceContext) -> list[Edit] | None:
    if "#" in indent_at(span, context):
        return [Edit(span, _in_comment(dim))]
    if isinstance(dim, NotDistributed):
        return [Edit(span, "None")]
    quoted = ", ".join(f'"{axis}"' for axis in dim.axes)
    axes = quoted if len(dim.axes) == 1 else f"({quoted})"
    word = "Cyclic" if isinstance(dim, CyclicDim) else "Block"
    name, needed = _name_of(word, context)
    if name is None:
        # a mesh axis alone stands for blocks
        bare = isinstance(dim, BlockDim) and len(dim.axes) == 1
        return [Edit(span, axes)] if bare else None
    piece = f", k={dim.k}" if isinstance(dim, CyclicDim) and dim.k > 1 else ""
    return [Edit(span, f"{name}({axes}{piece})"), *needed]


def _in_comment(dim: AxisMap) -> str:
    axes = "*".join(dim.axes)
    match dim:
        case NotDistributed():
            return "none"
        case BlockDim():
            return f"block({axes})"
        case CyclicDim():
            return f"cyclic({axes}{f', {dim.k}' if dim.k > 1 else ''})"


def _name_of(word: str, context: SourceContext) -> tuple[str | None, list[Edit]]:
    """Return the name of one of the package's classes in a file, and the import it needs."""
    found: ast.ImportFrom | None = None
    for statement in ast.parse(context.source).body:
        match statement:
            case ast.ImportFrom(module="advisor", level=0):
                found = found or statement
                for alias in statement.names:
                    if alias.name == word:
                        return alias.asname or word, []
            case ast.Import():
                for alias in statement.names:
                    if alias.name == PACKAGE:
                        return f"{alias.asname or PACKAGE}.{word}", []
    taken = re.search(rf"\b{word}\b", context.source)
    if found is None or taken or found.names[0].name == "*":
        return None, []
    return word, [_import_edit(found, word, context.lines)]


def _import_edit(statement: ast.ImportFrom, word: str, lines: list[str]) -> Edit:
    """Return the edit that imports one more name, in its place of the alphabet."""
    later = next((alias for alias in statement.names if alias.name > word), None)
    place = span_of(later or statement.names[-1], lines)
    indent = lines[place.start_line - 1][: place.start_column]
    between = " " if indent.strip() else f"\n{indent}"
    if later is not None:
        return Edit(before(place), f"{word},{between}")
    end = Span(place.end_line, place.end_column, place.end_line, place.end_column)
    return Edit(end, f",{between}{word}")
