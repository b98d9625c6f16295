"""Loops over elements that nothing here rewrites: what a compiler would make of them.

They are shown, with what they take and what they would take compiled. Whether iterations wait for
one another decides the words: those that do not may as well be array statements, each operation
once over as many elements as the loop has iterations. What to write is up to who knows the program.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import replace

from advisor.ir.kernel import Kernel
from advisor.ir.proposal import Proposal
from advisor.ir.statements import (
    Choice,
    Compiled,
    Loop,
    Scatter,
    Statement,
    Store,
    Threads,
    Unknown,
    mentioned,
    names_elements,
    parts_of_range,
    values_of,
    walk,
    within,
    written,
)
from advisor.ir.values import Point, length, reads
from advisor.ir.waiting import what_waits
from costdb.expr import free_symbols
from costdb.expr.polynomials import is_polynomial_in
from transforms.kit.kernels import displayed, with_statement
from transforms.kit.rewrite import first_line, statement_at, tree_of
from transforms.loops.compilable import is_compilable

_WORDS = {
    Compiled.ALONE: displayed(
        "no iteration needs what another one did, as far as names show, if no two arrays overlap"
    ),
    Compiled.WAITING: displayed("compiled, iterations run in the order of the loop"),
}


LEAST = 3.0, 1e-4
"""A compiler is one more thing to have, and takes a second itself."""


def considered(kernel: Kernel, taken: Collection[int] = ()) -> Iterator[Proposal]:
    """Yield for the outermost loops that a compiler takes what they would cost compiled.

    Parameters
    ----------
    kernel : Kernel
    taken : collection of int
        Lines of loops that something else is proposed for.
    """
    if any(array.spec.mesh.axes for array in kernel.arrays.values()):
        return
    # of what no statement tells an element may be part
    if any(isinstance(s, Scatter | Unknown) or names_elements(s) for s in walk(kernel.body)):
        yield from _in_block(kernel.body, kernel, taken)


def _in_block(
    body: tuple[Statement, ...], kernel: Kernel, taken: Collection[int]
) -> Iterator[Proposal]:
    for one in body:
        node = statement_at(one.span, kernel.context)
        if isinstance(one, Choice):
            yield from _in_block(within(one), kernel, taken)
        parts = (one,) if isinstance(one, Loop) else parts_of_range(one)
        if not parts or not isinstance(node, ast.For | ast.While):
            continue
        waits = next(filter(None, (_what_waits(part, node, kernel) for part in parts)), "")
        is_taken = all(_is_taken(part, node, kernel, taken) for part in parts)
        inner = one.body if isinstance(one, Loop) else ()
        if not is_taken or (waits and _has_independent(inner, kernel, taken)):
            yield from _in_block(inner, kernel, taken)
            continue
        way = Compiled.WAITING if waits else Compiled.ALONE
        loops = tuple(replace(part, compiled=way) for part in parts)
        yield Proposal(
            _title(node, way),
            f"every element costs the interpreter its steps; {waits or _to_use(node)}",
            first_line(one.span, kernel.context),
            kernel.with_body(with_statement(kernel.body, one, loops)),
            _WORDS[way],
            tuple,
            LEAST,
        )


def _is_taken(
    loop: Loop, node: ast.For | ast.While, kernel: Kernel, taken: Collection[int]
) -> bool:
    """Return whether a compiler takes a loop, and nothing else is proposed for it."""
    lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
    if loop.threads is not Threads.NO or any(line in lines for line in taken):
        return False
    if _changes_as_it_goes(loop):
        # a price that sums up what each iteration takes is slow to compare
        return False
    return is_compilable(node, tree_of(kernel.context.source))


def _changes_as_it_goes(loop: Loop) -> bool:
    """Return whether what an iteration does goes by its index, not only how often loops run."""
    body = tuple(walk((loop,)))
    indices = {one.variable for one in body if isinstance(one, Loop)}
    regions = (read.region for one in body for value in values_of(one) for read in reads(value))
    parts = (part for region in regions for part in region if not isinstance(part, Point))
    found = [length(part) for part in parts]
    found += [one.probability for one in body if isinstance(one, Choice)]
    bounds = (one.high - one.low for one in body if isinstance(one, Loop))
    found += [one for one in bounds if not all(is_polynomial_in(one, name) for name in indices)]
    return any(free_symbols(one) & indices for one in found)


def _has_independent(body: tuple[Statement, ...], kernel: Kernel, taken: Collection[int]) -> bool:
    """Return whether a loop among some statements may be array statements."""
    return any(
        _is_taken(one, node, kernel, taken) and not _what_waits(one, node, kernel)
        for one in walk(body, rewritable=True)
        if isinstance(one, Loop)
        and isinstance(node := statement_at(one.span, kernel.context), ast.For | ast.While)
    )


def _what_waits(loop: Loop, node: ast.For | ast.While, kernel: Kernel) -> str:
    """Return why iterations wait for one another; empty where none does."""
    if isinstance(node, ast.While):
        return "whether there is a next iteration shows at the end of each"
    modules = {name for name in (kernel.context.array_module, "math") if name is not None}
    return what_waits(node, modules) or _passed_by_memory(loop, kernel)


def _passed_by_memory(loop: Loop, kernel: Kernel) -> str:
    """Return which array may be changed and read under several names, or at several places."""
    body = tuple(walk((loop,)))
    shared = mentioned(loop) & kernel.aliases
    if len(shared) > 1 and written(loop) & shared:
        return f"{' and '.join(f'`{one}`' for one in sorted(shared))} may share memory"
    used = {read for one in body for value in values_of(one) for read in reads(value)}
    for one in body:
        if isinstance(one, Store):
            regions = {read.region for read in used if read.array == one.array}
            if regions - {one.region}:
                return f"elements of `{one.array}` that are read may be others' that changed"
    return ""


def _title(node: ast.For | ast.While, way: Compiled) -> str:
    names = ", ".join(
        f"`{part.id}`"
        for part in (ast.walk(node.target) if isinstance(node, ast.For) else ())
        if isinstance(part, ast.Name)
    )
    loop = f"the loop over {names}" if names else "the loop"
    if way is Compiled.WAITING:
        return f"compile {loop}, by numba for one"
    return f"write {loop} as array statements, each operation once over all, or compile it"


def _to_use(node: ast.For | ast.While) -> str:
    """Return what functions of NumPy do what a loop holds."""
    found = ["slices, or a new axis for each index"]
    parts = list(ast.walk(node))
    if any(isinstance(one, ast.If | ast.IfExp) for one in parts):
        found.append("np.where or masks for conditions")
    if any(isinstance(one, ast.Slice) for one in parts):
        found.append("sliding_window_view or prefix sums for windows")
    adds = [one.target for one in parts if isinstance(one, ast.AugAssign)]
    if any(isinstance(one, ast.Name) for one in adds):
        found.append("a reduction for what is added up")
    if any(isinstance(one, ast.Subscript) for one in adds):
        found.append("np.bincount or np.add.at for what is added at places")
    return f"consider {', '.join(found)}; arrays round and wrap around otherwise than numbers may"
