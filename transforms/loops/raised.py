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
at an end; names that are bound in the loop and used after it; loops that say by ``out=`` which
arrays they fill; what a compiler takes. Of the loops around, each is tried alone; inner ones that
add up or wait may stay loops.

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

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from advisor.finding import Applicability
from advisor.ir.kernel import Kernel, Legality, Proposal, rebuilt, with_part
from advisor.ir.shapes import ShapeConflict, kind_of_or_none
from advisor.ir.statements import Bind, Loop, Statement, Store, unrolled
from advisor.ir.values import (
    Elementwise,
    Fill,
    Point,
    Range,
    Read,
    Reduction,
    Scalar,
    Value,
    operands,
    parts_of,
    reads,
)
from advisor.numpy_table import Kind
from advisor.source import every
from costdb.expr import ONE, ZERO, Expr, free_symbols, substitute, sym
from transforms.kit import kernels
from transforms.kit.rewrite import first_line, statement_at
from transforms.loops.array_statements import (
    array_statements,
    edit,
    given,
    loops,
    loops_named,
    on,
    proposal,
    stores_in,
)
from transforms.loops.axes import told
from transforms.loops.exactness import (
    MODULAR,
    inexact,
    legality_of,
    of_other_order,
    reductions_in,
    tidied,
)
from transforms.loops.lift import Lift, Raised, needed
from transforms.loops.masked import NotRaised
from transforms.loops.raising import is_raisable, raised
from transforms.loops.reordered import reordered
from transforms.loops.substituted import at_place, opened, substituted, with_indices

# --- row loops ------------------------------------------------------------------------------------
# Loops of array statements in other forms than one statement over all iterations.
#
# Windows are opened, both halves of a matrix become one product, and of a recurrence everything
# that does not wait is computed before it. Triangles that wait along their rows go the other way.


Made = TypeVar("Made")


def row_loops(kernel: Kernel) -> Iterator[Proposal]:
    """Yield what else loops of array statements may become."""
    for outer, loop in loops(kernel.body):
        yield from _of_windows(outer, loop, kernel)
        yield from _of_halves(outer, loop, kernel)
        yield from _taken_out(outer, loop, kernel)
        yield from _reordered(outer, loop, kernel)


def _of_windows(outer: tuple[Loop, ...], loop: Loop, kernel: Kernel) -> Iterator[Proposal]:
    """Yield statements over arrays for a nest that reduces windows, a place in these at a time."""
    try:
        after, known = opened(loop, outer, kernel)
    except (NotRaised, ShapeConflict):
        return
    (store,) = stores_in((loop,))
    argued = _of_partial_sums(store, after, kernel)
    if argued is None:
        return
    statements, variant = tidied(after, known)
    edits = partial(edit, loop, statements, variant)
    if edits():
        yield proposal(loop, statements, variant, argued, edits, True, "array statements")


def _of_halves(outer: tuple[Loop, ...], loop: Loop, kernel: Kernel) -> Iterator[Proposal]:
    """Yield one statement for a loop that fills both halves of a symmetric matrix."""
    for after, variant, condition in _made(mirrored, outer, loop, kernel):
        argued = legality_of([after], [after], kernel)
        edits = partial(edit, loop, [after], variant)
        if argued is not None and edits():
            argued = on(argued, condition) if condition else argued
            yield proposal(loop, [after], variant, argued, edits, False)


def _taken_out(outer: tuple[Loop, ...], loop: Loop, kernel: Kernel) -> Iterator[Proposal]:
    """Yield a recurrence after what computes all that it does not wait for.

    Not where the loop says which arrays it stores to: then there is to be no other one.
    """
    node = statement_at(loop.span, kernel.context)
    if node is not None and any(one.arg == "out" for one in every(ast.keyword, node)):
        return
    for after, variant, condition in _made(taken_out, outer, loop, kernel):
        terms = terms_of(after)
        doubts = [next((doubt for one in terms for doubt in inexact(one, kernel)), "")]
        doubts = [next(filter(None, map(of_other_order, terms)), *doubts)]
        argued = kernels.unless_apart(stores_in((loop,)), kernel)
        doubts = [one for one in (*doubts, argued and argued.argument, condition) if one]
        if argued is None and not doubts:
            argued = kernels.safe(
                "no iteration changes what the terms are made of, and each is computed by the same"
                " operations, so every result is equal bit for bit"
            )
        else:
            argued = kernels.unsafe(", ".join(doubts))
        edits = partial(edit, loop, after, variant)
        if edits():
            yield kernels.offered(
                kernel,
                first_line(loop.span, kernel.context),
                f"compute before {loops_named([loop], kernel)} what it does not wait for",
                "one call does what every iteration calls NumPy for",
                variant.with_body(kernels.with_statement(variant.body, loop, after)),
                argued,
                edits,
            )


def _reordered(outer: tuple[Loop, ...], loop: Loop, kernel: Kernel) -> Iterator[Proposal]:
    """Yield a loop whose triangles go the other way, so that only the loop itself waits."""
    plain, known, conditions = substituted(loop, outer, kernel)
    if conditions:
        return
    for (after, before, stores), variant, condition in _made(_by_columns, outer, plain, known):
        argued = legality_of(before, stores, known)
        if argued is None:
            return
        if argued.applicability is Applicability.SAFE and not any(map(reductions_in, stores)):
            argued = kernels.safe(
                "iterations that touch the same element keep their order, and each element is"
                " computed by the same operations"
            )
        statements, variant = tidied((after,), variant)
        argued = on(argued, condition) if condition else argued
        edits = partial(edit, loop, statements, variant)
        if edits():
            yield proposal(loop, statements, variant, argued, edits, True, "array statements")


def _by_columns(
    loop: Loop, outer: tuple[Loop, ...], kernel: Kernel
) -> tuple[tuple[Loop, tuple[Store, ...], tuple[Store, ...]], Kernel]:
    return reordered(loop, outer, kernel), kernel


def _made(
    form: Callable[[Loop, tuple[Loop, ...], Kernel], tuple[Made, Kernel]],
    outer: tuple[Loop, ...],
    loop: Loop,
    kernel: Kernel,
) -> Iterator[tuple[Made, Kernel, str]]:
    """Yield what a loop is in another form, on the weakest condition on which it has one."""
    for known, condition in given(loop, kernel):
        try:
            after, variant = form(loop, outer, known)
        except (NotRaised, ShapeConflict):
            continue
        yield after, variant, condition
        return


def _of_partial_sums(store: Store, after: Sequence[Raised], kernel: Kernel) -> Legality | None:
    """Return whether a reduction comes to the same where the array itself adds up its terms."""
    (whole,) = {part.operation for part in parts_of(store.value) if isinstance(part, Reduction)}
    dtype = kernel.dtype(store.array)
    types = {kernel.dtype(read.array) for read in reads(store.value)}
    kinds = {kind_of_or_none(name) for name in (*types, dtype)}
    apart = kernels.unless_apart([store], kernel)
    alone = not any(map(reductions_in, stores_in(after))) and len(after) == 1
    if whole != "add" and alone and types == {dtype}:
        if kinds != {Kind.INTEGER}:
            return kernels.unsafe("results are equal, but for the signs of zeros")
        return apart or kernels.safe("the same elements are compared")
    if whole != "add":
        return None
    if kinds == {Kind.INTEGER}:
        wide = dtype in ("int64", "uint64") and types == {dtype}
        used = {part.operation for part in parts_of(store.value) if isinstance(part, Elementwise)}
        literals = any(isinstance(part, Scalar) for part in parts_of(store.value))
        if not wide or literals or not used <= MODULAR:
            return None
        equal = "the terms of whole numbers come in another order, which changes no bit"
        return apart or kernels.safe(equal)
    if not kinds <= {Kind.FLOATING, Kind.COMPLEX} or "float16" in {*types, dtype}:
        return None
    told = "sums are rounded in another order"
    if kernels.type_of(store.value, kernel).dtype != dtype:
        told += f", and between their terms to {dtype}"
    if apart is not None:
        told += f", {apart.argument.removeprefix('results are equal bit for bit ')}"
    return kernels.unsafe(told)


# --- loops that fill both halves of a symmetric matrix, a row and a column at a time --------------


def mirrored(loop: Loop, outer: tuple[Loop, ...], kernel: Kernel) -> tuple[Store, Kernel]:
    """Return one statement for a loop that fills both halves of a symmetric matrix.

    Raises
    ------
    NotRaised, ShapeConflict
        It does not.
    """
    body = unrolled(loop.body)
    if len(body) != 2 or not all(isinstance(one, Store) for one in body):
        raise NotRaised
    store, again = body
    assert isinstance(store, Store) and isinstance(again, Store)
    array, value = store.array, store.value
    match store.region:
        case (Range() as part, Point(at)) | (Point(at), Range() as part):
            low, high = part.low, part.high
        case _:
            raise NotRaised
    if again.array != array or again.region != tuple(reversed(store.region)):
        raise NotRaised
    if again.value not in (value, Read(array, store.region)):
        raise NotRaised
    index = sym(loop.variable)
    beyond = low - index
    until = loop.high + beyond
    if at != index or beyond not in (ZERO, ONE) or until != high or loop.step != 1:
        raise NotRaised
    if loop.variable in free_symbols(high) or array in {read.array for read in reads(value)}:
        raise NotRaised
    (inner,), known = with_indices("j", (loop.high,), kernel)
    across = sym(inner.variable)
    term = _scalar(at_place(value, 0, across - low, kernel))
    swapped = _exchanged(term, loop.variable, inner.variable)
    if _ordered(swapped) != _ordered(term):
        raise NotRaised
    own = Read(array, (Point(index), Point(across)))
    one = replace(store, region=own.region, value=term, in_place=False, held=())
    inner = replace(inner, low=loop.low, high=high, body=(one,))
    (made,) = raised(replace(loop, high=high, body=(inner,)), outer, known)
    assert isinstance(made, Store)
    if beyond == ONE:
        target = Read(array, made.region)
        diagonal = Fill("eye", kernels.type_of(target, kernel).extents, "bool")
        made = replace(made, value=Elementwise("where", (diagonal, target, made.value)))
    return made, known


def _scalar(value: Value) -> Value:
    """Return a value with the products of vectors in it as what a single element is made of."""
    match value:
        case Elementwise(_, parts):
            return replace(value, operands=tuple(map(_scalar, parts)))
        case Reduction(Elementwise("multiply", (Read(), Read())), 0, "add", fused=True):
            return replace(value, axis=None)
        case _:
            return value


def _exchanged(value: Value, one: str, other: str) -> Value:
    def swapped(expr: Expr) -> Expr:
        return substitute(expr, {one: sym(other), other: sym(one)})

    return rebuilt(value, swapped)


def _ordered(value: Value) -> object:
    """Return what values have in common that differ in the order of sums and products only."""
    if isinstance(value, Read) or not operands(value):
        return value
    parts = tuple(map(_ordered, operands(value)))
    if isinstance(value, Elementwise):
        if value.operation in ("add", "multiply"):
            parts = tuple(sorted(parts, key=repr))
        return value.operation, parts
    return replace(value, operand=Read("", ())) if isinstance(value, Reduction) else value, parts


# --- what a recurrence does not wait for, computed for all of its iterations before it begins -----


def taken_out(
    loop: Loop, outer: tuple[Loop, ...], kernel: Kernel
) -> tuple[tuple[Statement, ...], Kernel]:
    """Return a loop after statements that compute what it does not wait for, and their kernel.

    Raises
    ------
    NotRaised
        It waits for all that it computes.
    """
    stores = [one for one in loop.body if isinstance(one, Store)]
    if len(stores) != len(loop.body) or loop.step != 1 or not is_raisable(loop, kernel):
        raise NotRaised
    changed = frozenset(one.array for one in stores)
    lift = Lift(loop, outer, kernel, kernels.proofs(kernel, outer))
    lift.needed = frozenset(read for one in stores for read in needed(one))
    found = dict.fromkeys(one for store in stores for one in _ready(store.value, changed, lift))
    refusing = (lift.needs_elements(part) for value in found for part in told(value))
    if not found or (not kernel.runs_through and any(refusing)):
        raise NotRaised
    made: list[Statement] = []
    body = loop.body
    # what holds another one comes before it
    for value in sorted(found, key=lambda one: -sum(1 for _ in parts_of(one))):
        for read in reads(value):
            lift.note(Store(read.array, read.region, read, loop.span))
            if not lift.is_there(Store(read.array, read.region, read, loop.span)):
                raise NotRaised
        computed, place = lift.value(value)
        bind, read, kernel = kernels.named("terms", computed, loop.span, kernel)
        made.append(bind)
        region = list(read.region)
        if place is not None:
            region[place] = Point(sym(loop.variable) - loop.low)
        body = with_part(body, value, replace(read, region=tuple(region)))
    body = tuple(replace(one, held=()) if isinstance(one, Store) else one for one in body)
    return (*made, replace(loop, body=body)), kernel


def _ready(value: Value, changed: frozenset[str], lift: Lift) -> Iterator[Value]:
    """Yield the largest arrays in a value that nothing of the loop changes."""
    arrays = {read.array for read in reads(value)}
    computes = isinstance(value, Elementwise | Reduction) and lift.rank(value) > 0
    if computes and arrays and not arrays & changed:
        try:
            lift.value(value)
        except (NotRaised, ShapeConflict):
            pass
        else:
            yield value
            return
    if isinstance(value, Elementwise) and value.operation != "where":
        for part in value.operands:
            yield from _ready(part, changed, lift)


def terms_of(statements: tuple[Statement, ...]) -> Iterator[Store]:
    """Yield what is computed before the loop, as if it were stored to an array of its own."""
    for one in statements:
        if isinstance(one, Bind):
            read = next(part for part in parts_of(one.value) if isinstance(part, Read))
            yield Store(read.array, read.region, one.value, one.span)


# --- raised ---------------------------------------------------------------------------------------


def propose(kernel: Kernel) -> Iterator[Proposal]:
    """Yield one statement over all iterations for each loop of array statements."""
    if not kernels.is_compiled_alone(kernel):
        yield from array_statements(kernel, of_elements=False)
        yield from row_loops(kernel)


TRANSFORM = kernels.KernelRule("ADV504", "loop-of-array-statements", __doc__ or "", propose)
