"""# ADV504 loop-of-array-statements

**What it does.** Finds loops whose iterations are array statements already, a row, a column or a
product at a time, and proposes one statement over all iterations: the index of the loop becomes an
axis. Where each iteration adds to the same elements, the sum over the index becomes a product of
matrices or vectors. A function of a row, a column or a window (a mean, a deviation, a median, a
quantile, a norm, a sort) becomes the same function along an axis, of windows as
`sliding_window_view` shows them; sums of windows also a loop over the places in the window, or its
few places written out. Functions of ever longer slices are scans. What an iteration binds for
itself is put where it is used, and its conditions choose by `np.where`. Sums, counts and means of a
group in each iteration, or of a row between two pointers, are those of all groups by `bincount`. A
loop that fills both halves of a symmetric matrix becomes one product. What of a recurrence does not
wait for an earlier iteration is computed before the loop. A triangle whose rows wait for each of
their elements, as in a factorisation by rows, goes by columns, each of which is one statement.

**Why it costs.** Every array statement costs the interpreter and NumPy a microsecond or more,
whatever its length, and many short ones leave caches and vector units idle. A product of matrices
does the work of thousands of vector products with each number fetched once.

**Example**

```python
for k in range(a.shape[1]):
    c[i, :i + 1] += alpha * a[i, k] * a[:i + 1, k]
```

**Use instead**

```python
c[i, :i + 1] += alpha * (a[:i + 1, :] @ a[i, :])
```

**When it stays quiet.** Iterations that read what an earlier one wrote; slices whose ends move with
the index, but for whole windows, prefixes and both halves of a matrix; windows that may be cut off
at an end; names that are bound in the loop and used after it; what a
compiler takes. Of the loops around, each is tried alone; inner ones that add up or wait may stay
loops.

**Fix safety.** Safe where every element is computed by the same operations, each rounded exactly,
and no two arrays of the caller are involved that might overlap in memory. Unsafe for sums and
products of floating-point numbers, whose terms come in another order, and where only loops with
iterations show that elements are there, where a number (the width of a window) has to be positive,
or where groups have to be in order.

**Models used.** Arrays (calls, elements, cache lines), where the profile has their rates.

**References.** Loop distribution and vector form: Allen and Kennedy, Automatic Translation of
Fortran Programs to Vector Form, 1987.
"""

from __future__ import annotations

from collections.abc import Iterator

from advisor.ir.kernel import Kernel
from advisor.ir.proposal import Proposal
from transforms.kit.kernels import is_compiled_alone
from transforms.kit.rule import KernelRule
from transforms.loops.array_statements import array_statements
from transforms.loops.row_loops import row_loops


def propose(kernel: Kernel) -> Iterator[Proposal]:
    """Yield one statement over all iterations for each loop of array statements."""
    if not is_compiled_alone(kernel):
        yield from array_statements(kernel, of_elements=False)
        yield from row_loops(kernel)


TRANSFORM = KernelRule("ADV504", "loop-of-array-statements", __doc__ or "", propose)
