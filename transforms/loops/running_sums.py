"""Elements that are the one before them and a term, as prefix sums in the order of the loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from advisor.distribution import NotDistributed
from advisor.finding import Applicability
from advisor.ir.kernel import Kernel, Legality, Proposal
from advisor.ir.nests import nest_of, slopes
from advisor.ir.shapes import ShapeConflict, kind_of_or_none
from advisor.ir.statements import Loop, Store
from advisor.ir.values import Elementwise, Point, Range, Read, Scan, Value, reads
from advisor.numpy_table import Kind
from costdb.expr import num
from transforms.kit.kernels import around, unless_apart, unsafe
from transforms.loops.array_statements import edit, loops, proposal
from transforms.loops.exactness import inexact, of_statement
from transforms.loops.masked import NotRaised
from transforms.loops.raising import raised

_SEQUENTIAL = ("float64", "float32", "int64")
"""Types in which ``np.cumsum`` adds one after the other, as the loop does."""


def running_sums(kernel: Kernel) -> Iterator[Proposal]:
    """Yield a prefix sum in the place of a loop, and of all within it."""
    for outer, loop in loops(kernel.body):
        found = _running(loop, outer, kernel)
        if found is not None:
            edits = partial(edit, loop, found, kernel)
            argued = _legality(loop, found[0], kernel)
            by = "a prefix sum"
            yield proposal(loop, found, kernel, argued, edits, True, by)


def _legality(loop: Loop, terms: Store, kernel: Kernel) -> Legality:
    name = terms.array
    floating = kind_of_or_none(kernel.dtype(name)) is Kind.FLOATING
    nest = nest_of(loop)
    assert nest is not None
    argued = unless_apart(nest.body, kernel) or of_statement(nest.body[0], kernel)
    assert argued is not None
    dims = kernel.arrays[name].spec.dims if name in kernel.arrays else ()
    spread = any(not isinstance(dim, NotDistributed) for dim in dims)
    if argued.applicability is Applicability.SAFE and floating and spread:
        return unsafe(
            "results are equal bit for bit in NumPy; where ranks add what those before them have,"
            " floating-point sums agree only to rounding"
        )
    return argued


def _running(loop: Loop, outer: tuple[Loop, ...], kernel: Kernel) -> tuple[Store, Store] | None:
    """Return ``s[v] = s[v - 1] + term`` as the terms where the sums will be, and their sums."""
    nest = nest_of(loop)
    if nest is None or len(nest.body) != 1 or not nest.is_by_element:
        return None
    (store,) = nest.body
    if kernel.dtype(store.array) not in _SEQUENTIAL or any(inexact(store, kernel)):
        return None
    match store.value:
        case Elementwise("add", (one, two)):
            pass
        case _:
            return None
    for before, term in ((one, two), (two, one)):
        dimension = _dimension(store, before, nest.variables)
        if dimension is None or any(read.array == store.array for read in reads(term)):
            continue
        only = replace(store, value=term, in_place=False)
        (inner,) = around(nest.loops, (only,))
        assert isinstance(inner, Loop)
        try:
            (terms,) = raised(inner, outer, kernel)
            assert isinstance(terms, Store)
        except (NotRaised, ShapeConflict):
            return None
        part = terms.region[dimension]
        if not isinstance(part, Range) or of_statement(only, kernel) is None:
            return None
        sums = Range(part.low - 1, part.high)
        region = (*terms.region[:dimension], sums, *terms.region[dimension + 1 :])
        axis = sum(isinstance(one, Range) for one in region[:dimension])
        scan = Scan(Read(store.array, region), axis, "add", kernel.dtype(store.array))
        return terms, Store(store.array, region, scan, store.span, in_place=True)
    return None


def _dimension(store: Store, before: Value, inner: tuple[str, ...]) -> int | None:
    """Return along which dimension one element is just before another; None if it is not."""
    if not isinstance(before, Read) or before.array != store.array:
        return None
    differing = [
        place
        for place, (own, other) in enumerate(zip(store.region, before.region, strict=True))
        if own != other
    ]
    if len(differing) != 1:
        return None
    (dimension,) = differing
    own, other = store.region[dimension], before.region[dimension]
    if not isinstance(own, Point) or not isinstance(other, Point):
        return None
    along = slopes(own, inner)
    following = own.at - other.at == num(1) and along is not None and set(along.values()) == {1}
    return dimension if following else None
