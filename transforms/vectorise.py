"""ADV401: compute a whole block by one array statement, not element by element."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from advisor.dtypes import Kind
from advisor.finding import Applicability
from advisor.ir.kernel import Kernel
from advisor.ir.nests import (
    Nest,
    directions,
    index_name,
    may_meet,
    references,
)
from advisor.ir.proposal import Legality, Proposal
from advisor.ir.shapes import kind_of_or_none
from advisor.ir.statements import Statement, Store
from advisor.ir.values import (
    Elementwise,
    Scalar,
    Value,
    operands,
    reads,
)
from costdb.expr import free_symbols
from transforms.array_source import vector_edits
from transforms.element_loops import (
    compiled,
    is_compiled_alone,
    overlapping,
    rewritable,
    with_statement,
)
from transforms.loop_sums import sums
from transforms.nest_source import first_line
from transforms.proofs import proofs
from transforms.slices import Sliced

DOCUMENTATION = """\
# ADV401 element-by-element

**What it does.** Finds loops over single elements whose iterations do not wait for one another,
and proposes array statements over slices in their place: of the whole nest, or of its inner loops
where outer ones carry a dependence. Loops that only accumulate, into a number or into elements,
become a reduction: a sum, a product of matrices or vectors, an extreme, a count.

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
for what a NaN does. Of no elements a sum of whole numbers is NumPy's 0, not Python's.

**Models used.** Lines (array statements, messages), PGAS (remote references by pattern, where
the profile has their rates; where it has none, each is a message). Profiles that are built in
speak of compiled loops. The time of an interpreter is added only where a profile states it as
`python.element_us`.

**References.** Remote references by pattern, and what grouping them saves: the performance model
for Unified Parallel C. Dependence and vectors: Allen and Kennedy, Automatic Translation of
Fortran Programs to Vector Form, 1987.
"""

EXACT_FLOATING = frozenset(
    {"add", "subtract", "multiply", "divide", "negative", "absolute", "sqrt", "square"}
)
MODULAR = frozenset(
    {"add", "subtract", "multiply", "negative", "bitwise_and", "bitwise_or", "bitwise_xor"}
)
EXACT_WHOLE = MODULAR | {"minimum", "maximum", "square", "absolute"}
WIDEST = {Kind.INTEGER: "int64", Kind.FLOATING: "float64"}


@dataclass(frozen=True, slots=True)
class Vectorise:
    """The rule ADV401; see its page in `documentation`."""

    code: str = "ADV401"
    name: str = "element-by-element"
    documentation: str = DOCUMENTATION

    def propose(self, kernel: Kernel) -> Iterator[Proposal]:
        """Yield array statements for whole nests, and for their inner loops."""
        if is_compiled_alone(kernel):
            return
        for nest in rewritable(kernel):
            for outer in range(len(nest.loops)):
                stores = vectorised(nest, outer, kernel)
                if stores is not None:
                    yield _proposal(nest, outer, stores, kernel)
                else:
                    yield from sums(nest, outer, kernel)


def _proposal(nest: Nest, outer: int, stores: tuple[Store, ...], kernel: Kernel) -> Proposal:
    body: tuple[Statement, ...] = stores
    for loop in reversed(nest.loops[:outer]):
        body = (replace(loop, body=body),)
    names = ", ".join(f"`{index_name(v)}`" for v in nest.variables[outer:])
    several = len(nest.loops) - outer > 1
    return Proposal(
        title=f"replace the loop{'s' if several else ''} over {names} by"
        f" {'array statements' if len(stores) > 1 else 'one array statement'}",
        reason="a statement over a slice fetches all that it needs of other ranks at once, and"
        " no interpreter runs for each element",
        span=first_line(nest.loops[outer].span, kernel.context),
        variant=kernel.with_body(with_statement(kernel.body, nest.loops[0], body)),
        legality=_legality(nest, kernel),
        edits=partial(vector_edits, nest, outer, stores, kernel),
    )


def vectorised(nest: Nest, outer: int, kernel: Kernel) -> tuple[Store, ...] | None:
    """Return a nest's statements over slices, for all loops but so many outer ones.

    None where results might differ.
    """
    inner = nest.variables[outer:]
    loops = nest.loops[outer:]
    bounds = (free_symbols(loop.low) | free_symbols(loop.high) for loop in loops)
    if frozenset().union(*bounds) & frozenset(inner) or any(loop.step != 1 for loop in loops):
        return None
    if _waits(nest, outer):
        return None
    known = proofs(kernel, (*nest.around, *nest.loops[:outer]))
    sliced = Sliced(nest, outer, kernel, known)
    stores = sliced.stores()
    if sliced.clamped:
        # all slices along an index must have one length, and be seen to have it
        stores = sliced.stores()
    return stores


def _waits(nest: Nest, outer: int) -> bool:
    """Return whether whole statements, one after the other, might come in another order.

    Within one statement all reads come before all stores, so only what reads an earlier
    iteration's store may wait.
    """
    found = references(nest)
    inner = len(nest.loops) - outer
    later = [(0,) * outer + signs for signs in directions(inner)]
    for first in found:
        for then in found:
            if first.array != then.array or not (first.store or then.store):
                continue
            if first.statement < then.statement:
                continue
            if first.statement == then.statement and not (first.store and not then.store):
                continue
            if any(may_meet(first, then, nest, signs) for signs in later):
                return True
    return False


def _legality(nest: Nest, kernel: Kernel) -> Legality:
    left_alone = compiled(kernel)
    if left_alone is not None:
        return left_alone
    inexact = next((op for store in nest.body for op in _inexact(store, kernel)), None)
    if inexact is not None:
        return Legality(
            Applicability.UNSAFE,
            f"{inexact} may be rounded otherwise for arrays than for single numbers, so results"
            " agree to rounding",
        )
    shared = overlapping(nest, kernel)
    if shared is not None:
        return Legality(
            Applicability.UNSAFE,
            f"results are equal bit for bit if `{shared[0]}` and `{shared[1]}` do not overlap in"
            " memory, which is up to the caller",
        )
    return Legality(
        Applicability.SAFE,
        "no iteration reads what an earlier one wrote, and each element is computed by the same"
        " operations, so every result is equal bit for bit",
    )


def _inexact(store: Store, kernel: Kernel) -> Iterator[str]:
    """Yield what may come out otherwise for arrays than for single numbers."""
    dtype = kernel.dtype(store.array)
    kind = kind_of_or_none(dtype)
    if any(kernel.dtype(read.array) != dtype for read in reads(store.value)):
        yield "arithmetic on mixed types"
    used = set(_operations(store.value))
    numbers = any(isinstance(part, Scalar) for part in _parts(store.value))
    # before NumPy 2 a Python number widened another number, though not an array
    widens = numbers and bool(used) and dtype != WIDEST.get(kind or Kind.BOOLEAN)
    if kind is Kind.FLOATING:
        exact = frozenset() if widens else EXACT_FLOATING
    elif kind is Kind.INTEGER:
        exact = MODULAR if widens else EXACT_WHOLE
    else:
        exact = frozenset()
    yield from (f"`{operation}` on {dtype}" for operation in sorted(used - exact))


def _parts(value: Value) -> Iterator[Value]:
    yield value
    for part in operands(value):
        yield from _parts(part)


def _operations(value: Value) -> Iterator[str]:
    return (part.operation for part in _parts(value) if isinstance(part, Elementwise))


TRANSFORM = Vectorise()
