"""Statements over slices in the place of loops over single elements."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.dtypes import Kind
from advisor.finding import Applicability
from advisor.ir.kernel import Kernel
from advisor.ir.nests import Nest, directions, may_meet, references
from advisor.ir.proposal import Legality
from advisor.ir.shapes import kind_of_or_none
from advisor.ir.statements import Store
from advisor.ir.values import Elementwise, Scalar, Value, operands, reads
from costdb.expr import free_symbols
from transforms.loops.element_loops import compiled, unless_apart
from transforms.loops.proofs import proofs
from transforms.loops.slices import Sliced

EXACT_FLOATING = frozenset(
    {"add", "subtract", "multiply", "divide", "negative", "absolute", "sqrt", "square"}
)
MODULAR = frozenset(
    {"add", "subtract", "multiply", "negative", "bitwise_and", "bitwise_or", "bitwise_xor"}
)
EXACT_WHOLE = MODULAR | {"minimum", "maximum", "square", "absolute"}
WIDEST = {Kind.INTEGER: "int64", Kind.FLOATING: "float64"}


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


def legality_of(nest: Nest, kernel: Kernel) -> Legality:
    """Return whether statements over slices give the same bits as a nest of loops."""
    left_alone = compiled(kernel)
    if left_alone is not None:
        return left_alone
    rounded = next((op for store in nest.body for op in inexact(store, kernel)), None)
    if rounded is not None:
        return Legality(
            Applicability.UNSAFE,
            f"{rounded} may be rounded otherwise for arrays than for single numbers, so results"
            " agree to rounding",
        )
    shared = unless_apart(nest, kernel)
    if shared is not None:
        return shared
    return Legality(
        Applicability.SAFE,
        "no iteration reads what an earlier one wrote, and each element is computed by the same"
        " operations, so every result is equal bit for bit",
    )


def inexact(store: Store, kernel: Kernel) -> Iterator[str]:
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
