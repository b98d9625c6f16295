"""# ADV402 fetched-by-element

**What it does.** Finds statements that fetch single elements of a distributed array from the ranks
that own them: at places that only the data know (`table[places]`), or element by element in loops.
It proposes to bring the whole array to every rank first, in one collective operation, and to look
the elements up there.

**Why it costs.** A remote element costs a start-up each, whatever its size. One block from each
rank costs as many start-ups as there are ranks, and moves the array once. With `k` references for
each element of the array that is all but always cheaper; with few references to a large array it is
not, and every rank needs the memory for all of it.

**Example**

```python
out[:] = table[places]
```

**Use instead**

```python
# advise: table_all: f8[M] over (none) on mesh(rank=P)
table_all = table.copy()
out[:] = table_all[places]
```

**When it stays quiet.** Statements that change the array that they read; arrays that every rank
holds anyway; loops whose references run along the array in step with what they compute, where
slices (ADV401) bring just the halo.

**Fix safety.** Safe where nothing in the statement can change the array: the copy has the same
elements. Unsafe where a caller may pass overlapping arrays. The comment says where the copy lives;
run as plain NumPy the program makes one more array.

**Models used.** PGAS (remote references by pattern, where the profile has their rates; where it has
none, each is a message), lines (collectives).

**References.** Coalescing of fine-grained references: the performance model for Unified Parallel C.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from advisor.distribution import NotDistributed
from advisor.ir.kernel import DeclaredArray, Kernel, Legality, Places, Proposal
from advisor.ir.nests import element_reads, gathers, is_of_elements, nest_of
from advisor.ir.shapes import whole
from advisor.ir.statements import (
    Bind,
    Choice,
    Loop,
    Rename,
    Return,
    ScalarBind,
    Stated,
    Statement,
    Store,
    Unknown,
    Unrolled,
    walk,
    written,
)
from advisor.ir.values import Copy, Read
from advisor.source import Edit, Span
from costdb.expr import to_text
from costdb.records import only
from transforms.kit import kernels, rewrite


def propose(kernel: Kernel) -> Iterator[Proposal]:
    """Yield a copy on every rank for each statement, or nest, and each array it refers to."""
    for statement in _statements(kernel.body):
        for array in _fetched(statement, kernel):
            yield _proposal(statement, array, kernel)


def _statements(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Yield statements, and loops before the statements within them.

    The loops of a nest over single elements are taken together.
    """
    for statement in body:
        if isinstance(statement, Loop):
            yield statement
            nest = nest_of(statement)
            if nest is None or not nest.is_by_element:
                yield from _statements(statement.body)
        elif isinstance(statement, Store | Bind | ScalarBind):
            yield statement


def _fetched(statement: Statement, kernel: Kernel) -> list[str]:
    """Return the distributed arrays whose single elements a statement needs."""
    changed = written(statement)
    found: dict[str, None] = {}
    for one in walk((statement,)):
        if isinstance(one, Choice | Return | Unknown | Unrolled | Stated | Rename):
            # what happens there may be something else for the copy
            return []
        if isinstance(one, Loop):
            continue
        for gather in gathers(one.value):
            if isinstance(gather.operand, Read):
                found[gather.operand.array] = None
        if isinstance(statement, Loop) and isinstance(one, Store) and is_of_elements(one.value):
            found.update(dict.fromkeys(read.array for read in element_reads(one.value)))
    remote = {
        name
        for name, array in kernel.arrays.items()
        if any(
            kernels.is_spread(array.spec, dimension) for dimension in range(len(array.spec.dims))
        )
    }
    return [name for name in found if name in remote - changed]


def _proposal(statement: Statement, array: str, kernel: Kernel) -> Proposal:
    name = rewrite.fresh_name(f"{array}_all", kernel.context.identifiers)
    declared = kernel.arrays[array]
    nowhere = tuple(NotDistributed() for _ in declared.spec.dims)
    spec = replace(declared.spec, name=name, dims=nowhere, order="C")
    copy = DeclaredArray(spec, declared.dtype, declared.extents, Places(Span(1, 0, 1, 0), (), ()))
    read = Read(array, whole(declared.extents))
    fetch = Bind(name, Copy(read, declared.dtype), statement.span)
    body = kernels.with_statement(
        kernel.body, statement, (fetch, kernels.renamed(statement, {array: name}))
    )
    variant = kernel.with_arrays({**kernel.arrays, name: copy}).with_body(body)
    return kernels.offered(
        kernel,
        title=f"fetch all of `{array}` to every rank first",
        reason="one collective operation takes the place of a start-up for each element that"
        " another rank owns; every rank then holds all of it",
        span=rewrite.first_line(statement.span, kernel.context),
        variant=variant,
        argued=_legality(statement, array, kernel),
        edits=partial(_edits, statement, array, spec.name, kernel),
    )


def _legality(statement: Statement, array: str, kernel: Kernel) -> Legality:
    stored = (
        sorted(written(statement) & kernel.arrays.keys()) if isinstance(statement, Loop) else []
    )
    stored += sorted(kernel.aliases & written(statement) - {array, *stored})
    if stored or array in kernel.aliases:
        return kernels.overlapping(kernels.apart([array, *stored]))
    return kernels.safe(
        "nothing changes the array before its copy is read, so every result is equal bit for bit"
    )


def _edits(statement: Statement, array: str, name: str, kernel: Kernel) -> tuple[Edit, ...]:
    context, span = kernel.context, statement.span
    if not rewrite.stands_alone(context, span) or array in kernel.aliases:
        return ()
    node = rewrite.statement_at(span, context)
    if node is None:
        return ()
    spec = kernel.arrays[array].spec
    places = [
        rewrite.span_of(part, context.lines)
        for part in only(ast.Name, ast.walk(node))
        if part.id == array
    ]
    if not places:
        return ()
    indent = rewrite.indent_at(span, context)
    extents = ", ".join(to_text(extent) for extent in kernel.arrays[array].extents)
    axes = ", ".join(f"{axis}={extent}" for axis, extent in spec.mesh.axes)
    where = ", ".join("none" for _ in spec.dims)
    dtype = kernel.dtype(array)
    lines = (
        f"# advise: {name}: {dtype}[{extents}] over ({where}) on mesh({axes})\n{indent}"
        f"{name} = {array}.copy()\n{indent}"
    )
    return (Edit(rewrite.before(span), lines), *(Edit(place, name) for place in sorted(places)))


TRANSFORM = kernels.KernelRule("ADV402", "fetched-by-element", __doc__, propose)
