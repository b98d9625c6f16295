"""# ADV501 strided-traversal

**What it does.** Finds nests of loops over single elements whose innermost loop runs across the
storage order, and proposes the order of the loops that walks along it. Orders of two and three
loops are tried; arrays in Fortran order are served as well as those in C order.

**Why it costs.** A cache line holds several neighbours in memory. A loop that runs along the
storage order uses all of a line before it needs the next one; a loop across it touches a line
for every element, and by the time it comes back for the neighbour the line is gone.

**Example**

```python
for j in range(m):
    for i in range(n):
        out[i, j] = 2 * image[i, j]
```

**Use instead**

```python
for i in range(n):
    for j in range(m):
        out[i, j] = 2 * image[i, j]
```

**When it stays quiet.** Bounds that depend on another loop's index; dependences that the new order
would turn around; statements besides the innermost loop; calls, conditions and indices that are
used after the loops. Of compiled loops also an order in which each iteration of the innermost loop
needs what the one before it stored, where the present order has none such: processors then wait for
every element, which took twice the time that whole lines save.

**Parallel loops.** Where the outer of the loops is numba's `prange`, the outer one of the new order
is. That is proposed only where no iteration of either loop needs another one, and writes no element
that another one touches: threads run them in any order, and at once.

**Fix safety.** Every element is computed from the same values by the same operations, so results
are equal bit for bit, and the fix is safe, where no two arrays of the nest can overlap in memory.
Arrays that a caller passes may, so with two of them the fix is unsafe. It is unsafe, too, where
the terms of a floating-point sum come in another order. Functions that numba compiles compute what
their source says, unless `fastmath` lets them differ. Headers change places; comments stay.

**Models used.** Lines (array statements): operations, loads and stores, and the lines that each
run of the innermost loop touches. Profiles that are built in speak of compiled loops. The time of
an interpreter is added only where a profile states it under `python`.

**References.** Loop interchange and direction vectors: Allen and Kennedy, Automatic Translation of
Fortran Programs to Vector Form, 1987. What a line costs: the study of communication costs with
cache effects for ZPL and MPI programs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import permutations

from advisor.ir.kernel import Kernel, Legality, Proposal, SourceContext, rebuilt, symbols
from advisor.ir.nests import (
    Nest,
    Reference,
    conflicts,
    directions,
    index_name,
    is_later,
    may_meet,
    renamed_index,
)
from advisor.ir.shapes import kind_of_or_none
from advisor.ir.statements import Statement, Store, Threads
from advisor.ir.values import Elementwise, Read, reads
from advisor.numpy_table import Kind
from advisor.source import Edit
from costdb.expr import substitute, sym
from transforms.kit import kernels
from transforms.kit.rewrite import first_line, span_of, statements_at, stretch

DEEPEST = 3
COMMUTING = frozenset({"add", "multiply", "minimum", "maximum", "bitwise_and", "bitwise_or"})


def propose(kernel: Kernel) -> Iterator[Proposal]:
    """Yield every other legal order of the loops of each nest."""
    for nest in kernels.rewritable(kernel):
        depth = len(nest.loops)
        if not 2 <= depth <= DEEPEST or not nest.is_rectangular:
            continue
        present = tuple(range(depth))
        waits = not kernel.context.decorators or _waits(nest, present)
        for order in permutations(present):
            if order == present or (not waits and _waits(nest, order)):
                continue
            legality = _legality(nest, order, kernel)
            if legality is not None:
                yield _proposal(nest, order, kernel, legality)


def _proposal(nest: Nest, order: tuple[int, ...], kernel: Kernel, legality: Legality) -> Proposal:
    names = ", ".join(f"`{index_name(nest.variables[place])}`" for place in order)
    body = kernels.with_statement(kernel.body, nest.loops[0], (_reordered(nest, order),))
    return kernels.offered(
        kernel,
        title=f"run the loops in the order {names}",
        reason="the innermost loop then walks along the storage order, so that each cache line is"
        " used up before the next one",
        span=first_line(nest.loops[0].span, kernel.context),
        variant=kernel.with_body(body),
        argued=legality,
        edits=partial(_edits, nest, order, kernel),
        compiled=kernel.context.keeps_bits,
    )


def _legality(nest: Nest, order: tuple[int, ...], kernel: Kernel) -> Legality | None:
    """Return why an order keeps results; None where it may not."""
    if not _keeps_threads_apart(nest, order):
        return None
    turned = [pair for pair in conflicts(nest) if _is_turned(pair, nest, order)]
    sums = {_accumulation(nest, pair) for pair in turned}
    if None in sums:
        return None
    reordered = [store for store in sums if store is not None]
    rounded = sorted(store.array for store in reordered if not _stays_exact(store, kernel))
    if rounded:
        return kernels.unsafe(
            f"the terms that `{rounded[0]}` collects come in another order: floating-point sums"
            " are not associative, so results agree only to rounding"
        )
    shared = kernels.unless_apart(nest.body, kernel)
    if shared is not None:
        return shared
    if reordered:
        return kernels.safe(
            "the terms of a sum of whole numbers come in another order, which changes no bit,"
            " also where it wraps around at the width of its type"
        )
    return kernels.safe(
        "no iteration waits for one that would now come later, and each computes what it did"
        " before, so every result is equal bit for bit"
    )


def _waits(nest: Nest, order: tuple[int, ...]) -> bool:
    """Return whether iterations of the innermost loop may need what those before them stored.

    What all of them add to one element stays in a register.
    """
    innermost = order[-1]
    signs = tuple(int(place == innermost) for place in range(len(order)))
    variable = nest.variables[innermost]
    return any(
        first.store
        and not then.store
        and variable in symbols(first.region)
        and may_meet(first, then, nest, signs)
        for first, then in conflicts(nest)
    )


def _keeps_threads_apart(nest: Nest, order: tuple[int, ...]) -> bool:
    """Return whether threads may share the loop that takes the place of each ``prange``.

    What iterations of a ``prange`` leave where one needs another is up to chance already, so that
    no order keeps it.
    """
    for place, loop in enumerate(nest.loops):
        if loop.threads is Threads.NO:
            continue
        # numba takes no prange with another step
        if nest.loops[order[place]].step != 1:
            return False
        for shared in (place, order[place]):
            apart = [signs for signs in directions(len(nest.loops)) if signs[shared]]
            if any(may_meet(*pair, nest, signs) for pair in conflicts(nest) for signs in apart):
                return False
    return True


def _is_turned(pair: tuple[Reference, Reference], nest: Nest, order: tuple[int, ...]) -> bool:
    """Return whether two accesses may come in the other order once loops are reordered."""
    return any(
        not is_later(tuple(signs[place] for place in order)) and may_meet(*pair, nest, signs)
        for signs in directions(len(nest.loops))
    )


def _accumulation(nest: Nest, pair: tuple[Reference, Reference]) -> Store | None:
    """Return the statement ``x[...] = x[...] + term`` that both accesses belong to."""
    first, then = pair
    store = nest.body[first.statement]
    users = [s for s in nest.body if any(one.array == store.array for one in kernels.accesses(s))]
    if first.statement != then.statement or len(users) > 1:
        return None
    value = store.value
    if not isinstance(value, Elementwise) or value.operation not in COMMUTING:
        return None
    own = Read(store.array, store.region)
    terms = [part for part in value.operands if part != own]
    alone = len(terms) == 1 and len(value.operands) == 2
    if not alone or any(read.array == store.array for read in reads(terms[0])):
        return None
    return store


def _stays_exact(store: Store, kernel: Kernel) -> bool:
    """Return whether the order of terms does not matter: whole numbers, all of one type."""

    dtype = kernel.dtype(store.array)
    alike = all(kernel.dtype(read.array) == dtype for read in reads(store.value))
    whole = kind_of_or_none(dtype) is Kind.INTEGER
    return whole and alike and kernels.type_of(store.value, kernel).dtype == dtype


def _reordered(nest: Nest, order: tuple[int, ...]) -> Statement:
    """Return the nest with its headers in other places, as reading the new source gives it."""
    renamed = {
        nest.variables[which]: renamed_index(
            nest.variables[where], index_name(nest.variables[which])
        )
        for where, which in enumerate(order)
    }
    bindings = {old: sym(new) for old, new in renamed.items()}
    body: tuple[Statement, ...] = rebuilt(nest.body, lambda expr: substitute(expr, bindings))
    for where, which in reversed(list(enumerate(order))):
        header, place = nest.loops[which], nest.loops[where]
        made = replace(header, variable=renamed[header.variable], body=body, span=place.span)
        body = (replace(made, threads=place.threads),)
    return body[0]


def _headers(nest: Nest, context: SourceContext) -> list[ast.For]:
    """Return the loops of a nest, outermost first; none where the source shows something else."""
    nodes = statements_at(context)
    found = [nodes.get((loop.span.start_line, loop.span.start_column)) for loop in nest.loops]
    loops = [node for node in found if isinstance(node, ast.For)]
    named = all(isinstance(node.target, ast.Name) for node in loops)
    return loops if named and kernels.is_all_of(nest, nodes) else []


def _edits(nest: Nest, order: tuple[int, ...], kernel: Kernel) -> tuple[Edit, ...]:
    context, found = kernel.context, _headers(nest, kernel.context)
    lines, indices = context.lines, {index_name(variable) for variable in nest.variables}
    bounds = [part for node in found for part in ast.walk(node.iter)]
    if not found or any(isinstance(part, ast.Name) and part.id in indices for part in bounds):
        return ()
    spans = [stretch(span_of(node.target, lines), span_of(node.iter, lines)) for node in found]
    calls = [node.iter.func if isinstance(node.iter, ast.Call) else None for node in found]
    makers = ["" if call is None else context.text(span_of(call, lines)) for call in calls]
    made: list[Edit] = []
    for where, which in enumerate(order):
        text = context.text(spans[which])
        if nest.loops[where].threads is not nest.loops[which].threads:
            # a place keeps its prange, whichever loop comes there
            ahead, call, behind = text.partition(f"{makers[which]}(")
            if not (makers[where] and makers[which] and call):
                return ()
            text = f"{ahead}{makers[where]}({behind}"
        if where != which:
            made.append(Edit(spans[where], text))
    return tuple(made)


TRANSFORM = kernels.KernelRule("ADV501", "strided-traversal", __doc__, propose)
