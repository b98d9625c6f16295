"""Loops of array statements in other forms than one statement over all iterations.

Windows are opened, both halves of a matrix become one product, and of a recurrence everything that
does not wait is computed before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from advisor.dtypes import Kind
from advisor.ir.kernel import Kernel
from advisor.ir.proposal import Legality, Proposal
from advisor.ir.shapes import kind_of_or_none
from advisor.ir.statements import Loop, Store
from advisor.ir.values import Elementwise, Reduction, Scalar, parts_of, reads
from transforms.kit.kernels import offered, safe, type_of, unless_apart, unsafe, with_statement
from transforms.kit.rewrite import first_line
from transforms.loops.array_statements import (
    edit,
    given,
    loops,
    loops_named,
    on,
    proposal,
    stores_in,
)
from transforms.loops.exactness import MODULAR, inexact, legality_of, reductions_in
from transforms.loops.mirrored import mirrored
from transforms.loops.opened import opened
from transforms.loops.raising import NotRaised, Raised, ShapeConflict
from transforms.loops.taken_out import taken_out, terms_of
from transforms.loops.temporaries import tidied

Made = TypeVar("Made")


def row_loops(kernel: Kernel) -> Iterator[Proposal]:
    """Yield what else loops of array statements may become."""
    for outer, loop in loops(kernel.body):
        yield from _of_windows(outer, loop, kernel)
        yield from _of_halves(outer, loop, kernel)
        yield from _taken_out(outer, loop, kernel)


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
    """Yield a recurrence after what computes all that it does not wait for."""
    for after, variant, condition in _made(taken_out, outer, loop, kernel):
        doubts = [next((doubt for one in terms_of(after) for doubt in inexact(one, kernel)), "")]
        if any(map(reductions_in, terms_of(after))):
            doubts = ["sums are rounded in another order"]
        argued = unless_apart(stores_in((loop,)), kernel)
        doubts = [one for one in (*doubts, argued and argued.argument, condition) if one]
        if argued is None and not doubts:
            argued = safe(
                "no iteration changes what the terms are made of, and each is computed by the same"
                " operations, so every result is equal bit for bit"
            )
        else:
            argued = unsafe(", ".join(doubts))
        edits = partial(edit, loop, after, variant)
        if edits():
            yield offered(
                kernel,
                first_line(loop.span, kernel.context),
                f"compute before {loops_named([loop])} what it does not wait for",
                "one call does what every iteration calls NumPy for",
                variant.with_body(with_statement(variant.body, loop, after)),
                argued,
                edits,
            )


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
    named = {kernel.dtype(read.array) for read in reads(store.value)}
    kinds = {kind_of_or_none(name) for name in (*named, dtype)}
    apart = unless_apart([store], kernel)
    alone = not any(map(reductions_in, stores_in(after))) and len(after) == 1
    if whole != "add" and alone and named == {dtype}:
        if kinds != {Kind.INTEGER}:
            return unsafe("results are equal, but for the signs of zeros")
        return apart or safe("the same elements are compared")
    if whole != "add":
        return None
    if kinds == {Kind.INTEGER}:
        wide = dtype in ("int64", "uint64") and named == {dtype}
        used = {part.operation for part in parts_of(store.value) if isinstance(part, Elementwise)}
        literals = any(isinstance(part, Scalar) for part in parts_of(store.value))
        if not wide or literals or not used <= MODULAR:
            return None
        equal = "the terms of whole numbers come in another order, which changes no bit"
        return apart or safe(equal)
    if not kinds <= {Kind.FLOATING, Kind.COMPLEX} or "float16" in {*named, dtype}:
        return None
    told = "sums are rounded in another order"
    if type_of(store.value, kernel).dtype != dtype:
        told += f", and between their terms to {dtype}"
    if apart is not None:
        told += f", {apart.argument.removeprefix('results are equal bit for bit ')}"
    return unsafe(told)
