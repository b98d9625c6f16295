"""# ADV401 element-by-element

**What it does.** Finds loops over single elements whose iterations do not wait for one another,
and proposes array statements over slices in their place: of the whole nest, or of its inner loops
where outer ones carry a dependence. Loops that only accumulate, into a number or into elements,
become a reduction: a sum, a product of matrices or vectors, an extreme, a count. Loops in which
each element is the one before it and a term become a prefix sum.

**Why it costs.** An element of another rank that a loop refers to is fetched alone: a remote
reference, or a message, for every one. A statement over a slice says at once what it needs, so
that all of it comes in one message from each owner. In interpreted Python every iteration also
costs the interpreter its share.

**Example**

```python
for i in range(1, n):
    for j in range(m):
        out[i, j] = image[i - 1, j] + image[i, j]
```

**Use instead**

```python
out[1:n, :m] = image[:n - 1, :m] + image[1:n, :m]
```

**When it stays quiet.** An iteration that reads what an earlier one wrote, or may; subscripts that
are not an index and a distance; functions that a compiler takes, of arrays that are not
distributed, where only the order of loops matters (ADV501); an index used as a number; bounds that
are not known to stay inside the array, for a slice would silently be shorter where an element is
an error, and a negative bound would count from the end.

**Fix safety.** Safe where all elements are of one type, every operation is one that is rounded
exactly, and no two arrays of the loops can overlap in memory: then each element is computed by
the same operations and results are equal bit for bit, for every size, none included. Unsafe where
a caller may pass overlapping arrays, and for operations that NumPy rounds otherwise for arrays
than for numbers (powers, exponentials, complex products).

Sums of whole numbers of one type wrap around alike in any order, and are safe; so are counts. Sums
of floating-point numbers are unsafe, for their terms come in another order, and extremes of them
for what a NaN does. Prefix sums add in the order of the loop, and are safe, but for floating-point
numbers that are distributed: ranks add what those before them have at once. Of no elements a sum of
whole numbers is NumPy's 0, not Python's.

**Models used.** Lines (array statements, messages), PGAS (remote references by pattern, where
the profile has their rates; where it has none, each is a message). Profiles that are built in
speak of compiled loops. The time of an interpreter is added only where a profile states it as
`python.element_us`.

**References.** Remote references by pattern, and what grouping them saves: the performance model
for Unified Parallel C. Dependence and vectors: Allen and Kennedy, Automatic Translation of
Fortran Programs to Vector Form, 1987.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from advisor.ir.kernel import Kernel
from advisor.ir.nests import Nest
from advisor.ir.proposal import Proposal
from advisor.ir.statements import Store
from advisor.ir.values import Read, reads
from advisor.source import Edit
from transforms.kit.kernels import is_all_of, is_compiled_alone, rewritable
from transforms.kit.rewrite import replace_statement, stands_alone, statements_at
from transforms.kit.rule import KernelRule
from transforms.kit.slices import edited, shown_reads, slice_edits
from transforms.loops.array_statements import in_place_of_loops, legality_of, vectorised
from transforms.loops.loop_sums import sums
from transforms.loops.running_sums import running_sums


def propose(kernel: Kernel) -> Iterator[Proposal]:
    """Yield array statements for whole nests, and for their inner loops."""
    if is_compiled_alone(kernel):
        return
    for nest in rewritable(kernel):
        for outer in range(len(nest.loops)):
            stores = vectorised(nest, outer, kernel)
            if stores is None:
                yield from sums(nest, outer, kernel)
                yield from running_sums(nest, outer, kernel)
                continue
            yield in_place_of_loops(
                nest,
                outer,
                kernel,
                "array statements" if len(stores) > 1 else "one array statement",
                "a statement over a slice fetches all that it needs of other ranks at once, and no"
                " interpreter runs for each element",
                stores,
                legality_of(nest, kernel),
                partial(_edits, nest, outer, stores, kernel),
            )


def _edits(nest: Nest, outer: int, stores: tuple[Store, ...], kernel: Kernel) -> tuple[Edit, ...]:
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


TRANSFORM = KernelRule("ADV401", "element-by-element", __doc__, propose)
