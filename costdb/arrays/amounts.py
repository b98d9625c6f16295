"""How much of each coefficient one call of an array library takes.

A call takes a fixed time, some for every entry into its innermost loop, some for every element,
and some for every cache line that comes from beyond the first level, by the level that still has
it: the sum of what the core does and of transfers level by level that the execution-cache-memory
model has. Where memory is strided, elements and lines have coefficients of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from math import log2 as log2_of

from costdb.arrays.memory import (
    Hierarchy,
    Shape,
    distinct,
    fastest,
    inner_runs,
    is_turned,
    shape_of,
)
from costdb.expr import ONE, ZERO, Expr, less, log2, maximum, minimum, num
from costdb.expr.nodes import Num
from costdb.machines import RESIDUAL
from costdb.work import ArrayCall, ArrayOperation, Visit

CALL, RUN = "call_us", "run_us"
ELEMENT, ROWS_ELEMENT, APART_ELEMENT = "element_us", "rows_element_us", "apart_element_us"
"""In rows with gaps between them the library goes through buffers, and where elements lie apart
none comes with another one's line."""
LINE, APART_LINE = "line_us", "apart_line_us"
LINES = (LINE, APART_LINE)
FAULT = "fault_us"
"""Not of a class: memory that the system has to give is as dear for every operation."""
GIVEN_BACK = "given_back"
"""Whether the memory of results that are neither small nor large comes anew each time, too."""
SMALL_BYTES, FRESH_BYTES = 256 * 2**10, 32 * 2**20
"""The C library keeps what smaller results take, and gives back what larger ones do: what lies
between goes by what else is in the heap when it is freed."""
PAGE_BYTES = 4096
RESIDUALS = RESIDUAL, f"apart_{RESIDUAL}"
"""What a fit leaves unexplained: where elements lie apart it is harder to know."""

_BY_ROWS = frozenset({
    ArrayOperation.FFT, ArrayOperation.SORT, ArrayOperation.SCAN, ArrayOperation.MATVEC,
})  # fmt: skip
_WALKING = frozenset({ArrayOperation.SCAN, ArrayOperation.SORT, ArrayOperation.FFT})
_ADDING = frozenset({ArrayOperation.ADD_AT, ArrayOperation.ADD_AT_CAST})
_WITHOUT_RUNS = frozenset({*_ADDING, ArrayOperation.TAKE, ArrayOperation.LOOP})
_BY_ELEMENT = frozenset({
    ArrayOperation.BINARY, ArrayOperation.DIVIDE, ArrayOperation.COMPARE, ArrayOperation.UNARY,
    ArrayOperation.ROOT, ArrayOperation.TRANSCENDENTAL, ArrayOperation.FUNCTION,
    ArrayOperation.WHERE, ArrayOperation.DIVIDE_BY_ONE, ArrayOperation.REMAINDER,
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Amount:
    """So much of one coefficient: its place under the operation's rates, and a formula."""

    place: tuple[str, ...]
    amount: Expr


def residual_key(places: Collection[tuple[str, ...]]) -> str:
    """Return which residual holds for a call that takes of the coefficients at `places`."""
    return RESIDUALS[(APART_ELEMENT,) in places]


def rate_key(call: ArrayCall) -> str:
    """Return the name of a call's class in a profile: along the last axis, or across."""
    across = call.axis_from_last not in (None, 0)
    return f"{call.operation}_across" if across else str(call.operation)


def amounts(call: ArrayCall, memory: Hierarchy) -> Iterator[Amount]:
    """Yield what a call takes of each coefficient.

    Parameters
    ----------
    call : ArrayCall
    memory : Hierarchy
        Lines from the first level cost nothing of their own.
    """
    yield Amount((CALL,), ONE)
    if call.operation is ArrayOperation.VIEW:
        return
    yield Amount((RUN,), _runs(call))
    shapes = [(visit, shape_of(visit.region, memory.line_bytes)) for visit in distinct(call)]
    walks = {visit: walk for visit, _ in shapes if (walk := _walked_across(call, visit))}
    apart = any(shape.apart_bytes is not None or visit in walks for visit, shape in shapes)
    in_rows = call.operation in _BY_ELEMENT and inner_runs(call) != ONE
    element = APART_ELEMENT if apart else ROWS_ELEMENT if in_rows else ELEMENT
    yield Amount((element,), call.elements * _work_each(call))
    own = sum((shape.lines for _, shape in shapes), ZERO) * memory.line_bytes
    walked = sum(((length for _, length in walks.values())), ZERO) * memory.line_bytes
    for visit, shape in shapes:
        if _is_table(call, visit):
            for key, here in memory.shares_anywhere(shape.lines * memory.line_bytes):
                yield Amount((APART_LINE, key), call.elements * here)
        elif visit in walks:
            yield from _across(visit, walks[visit][0], own, walked, memory)
        else:
            yield from _along(call, visit, shape, own, memory)
    if call.fresh and call.result is not None:
        size = shape_of(call.result.region, memory.line_bytes).lines * memory.line_bytes
        large, some = less(FRESH_BYTES, size), less(SMALL_BYTES, size)
        yield Amount((FAULT,), size / PAGE_BYTES * large)
        yield Amount((FAULT, GIVEN_BACK), size / PAGE_BYTES * (some - large))


def _along(
    call: ArrayCall, visit: Visit, shape: Shape, own: Expr, memory: Hierarchy
) -> Iterator[Amount]:
    """Yield the lines of memory that a call goes through in its order."""
    # packing goes through a factor of a product in the order in which it lies
    name, crowding = LINE, ONE
    if shape.apart_bytes is not None and call.operation is not ArrayOperation.MATMUL:
        name, crowding = APART_LINE, memory.crowding(shape.apart_bytes)
    far = own if visit.distance_bytes is None else maximum(own, visit.distance_bytes)
    # a region that moves by less than a line with a loop brings a new one once in a while
    new = ONE
    if visit.advance_bytes is not None:
        new = minimum(1, visit.advance_bytes / memory.line_bytes)
    for distance, share in ((far, new), (own, 1 - new)):
        if share != ZERO:
            for key, here in memory.shares(distance * crowding):
                yield Amount((name, key), shape.lines * share * here)


def _across(
    visit: Visit, pitch: Expr, own: Expr, walked: Expr, memory: Hierarchy
) -> Iterator[Amount]:
    """Yield the lines of walks side by side: each has a line for every element.

    The next walk finds them where this one left them, if that is not too long ago.
    """
    elements = ONE
    for count in visit.region.counts:
        elements = elements * count
    first = minimum(1, num(visit.region.itemsize_bytes) / memory.line_bytes)
    far = own if visit.distance_bytes is None else maximum(own, visit.distance_bytes)
    for distance, share in ((far, first), (walked * memory.crowding(pitch), 1 - first)):
        for key, here in memory.shares(distance):
            yield Amount((APART_LINE, key), elements * share * here)


def _is_table(call: ArrayCall, visit: Visit) -> bool:
    """Return whether a call refers to places of this memory that only the data know."""
    if call.operation is ArrayOperation.TAKE:
        return visit is call.operands[0]
    return call.operation in _ADDING and visit is call.result


def _walked_across(call: ArrayCall, visit: Visit) -> tuple[Expr, Expr] | None:
    """Return pitch and length of a walk that takes one element of each line it comes to.

    Operations along an axis that is not the last one do one walk after another; so does what goes
    through memory in the order of other memory: a copy that transposes, and an operation on
    elements of arrays that lie in different orders.
    """
    region = visit.region
    if len(region.counts) < 2:
        return None
    if call.operation is ArrayOperation.TRANSPOSE or call.operation in _BY_ELEMENT:
        # what makes its result takes the order of its operands
        new = call.result if call.fresh and call.operation in _BY_ELEMENT else None
        given = (one.region for one in call.visits[::-1] if one is not new)
        first = next((one for one in given if fastest(one) == 0), None)
        if visit is new or first is None or not is_turned(region, first):
            return None
        place = -1
    elif call.operation in _WALKING and call.axis_from_last:
        place = -1 - call.axis_from_last
    else:
        return None
    return region.pitches_bytes[place], region.counts[place]


def _runs(call: ArrayCall) -> Expr:
    """Return how often the library's innermost loop is entered."""
    if call.operation in _BY_ROWS and call.length is not None:
        return call.elements / call.length
    if call.operation is ArrayOperation.MATMUL:
        return call.elements
    return ZERO if call.operation in _WITHOUT_RUNS else inner_runs(call)


def _work_each(call: ArrayCall) -> Expr:
    """Return what is done for each element, in the unit of the class."""
    length = call.length
    if length is None:
        return ONE
    match call.operation:
        case ArrayOperation.MATMUL:
            return length
        case ArrayOperation.FFT if isinstance(length, Num):
            return num(_passes(max(2, int(length.value))))
        case ArrayOperation.FFT | ArrayOperation.SORT:
            if isinstance(length, Num):
                return num(log2_of(max(2, length.value)))
            return log2(maximum(2, length))
        case _:
            return ONE


def _passes(length: int) -> float:
    """Return what a transform does for each element: for powers of two, their logarithm.

    A pass for each prime factor combines as many elements as the factor. A length with a large one
    is a convolution instead (Bluestein's algorithm): three transforms of twice the length.
    """
    convolved, combined, rest, factor = 6 * (log2_of(length) + 1), 0, length, 2
    while rest > 1 and combined / 2 < convolved:
        while rest % factor == 0:
            rest //= factor
            combined += factor
        # no factor is left below the root of what is
        factor = factor + 1 if factor * factor <= rest else max(rest, 2)
    return min(combined / 2, convolved)
