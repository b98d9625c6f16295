"""Statements over slices in the place of loops over single elements."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.dtypes import Kind
from advisor.finding import Applicability
from advisor.ir.kernel import Kernel
from advisor.ir.nests import Nest, directions, index_name, may_meet, references
from advisor.ir.proposal import Legality, Proposal
from advisor.ir.shapes import kind_of_or_none
from advisor.ir.statements import Statement, Store
from advisor.ir.values import Elementwise, Scalar, parts_of, reads
from costdb.expr import free_symbols
from transforms.kit.kernels import around, compiled, unless_apart, with_statement
from transforms.kit.rewrite import Edits, first_line
from transforms.kit.slices import sliced_nest

EXACT_FLOATING = frozenset(
    {"add", "subtract", "multiply", "divide", "negative", "absolute", "sqrt", "square"}
)


MODULAR = frozenset(
    {"add", "subtract", "multiply", "negative", "bitwise_and", "bitwise_or", "bitwise_xor"}
)


EXACT_WHOLE = MODULAR | {"minimum", "maximum", "square", "absolute"}


WIDEST = {Kind.INTEGER: "int64", Kind.FLOATING: "float64"}


def in_place_of_loops(
    nest: Nest,
    outer: int,
    kernel: Kernel,
    by: str,
    reason: str,
    statements: tuple[Statement, ...],
    legality: Legality,
    edits: Edits,
) -> Proposal:
    """Return the proposal of statements for all loops of a nest but so many outer ones."""
    names = ", ".join(f"`{index_name(v)}`" for v in nest.variables[outer:])
    body = around(nest.loops[:outer], statements)
    return Proposal(
        f"replace the loop{'s' if len(nest.loops) - outer > 1 else ''} over {names} by {by}",
        reason,
        first_line(nest.loops[outer].span, kernel.context),
        kernel.with_body(with_statement(kernel.body, nest.loops[0], body)),
        legality,
        edits,
    )


def are_plain(nest: Nest, outer: int) -> bool:
    """Return whether the inner loops of a nest go over ranges that none of them changes."""
    loops = nest.loops[outer:]
    bounds = (free_symbols(loop.low) | free_symbols(loop.high) for loop in loops)
    inner = frozenset(nest.variables[outer:])
    return not frozenset().union(*bounds) & inner and all(loop.step == 1 for loop in loops)


def vectorised(nest: Nest, outer: int, kernel: Kernel) -> tuple[Store, ...] | None:
    """Return a nest's statements over slices, for all loops but so many outer ones.

    None where results might differ.
    """
    if not are_plain(nest, outer) or _waits(nest, outer):
        return None
    return sliced_nest(nest, outer, kernel).stores()


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
    shared = unless_apart(nest.body, kernel)
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
    used = {part.operation for part in parts_of(store.value) if isinstance(part, Elementwise)}
    numbers = any(isinstance(part, Scalar) for part in parts_of(store.value))
    # before NumPy 2 a Python number widened another number, though not an array
    widens = numbers and bool(used) and dtype != WIDEST.get(kind or Kind.BOOLEAN)
    if kind is Kind.FLOATING:
        exact = frozenset() if widens else EXACT_FLOATING
    elif kind is Kind.INTEGER:
        exact = MODULAR if widens else EXACT_WHOLE
    else:
        exact = frozenset()
    yield from (f"`{operation}` on {dtype}" for operation in sorted(used - exact))
