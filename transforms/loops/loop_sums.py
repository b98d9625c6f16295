"""Sums, products, extremes and counts over loops, as reductions of array expressions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from advisor.dtypes import Kind, dtype_of
from advisor.ir.kernel import Kernel
from advisor.ir.nests import Nest, index_name
from advisor.ir.proposal import Proposal
from advisor.ir.shapes import ArrayType, describe, kind_of_or_none
from advisor.ir.statements import ScalarBind, Statement, Store, is_total
from advisor.ir.values import (
    Elementwise,
    Expand,
    MatMul,
    Read,
    Reduction,
    Value,
    reads,
)
from costdb.expr import free_symbols
from transforms.loops.element_loops import with_statement
from transforms.loops.proofs import proofs
from transforms.loops.slices import Sliced
from transforms.loops.sum_source import sum_edits
from transforms.loops.summed import METHODS, Summed, is_count, legality, method, parts_of
from transforms.source.nest_source import first_line

_COMMUTATIVE = frozenset({"add", "multiply", "maximum", "minimum"})


def sums(nest: Nest, outer: int, kernel: Kernel) -> Iterator[Proposal]:
    """Yield one statement in the place of all loops of a nest but so many outer ones."""
    found = _summed(nest, outer, kernel)
    if found is None:
        return
    argued = legality(found, nest, kernel)
    if argued is None:
        return
    body: tuple[Statement, ...] = (_statement(found, kernel),)
    for loop in reversed(nest.loops[:outer]):
        body = (replace(loop, body=body),)
    names = ", ".join(f"`{index_name(v)}`" for v in nest.variables[outer:])
    several = len(nest.loops) - outer > 1
    what = "a product" if found.product is not None else f"a `{method(found)}`"
    yield Proposal(
        title=f"replace the loop{'s' if several else ''} over {names} by {what} of arrays",
        reason="each rank combines its own elements, the parts are combined once, and no"
        " interpreter runs for each element",
        span=first_line(nest.loops[outer].span, kernel.context),
        variant=kernel.with_body(with_statement(kernel.body, nest.loops[0], body)),
        legality=argued,
        edits=partial(sum_edits, found, nest, outer, kernel),
    )


def _summed(nest: Nest, outer: int, kernel: Kernel) -> Summed | None:
    inner, loops = nest.variables[outer:], nest.loops[outer:]
    bounds = (free_symbols(loop.low) | free_symbols(loop.high) for loop in loops)
    if frozenset().union(*bounds) & frozenset(inner) or any(loop.step != 1 for loop in loops):
        return None
    if len(nest.body) != 1:
        return None
    (store,) = nest.body
    combined = _combined(store)
    if combined is None:
        return None
    operation, term = combined
    known = proofs(kernel, (*nest.around, *nest.loops[:outer]))
    for clamped in (frozenset[str](), frozenset(inner)):
        sliced = Sliced(nest, outer, kernel, known, set(clamped))
        found = _over_slices(sliced, store, operation, term)
        if found is None or not sliced.clamped - clamped:
            return found
    return None


def _combined(store: Store) -> tuple[str, Value] | None:
    """Return how a statement combines an element, or a number, with a term."""
    own, value = Read(store.array, store.region), store.value
    if not isinstance(value, Elementwise) or value.operation not in METHODS:
        return None
    if len(value.operands) != 2:
        return None
    one, two = value.operands
    if two == own and value.operation in _COMMUTATIVE:
        one, two = two, one
    if one != own or any(read.array == store.array for read in reads(two)):
        return None
    return value.operation, two


def _over_slices(sliced: Sliced, store: Store, operation: str, term: Value) -> Summed | None:
    kept = sliced.axes(store.region)
    region = () if is_total(store) else sliced.region(store.array, store.region)
    if kept is None or region is None or len(kept) == len(sliced.inner):
        return None
    if not is_total(store) and operation not in ("add", "subtract"):
        # of no terms there is no greatest one
        return None
    place = Read(store.array, region)
    if operation in ("add", "subtract"):
        product = _product(sliced, term, kept)
        if product is not None:
            value, order = product
            return Summed(store, operation, term, value, place, None, order)
    shown = term
    if is_count(term):
        assert isinstance(term, Elementwise)
        shown = term.operands[0]
    elif any(isinstance(p, Elementwise) and p.operation == "where" for p in parts_of(term)):
        return None
    for read in reads(shown):
        axes = sliced.axes(read.region)
        if axes is None or sorted(axes) != sorted(sliced.inner):
            continue
        if [axis for axis in axes if axis in kept] != kept:
            continue
        terms = sliced.value(shown, axes)
        if terms is None:
            return None
        along = tuple(place for place, axis in enumerate(axes) if axis not in kept)
        if is_count(term) and kept:
            return None
        return Summed(store, operation, term, terms, place, along if kept else None)
    return None


def _product(sliced: Sliced, term: Value, kept: list[str]) -> tuple[Value, tuple[int, int]] | None:
    """Return a sum of products as a product of matrices or vectors, and which is the left one."""
    match term:
        case Elementwise("multiply", (Read() as one, Read() as two)):
            pass
        case _:
            return None
    regions = [sliced.region(read.array, read.region) for read in (one, two)]
    axes = [sliced.axes(read.region) for read in (one, two)]
    gone = [axis for axis in sliced.inner if axis not in kept]
    if None in regions or None in axes or len(gone) != 1:
        return None

    def found(name: str) -> ArrayType:
        return ArrayType(sliced.kernel.dtype(name), sliced.kernel.extents(name))

    dtype = describe(term, found).dtype
    for left, right in ((0, 1), (1, 0)):
        first, last = axes[left], axes[right]
        pair = tuple(
            Read(read.array, region or ())
            for read, region in ((one, regions[0]), (two, regions[1]))
        )
        a, b = pair[left], pair[right]
        order = (left, right)
        if not kept and first == gone and last == gone:
            products = Elementwise("multiply", (a, b))
            return Reduction(products, None, "add", dtype, fused=True), order
        if len(kept) == 1 and first == [*kept, *gone] and last == gone:
            products = Elementwise("multiply", (a, Expand(b, 0)))
            return Reduction(products, 1, "add", dtype, fused=True), order
        if len(kept) == 1 and first == gone and last == [*gone, *kept]:
            products = Elementwise("multiply", (Expand(a, 1), b))
            return Reduction(products, 0, "add", dtype, fused=True), order
        if len(kept) == 2 and first == [kept[0], *gone] and last == [*gone, kept[1]]:
            return MatMul(a, b), order
    return None


def _statement(found: Summed, kernel: Kernel) -> Statement:
    value = _reduction(found, kernel)
    store = found.store
    if not is_total(store):
        value = Elementwise(found.operation, (found.place, value))
        return Store(store.array, found.place.region, value, store.span, in_place=True)
    return ScalarBind(store.array, value, store.span)


def _reduction(found: Summed, kernel: Kernel) -> Value:
    if found.product is not None:
        return found.sliced

    def lookup(name: str) -> ArrayType:
        return ArrayType(kernel.dtype(name), kernel.extents(name))

    dtype = describe(found.sliced, lookup).dtype
    operation = "add" if found.operation == "subtract" else found.operation
    if operation in ("add", "multiply"):
        dtype = "int64" if is_count(found.term) else _summing(dtype)
    value = found.sliced
    if found.axes is None:
        return Reduction(value, None, operation, dtype)
    for axis in reversed(found.axes):
        value = Reduction(value, axis, operation, dtype)
    return value


def _summing(dtype: str) -> str:
    """Return the type in which NumPy sums: no integer narrower than the platform's."""
    kind = kind_of_or_none(dtype)
    if kind in (Kind.BOOLEAN, Kind.INTEGER):
        return "uint64" if kind is Kind.INTEGER and not dtype_of(dtype).signed else "int64"
    return dtype
