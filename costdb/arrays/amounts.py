"""How much of each coefficient one call of an array library takes.

A call takes a fixed time, some time for every entry into its innermost loop, some for every
element, and some for every cache line that comes from beyond the first-level cache, by how far
the line has gone since it was last used (:mod:`costdb.arrays.hierarchy`). Where the innermost
dimension is strided, elements and lines have coefficients of their own, and lines that crowd
into few sets of a cache others again (:mod:`costdb.arrays.conflicts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import log2 as log2_of

from costdb.arrays.conflicts import (
    conflicts,
    in_walks,
    is_table,
    lines_referred_to,
    pages,
    walk_bytes,
    walked_across,
)
from costdb.arrays.hierarchy import BEYOND, NEAR, Hierarchy, lost_of
from costdb.arrays.memory import Lie, Shape, distinct, inner_runs, shape_of, visits_in_rows
from costdb.arrays.reuse import bytes_of
from costdb.arrays.transform import passes, planned, sweeps
from costdb.expr import ONE, ZERO, Expr, less, less_equal, log2, maximum, minimum, num
from costdb.expr.nodes import Num
from costdb.machines import RESIDUAL
from costdb.work import ArrayCall, ArrayOperation, Region, Visit, Written

# What a sort of some length takes, as NumPy's library (x86-simd-sort) does it with wide vectors.
#
# A few hundred elements are sorted by a network of comparisons that depends on nothing but their
# number, filled up to a power of two; more are parted around a middle value until a network holds
# what is left. Without such vectors the library parts down to a handful of elements: what that
# takes goes with the logarithm of the length, and a fit has both.

_SMALLEST_BYTES, _LARGEST_BYTES = 64, 2048
"""A network holds one vector at least, and so much at most."""
_LEFT = 3 / 8, 1.0
"""What is left when the middle was guessed from a few elements, in parts of the largest network."""
_UNEVEN = 1.5
"""Halves are uneven: parting ends as late as for so many times as many elements."""
_SAMPLES = 64


def compared(length: Expr, itemsize_bytes: int) -> Expr:
    """Return the comparisons of networks in a sort of so many elements."""
    smallest, largest = _SMALLEST_BYTES // itemsize_bytes, _LARGEST_BYTES // itemsize_bytes
    total, size = num(network(smallest)), smallest
    while size < largest:
        total = total + (network(2 * size) - network(size)) * less(size, length)
        size *= 2
    beyond = num(_each_left(largest)) * length - network(largest)
    return total + less(largest, length) * beyond


def parted(length: Expr, itemsize_bytes: int) -> Expr:
    """Return how often each of so many elements is held against a middle one."""
    largest = _LARGEST_BYTES // itemsize_bytes
    often = maximum(1, log2(maximum(1, length * _UNEVEN / largest)))
    return less(largest, length) * often


def network(size: int) -> float:
    """Return the comparisons of a bitonic network on a power of two."""
    doublings = log2_of(size)
    return size / 2 * doublings * (doublings + 1) / 2


def _each_left(largest: int) -> float:
    """Return the comparisons for each element of what is left, on average."""
    low, high = _LEFT
    total = 0.0
    for sample in range(_SAMPLES):
        left = largest * (low + (high - low) * (sample + 0.5) / _SAMPLES)
        total += network(largest if left > largest / 2 else largest // 2) / left
    return round(total / _SAMPLES, 2)


PAGES_NEAR = 64
"""Processors of today know at once where about so many pages are."""
SMALL_BYTES = 1024
"""The library keeps freed arrays smaller than this for its next ones."""
KEPT_BYTES = 32 * 2**20
"""Memory of larger arrays goes back to the system when it is freed: the C library's constant."""
HUGE_BYTES = 4 * 2**20
"""From here on NumPy asks for huge pages."""

CALL, RUN = "call_us", "run_us"
KEPT_CALL, FRESH_CALL = "kept_call_us", "fresh_call_us"
"""On top of a call: storing into an array that is there, or getting memory for the result."""
STEP = "step_us"
"""On top of a call for each function around it that the interpreter goes through."""
INDEX, SLICE, BOUND, SEVERAL = "index_us", "slice_us", "bound_us", "several_us"
"""On top of a view: an index, a slice and an end of one in its subscript, and that there are
several of them."""
PUT_BACK = "put_back_us"
"""What it takes beside its subscript to store what lies there already."""
ELEMENT, APART_ELEMENT = "element_us", "apart_element_us"
ROWS_LOADED, ROWS_STORED = "rows_loaded_us", "rows_stored_us"
"""On top of an element for each operand, and for the result, that is not gone through as a whole:
the library copies it by way of a buffer."""
SHORT_WALK = "short_walk_us"
"""On top of an element of a sum along a walk across lines that is too short for the processor to
learn that each step loads what the one before stored."""
UNFORESEEN = "unforeseen_us"
"""On top of an element that gets one of two values as a mask has it that nobody can foresee."""
NETWORK, PARTED = "network_us", "parted_us"
"""A comparison of a network that sorts, and an element that is held against a middle one."""
PLAN, MOVED = "plan_us", "moved_us"
"""A root of unity that a transform needs, once for each call, and an element that is brought to
where it is transformed, and back."""
FACTOR, PRODUCT = "factor_element_us", "product_element_us"
"""Of a product of matrices, on top of its multiplications: an element of a factor, which the
library packs, and an element of the result, however few multiplications it takes."""
SMALL_FACTOR, SMALL_PRODUCT = "small_factor_element_us", "small_product_element_us"
"""The same of products with so few multiplications that the library packs nothing."""
UNPACKED_UP_TO = 100**3
"""So many multiplications have such products at most: the constant of OpenBLAS."""
APART_STORED = "apart_stored_us"
"""On top of a line of a result whose elements lie apart."""
PAGE, NEAR_PAGE = "page_us", "near_page_us"
RESIDUALS = {
    APART_ELEMENT: f"apart_{RESIDUAL}",
    ROWS_LOADED: f"rows_{RESIDUAL}",
    ROWS_STORED: f"rows_{RESIDUAL}",
}
"""What a fit leaves unexplained, by how a call's elements lie: strided ones are harder to know."""
LINE, APART_LINE, CONFLICT_LINE = "line_us", "apart_line_us", "conflict_line_us"
CONFLICT_STORED = "conflict_stored_us"
CROWDED, CROWDED_STORED = "crowded_line_us", "crowded_stored_us"
"""On top of a line where all go through one set of the first level, by turns; in part for more."""
ALONE = "alone_line_us"
"""On top of a line from beyond the caches that nothing else is waited for with."""
LINES = (LINE, APART_LINE, CONFLICT_LINE, CONFLICT_STORED)
FRESH = "fresh"
"""Not of a class: memory that the system has to give is as dear for every operation."""
SMALL, HUGE, FAR = "small", "huge", "_far"
"""Pages by kind, and what marks those that were given back with much else."""
_BY_ROWS = (ArrayOperation.FFT, ArrayOperation.SORT, ArrayOperation.SCAN, ArrayOperation.MATVEC)


@dataclass(frozen=True, slots=True)
class Amount:
    """So much of one coefficient: its place under the operation's rates, and a formula."""

    place: tuple[str, ...]
    amount: Expr


def residual_key(places: Iterable[tuple[str, ...]]) -> str:
    """Return which residual holds for a call that takes of the coefficients at `places`."""
    taken = {place[0] for place in places}
    return next((key for name, key in RESIDUALS.items() if name in taken), RESIDUAL)


def rate_key(call: ArrayCall) -> str:
    """Return the name of a call's class in a profile: along the last axis, or across."""
    across = call.axis_from_last not in (None, 0)
    return f"{call.operation}_across" if across else str(call.operation)


def by_rows(call: ArrayCall) -> bool:
    """Return whether a call does one row after another, however they lie."""
    return call.operation in _BY_ROWS and call.length is not None


def working_set(call: ArrayCall, line_bytes: int) -> Expr:
    """Return the bytes of all lines that a call touches."""
    lines = ZERO
    for visit in distinct(call):
        lines = lines + _lines_touched(call, visit, line_bytes)
    return lines * line_bytes


def amounts(call: ArrayCall, memory: Hierarchy) -> Iterator[Amount]:
    """Yield what a call takes of each coefficient.

    Parameters
    ----------
    call : ArrayCall
    memory : Hierarchy
        Lines from the first level cost nothing of their own.
    """
    if call.operation is ArrayOperation.VIEW:
        yield from _of_view(call.written)
        return
    yield Amount((CALL,), ONE)
    line_bytes = memory.line_bytes
    shapes = [(visit, shape_of(visit.region, line_bytes)) for visit in distinct(call)]
    yield from _of_the_call(call)
    yield from _of_elements(call, shapes, memory)
    own = working_set(call, line_bytes)
    for visit, shape in shapes:
        yield from _of_lines(call, visit, shape, own, memory)
    yield from _of_sweeps(call, memory)
    yield from _of_conflicts(call, shapes, own, memory)
    if call.fresh and call.result is not None:
        lines = shape_of(call.result.region, line_bytes).lines
        # a library that may take over an operand does so with arrays of this size
        if not call.reuses:
            yield Amount((FRESH, BEYOND), lines * less(KEPT_BYTES, lines * line_bytes))


def _of_view(written: Written | None) -> Iterator[Amount]:
    """Yield what a subscript takes; of one that nothing is known of, two slices are assumed."""
    found = Written(slices=2, bounds=3) if written is None else written
    if found.kept:
        yield Amount((PUT_BACK,), ONE)
    elif not found.stored:
        yield Amount((CALL,), ONE)
    parts = (INDEX, found.indices), (SLICE, found.slices), (BOUND, found.bounds)
    for key, count in parts:
        if count:
            yield Amount((key,), num(count))
    if found.indices + found.slices > 1:
        yield Amount((SEVERAL,), ONE)


def _of_the_call(call: ArrayCall) -> Iterator[Amount]:
    yield Amount((RUN,), _runs(call))
    if call.steps:
        yield Amount((STEP,), num(call.steps))
    if not call.fresh:
        yield Amount((KEPT_CALL,), ONE)
    elif call.result is not None:
        yield Amount((FRESH_CALL,), less_equal(SMALL_BYTES, _bytes(call.result.region)))


def _of_elements(
    call: ArrayCall, shapes: Sequence[tuple[Visit, Shape]], memory: Hierarchy
) -> Iterator[Amount]:
    apart = any(shape.lie is Lie.APART for _, shape in shapes)
    yield Amount((APART_ELEMENT if apart else ELEMENT,), call.elements * _work_each(call))
    if call.operation is ArrayOperation.SCAN and call.result is not None:
        walked = walked_across(call, call.result)
        if walked is not None:
            # where lines go through one set by turns, it is these that are waited for
            short = less_equal(walked[1], memory.learned) / memory.crowding(walked[0])[0]
            yield Amount((SHORT_WALK,), call.elements * short)
    if call.operation is ArrayOperation.WHERE and not call.foreseen:
        yield Amount((UNFORESEEN,), call.elements)
    yield from _of_length(call)
    if call.operation is ArrayOperation.MATMUL:
        yield from _of_products(call)
    if not apart and call.length is None and call.operation is not ArrayOperation.LOOP:
        in_rows = visits_in_rows(call)
        loaded = sum(visit in in_rows for visit in call.operands)
        if loaded:
            yield Amount((ROWS_LOADED,), call.elements * loaded)
        if call.result in in_rows:
            yield Amount((ROWS_STORED,), call.elements)
    visits, within = pages(call, shapes)
    if within != ZERO:
        yield Amount((NEAR_PAGE,), visits * less(PAGES_NEAR, within))
        yield Amount((PAGE,), visits * lost_of(within, memory.pages))


def _of_length(call: ArrayCall) -> Iterator[Amount]:
    """Yield what goes with the length of a row in other ways than by its logarithm."""
    length = call.length
    if length is None:
        return
    if call.operation is ArrayOperation.SORT and call.result is not None:
        itemsize_bytes = call.result.region.itemsize_bytes
        yield Amount((NETWORK,), call.elements / length * compared(length, itemsize_bytes))
        yield Amount((PARTED,), call.elements * parted(length, itemsize_bytes))
    if call.operation is ArrayOperation.FFT:
        roots: Expr = length
        operations = 0.0
        if isinstance(length, Num) and length.value == int(length.value):
            count, operations = planned(max(2, int(length.value)))
            roots = num(count)
        yield Amount((PLAN,), roots)
        yield Amount((MOVED,), call.elements)
        if operations:
            yield Amount((ELEMENT,), num(operations))


def _of_products(call: ArrayCall) -> Iterator[Amount]:
    small = less_equal(call.elements * _work_each(call), UNPACKED_UP_TO)
    packed = 1 - small
    for one in call.operands:
        elements = bytes_of(one.region) / one.region.itemsize_bytes
        yield Amount((FACTOR,), elements * packed)
        yield Amount((SMALL_FACTOR,), elements * small)
    yield Amount((PRODUCT,), call.elements * packed)
    yield Amount((SMALL_PRODUCT,), call.elements * small)


def _of_lines(
    call: ArrayCall, visit: Visit, shape: Shape, own: Expr, memory: Hierarchy
) -> Iterator[Amount]:
    if is_table(call, visit):
        yield from _anywhere(call, visit, shape, own, memory)
        return
    if walked_across(call, visit) is not None:
        yield from _across(call, visit, own, memory)
        return
    name = LINE
    # packing goes through a factor in the order in which it lies
    if shape.lie is Lie.APART and call.operation is not ArrayOperation.MATMUL:
        name = APART_LINE
        if visit == call.result:
            yield Amount((APART_STORED,), shape.lines * memory.lost(own)[0])
    elif call.length is None:
        # what a class computes in the first level depends on how many arrays it goes through
        yield Amount((LINE, NEAR), shape.lines)
    for distance, lines in _parts(visit, shape.lines, own, memory.line_bytes):
        for key, here in memory.shares(distance):
            yield Amount((name, key), lines * here)


def _of_sweeps(call: ArrayCall, memory: Hierarchy) -> Iterator[Amount]:
    """Yield the lines of transforms after the first pass: from where the one before left them.

    A pass loads one buffer and stores into another, and goes through roots of unity beside them.
    """
    length = call.length
    if call.operation is not ArrayOperation.FFT or call.result is None or length is None:
        return
    itemsize_bytes = call.result.region.itemsize_bytes
    again = log2(maximum(2, length)) / 3
    if isinstance(length, Num) and length.value == int(length.value):
        again = num(sweeps(max(2, int(length.value))))
    lines = call.elements * itemsize_bytes / memory.line_bytes * maximum(0, again - 1)
    for key, here in memory.shares(length * (3 * itemsize_bytes)):
        yield Amount((LINE, key), 2 * lines * here)


def _lines_touched(call: ArrayCall, visit: Visit, line_bytes: int) -> Expr:
    lines = shape_of(visit.region, line_bytes).lines
    return lines_referred_to(call.elements, lines) if is_table(call, visit) else lines


def _anywhere(
    call: ArrayCall, visit: Visit, shape: Shape, own: Expr, memory: Hierarchy
) -> Iterator[Amount]:
    """Yield the lines of references to places that only the data know.

    The first reference to a line finds it where the program left it, the others where this call
    did, a table ago. Lines that few of the references come to first are waited for one by one.
    """
    first = _lines_touched(call, visit, memory.line_bytes)
    far = own if visit.distance_bytes is None else maximum(own, visit.distance_bytes)
    # a line that is referred to several times was so the later in the call before
    far = far - own * (1 - minimum(1, shape.lines / call.elements))
    for key, here in memory.shares(far):
        yield Amount((APART_LINE, key), first * here)
    yield Amount((ALONE,), first * (1 - first / call.elements) * memory.lost(far)[-1])
    for key, here in memory.shares_anywhere(shape.lines * memory.line_bytes):
        yield Amount((APART_LINE, key), (call.elements - first) * here)


def _across(call: ArrayCall, visit: Visit, own: Expr, memory: Hierarchy) -> Iterator[Amount]:
    """Yield the lines of walks side by side: each has a line for every element.

    The next walk finds them where this one left them, if that is not too long ago.
    """
    elements, share = in_walks(visit, memory.line_bytes)
    far = own if visit.distance_bytes is None else maximum(own, visit.distance_bytes)
    for key, here in memory.shares(far):
        yield Amount((APART_LINE, key), elements * share * here)
    for key, here in memory.shares(walk_bytes(call, memory.line_bytes)):
        yield Amount((APART_LINE, key), elements * (1 - share) * here)


def _of_conflicts(
    call: ArrayCall, shapes: Sequence[tuple[Visit, Shape]], own: Expr, memory: Hierarchy
) -> Iterator[Amount]:
    loaded, stored = conflicts(call, shapes, own, memory)
    for found, line, waiting in (
        (loaded, CONFLICT_LINE, CROWDED),
        (stored, CONFLICT_STORED, CROWDED_STORED),
    ):
        if found is not None:
            for key, lines in zip(memory.keys, found.by_piece, strict=True):
                yield Amount((line, key), lines)
            if found.waiting != ZERO:
                yield Amount((waiting,), found.waiting)


def _parts(visit: Visit, lines: Expr, own: Expr, line_bytes: int) -> Iterator[tuple[Expr, Expr]]:
    """Yield how far lines have gone, and how many of them."""
    if visit.distance_bytes is None:
        yield own, lines
        return
    far = maximum(own, visit.distance_bytes)
    if visit.advance_bytes is None:
        yield far, lines
        return
    # a region that moves by less than a line brings a new line once in a while
    share = minimum(1, visit.advance_bytes / line_bytes)
    yield far, lines * share
    if share != ONE:
        yield own, lines * (1 - share)


def _bytes(region: Region) -> Expr:
    size = num(region.itemsize_bytes)
    for count in region.counts:
        size = size * count
    return size


def _runs(call: ArrayCall) -> Expr:
    if call.length is not None and by_rows(call):
        return call.elements / call.length
    match call.operation:
        case (
            ArrayOperation.MATMUL
            | ArrayOperation.TAKE
            | ArrayOperation.ADD_AT
            | ArrayOperation.ADD_AT_CAST
            | ArrayOperation.LOOP
        ):
            return ZERO
        case _:
            return inner_runs(call)


def _work_each(call: ArrayCall) -> Expr:
    """Return what is done for each element, in the unit of the class."""
    length = call.length
    if length is None:
        return ONE
    match call.operation:
        case ArrayOperation.MATMUL:
            return length
        case ArrayOperation.FFT if isinstance(length, Num) and length.value == int(length.value):
            return num(passes(max(2, int(length.value))))
        case ArrayOperation.FFT | ArrayOperation.SORT:
            return (
                log2(maximum(2, length))
                if not isinstance(length, Num)
                else log2(max(2, length.value))
            )
        case _:
            return ONE
