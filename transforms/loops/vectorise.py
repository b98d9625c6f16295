"""# ADV401 element-by-element

**What it does.** Finds loops over single elements whose iterations do not wait for one another,
and proposes array statements over slices in their place: of the whole nest, or of its inner loops
where outer ones carry a dependence. Loops that only accumulate, into a number or into elements,
become a reduction: a sum, a product of matrices or vectors, an extreme, a count. Numbers that are
stored on the way become a scan: a running sum, product or extreme; loops in which each element is
the one before it and a term, too. Loops that look for the first least or greatest term become
`argmin` or `argmax`. Conditions on elements become choices (`np.where`) or masks, lists that are
filled become arrays, and numbers that an iteration computes for itself, also from its index, arrays
of that name. Conditions on where an index is, as for the borders of a grid, split the range: each
part has statements of its own. What several statements add to one array is added by each at once.

Loops are raised one at a time, the innermost first: an element becomes a vector, a vector a matrix.
Where an inner loop adds up or waits for itself, it also is offered as a loop around statements over
the outer indices, which keeps the order of every sum.

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

A loop of which nothing is made here is shown with its time, and what it would take compiled: one
whose iterations wait for nothing to be written by hand, or compiled; one over elements whose
iterations do wait, and what for, to be compiled. Where the loop by itself gets three times as fast
and a call saves 0.1 ms, and only what a compiler takes: numbers, elements, functions of NumPy,
comprehensions, and functions of the file that do no more.

**When it makes no edit.** An iteration that reads what an earlier one wrote, or may; subscripts
that are neither an index and a distance nor places in an array; functions that a compiler takes, of
arrays that are not distributed, where only the order of loops matters (ADV501); an element of a
branch that is not known to be inside the array, for a slice would silently be shorter; a bound that
may be negative, for it would count from the end; loops that end early; numbers that are reset or
clamped on the way, or used after the loop; searches in which the last of equal ones wins.

**Fix safety.** Safe where all elements are of one type, every operation is one that is rounded
exactly, and no two arrays of the loops can overlap in memory: then each element is computed by
the same operations and results are equal bit for bit, for every size, none included. Unsafe where
a caller may pass overlapping arrays, where parts of a range have to be in order, and for operations
that NumPy rounds otherwise for arrays than for numbers (powers, exponentials, complex products).
Unsafe, too, where only loops with iterations show that elements are there; and for `min` and `max`
of floating-point numbers, where a NaN or a zero with a sign may come out otherwise. What may fail,
a division or a root, is computed under a mask, for those elements only that need it. Python's
comparisons pass over a NaN, as `np.fmax.accumulate` does and `np.maximum.accumulate` does not; one
that is there first stays.

What loops add, or store, at places that only the data know is one call for all of them. Where
several statements add floating-point numbers to one array, their terms come in another order.

Sums of whole numbers of one type wrap around alike in any order, and are safe; so are counts. Sums
of floating-point numbers are unsafe, for their terms come in another order, and extremes of them
for what a NaN does. Prefix sums add in the order of the loop, and are safe, but for floating-point
numbers that are distributed: ranks add what those before them have at once. Of no elements a sum of
whole numbers is NumPy's 0, not Python's.

**Models used.** Lines (array statements, messages), PGAS (remote references by pattern, where
the profile has their rates; where it has none, each is a message). Profiles that are built in
speak of compiled loops. The time of an interpreter is added only where a profile states it under
`python`.

**References.** Remote references by pattern, and what grouping them saves: the performance model
for Unified Parallel C. Dependence and vectors: Allen and Kennedy, Automatic Translation of
Fortran Programs to Vector Form, 1987.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from advisor.ir.kernel import Kernel
from advisor.ir.proposal import Proposal
from transforms.kit.kernels import is_compiled_alone
from transforms.kit.rule import KernelRule
from transforms.loops.array_statements import array_statements
from transforms.loops.considered import considered
from transforms.loops.placed import placed
from transforms.loops.row_loops import row_loops
from transforms.loops.running_sums import running_sums


def propose(kernel: Kernel) -> Iterator[Proposal]:
    """Yield array statements for whole nests, and for their inner loops."""
    if not is_compiled_alone(kernel):
        found = (
            running_sums(kernel),
            array_statements(kernel, of_elements=True),
            placed(kernel),
        )
        made = list(chain.from_iterable(found))
        yield from made
        # what is made of loops, by this rule or another, need not be shown
        others = chain(array_statements(kernel, of_elements=False), row_loops(kernel))
        yield from considered(kernel, {one.span.start_line for one in chain(made, others)})


TRANSFORM = KernelRule("ADV401", "element-by-element", __doc__, propose)
