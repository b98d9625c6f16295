"""Elements that are the one before them and a term, as prefix sums in the order of the loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from advisor.distribution import NotDistributed
from advisor.dtypes import Kind
from advisor.finding import Applicability
from advisor.ir.kernel import Kernel
from advisor.ir.nests import Nest, slopes
from advisor.ir.proposal import Legality, Proposal
from advisor.ir.shapes import kind_of_or_none
from advisor.ir.statements import Store
from advisor.ir.values import Elementwise, Point, Range, Read, Scan, Subscript, Value, reads
from advisor.source import Edit
from costdb.expr import num
from costdb.records import dataclass, replace
from transforms.kit.kernels import is_all_of
from transforms.kit.rewrite import replace_statement, span_of, stands_alone, statements_at
from transforms.kit.slices import edited, shown_reads, slice_edits, sliced_nest, sliced_text
from transforms.loops.array_statements import in_place_of_loops, inexact, legality_of, vectorised

_SEQUENTIAL = ("float64", "float32", "int64")
"""Types in which ``np.cumsum`` adds one after the other, as the loop does."""


@dataclass(frozen=True, slots=True)
class Running:
    """``s[v] = s[v - 1] + term`` for all indices of some loops.

    Attributes
    ----------
    old : Store
    before : Read
        The element that the loop stored last.
    term : Value
    terms : Store
        All terms, where the sums will be.
    sums : Store
        Their prefix sums, from the element before the first one on.
    axis : int
        Along which they run, among the dimensions of the slice.
    """

    old: Store
    before: Read
    term: Value
    terms: Store
    sums: Store
    axis: int


def running_sums(nest: Nest, outer: int, kernel: Kernel) -> Iterator[Proposal]:
    """Yield a prefix sum in the place of all loops of a nest but so many outer ones."""
    found = _running(nest, outer, kernel)
    if found is None:
        return
    yield in_place_of_loops(
        nest,
        outer,
        kernel,
        "a prefix sum",
        "ranks sum their own elements at once and pass on one sum, and no interpreter runs for"
        " each element",
        (found.terms, found.sums),
        _legality(found, nest, kernel),
        partial(_edits, found, nest, outer, kernel),
    )


def _legality(found: Running, nest: Nest, kernel: Kernel) -> Legality:
    name = found.old.array
    floating = kind_of_or_none(kernel.dtype(name)) is Kind.FLOATING
    argued = legality_of(nest, kernel)
    dims = kernel.arrays[name].spec.dims if name in kernel.arrays else ()
    spread = any(not isinstance(dim, NotDistributed) for dim in dims)
    if argued.applicability is Applicability.SAFE and floating and spread:
        return Legality(
            Applicability.UNSAFE,
            "results are equal bit for bit in NumPy; where ranks add what those before them have,"
            " floating-point sums agree only to rounding",
        )
    return argued


def _running(nest: Nest, outer: int, kernel: Kernel) -> Running | None:
    if len(nest.body) != 1:
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
        dimension = _dimension(store, before, nest.variables[outer:])
        if dimension is None or any(read.array == store.array for read in reads(term)):
            continue
        assert isinstance(before, Read)
        only = replace(store, value=term, in_place=False)
        made = vectorised(replace(nest, body=(only,)), outer, kernel)
        first = sliced_nest(nest, outer, kernel).region(before.array, before.region)
        if made is None or first is None:
            return None
        (terms,) = made
        part, begin = terms.region[dimension], first[dimension]
        if not isinstance(part, Range) or not isinstance(begin, Range):
            return None
        region = _with(terms.region, dimension, Range(begin.low, part.high))
        axis = sum(1 for one in region[:dimension] if isinstance(one, Range))
        scan = Scan(Read(store.array, region), axis, "add", kernel.dtype(store.array))
        sums = Store(store.array, region, scan, store.span, in_place=True)
        return Running(store, before, term, terms, sums, axis)
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


def _with(region: tuple[Subscript, ...], place: int, part: Subscript) -> tuple[Subscript, ...]:
    return (*region[:place], part, *region[place + 1 :])


def _edits(found: Running, nest: Nest, outer: int, kernel: Kernel) -> tuple[Edit, ...]:
    context, span = kernel.context, nest.loops[outer].span
    nodes = statements_at(context)
    node = nodes.get((found.old.span.start_line, found.old.span.start_column))
    if not isinstance(node, ast.Assign) or not is_all_of(nest, nodes):
        return ()
    lines = _lines(node, found, kernel)
    if not lines or not stands_alone(context, span):
        return ()
    return (replace_statement(span, lines, context),)


def _lines(node: ast.Assign, found: Running, kernel: Kernel) -> list[str]:
    """Return the statement that stores the terms, and the one that sums them."""
    module = kernel.context.array_module
    value, target = node.value, node.targets[0]
    if module is None or not isinstance(value, ast.BinOp) or node.lineno != node.end_lineno:
        return []
    assert isinstance(found.old.value, Elementwise)
    is_first = found.old.value.operands[0] is found.before
    term = value.right if is_first else value.left
    before = [*reads(found.term), Read(found.old.array, found.old.region)]
    after = [*shown_reads(found.terms.value), (Read(found.terms.array, found.terms.region), 0)]
    edits = slice_edits((term, target), before, after, kernel)
    whole = sliced_text(Read(found.sums.array, found.sums.region), kernel)
    if edits is None or whole is None:
        return []
    shown = [edited(span_of(part, kernel.context.lines), edits, kernel) for part in (target, term)]
    several = sum(1 for part in found.sums.region if isinstance(part, Range)) > 1
    axis = f", axis={found.axis}" if several else ""
    return [f"{shown[0]} = {shown[1]}", f"{module}.cumsum({whole}{axis}, out={whole})"]
