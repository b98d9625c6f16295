"""How much of each coefficient one call of an array library takes.

A call takes a fixed time, some time for every entry into its innermost loop, some for every
element, and some for every cache line that comes from beyond the first-level cache, by how far
the line has gone since it was last used. Where the innermost dimension is strided, elements and
lines have coefficients of their own, and others again where the pitch is a multiple of
4096 bytes, at which lines compete for few places in a cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from costdb.arrays.memory import Lie, distinct, inner_runs, shape_of
from costdb.expr import (
    Expr,
    conditional,
    equal,
    less,
    less_equal,
    log2,
    maximum,
    minimum,
    num,
)
from costdb.expr.nodes import Num
from costdb.machines import RESIDUAL
from costdb.work import ArrayCall, ArrayOperation, Visit

ZERO, ONE = num(0), num(1)
CONFLICT_BYTES = 2048
"""A pitch that is a multiple of it maps all lines of a column to few sets of a cache."""
PAGE_BYTES = 4096
PAGES_AT_HAND = 3072
"""Processors of today know where so many pages are, or a third more; others are looked up."""
KEPT_BYTES = 32 * 2**20
"""Memory of larger arrays goes back to the system when it is freed: the C library's constant."""
HUGE_BYTES = 4 * 2**20
"""From here on NumPy asks for huge pages."""

CALL, RUN = "call_us", "run_us"
ELEMENT, ROWS_ELEMENT, APART_ELEMENT = "element_us", "rows_element_us", "apart_element_us"
PAGE = "page_us"
RESIDUALS = {
    ELEMENT: RESIDUAL,
    ROWS_ELEMENT: f"rows_{RESIDUAL}",
    APART_ELEMENT: f"apart_{RESIDUAL}",
}
"""What a fit leaves unexplained, by how a call's elements lie: strided ones are harder to know."""
LINE, APART_LINE, CONFLICT_LINE = "line_us", "apart_line_us", "conflict_line_us"
FRESH = "fresh"
"""Not of a class: memory that the system has to give is as dear for every operation."""
NEAR, BEYOND = "near", "beyond"
SMALL, HUGE = "small", "huge"
_BLOCKED = (ArrayOperation.MATMUL,)
_WALKING = (ArrayOperation.SCAN, ArrayOperation.SORT, ArrayOperation.FFT)


@dataclass(frozen=True, slots=True)
class Amount:
    """So much of one coefficient: its place under the operation's rates, and a formula."""

    place: tuple[str, ...]
    amount: Expr


def residual_key(places: Iterable[tuple[str, ...]]) -> str:
    """Return which residual holds for a call that takes of the coefficients at `places`."""
    return next((RESIDUALS[place[0]] for place in places if place[0] in RESIDUALS), RESIDUAL)


def rate_key(call: ArrayCall) -> str:
    """Return the name of a call's class in a profile: along the last axis, or across."""
    across = call.axis_from_last not in (None, 0)
    return f"{call.operation}_across" if across else str(call.operation)


def piece_keys(levels: Sequence[int]) -> tuple[str, ...]:
    """Return the names of the pieces beyond the first level, nearest first."""
    return (*(f"b{level}" for level in levels[1:]), BEYOND)


def working_set(call: ArrayCall, line_bytes: int) -> Expr:
    """Return the bytes of all lines that a call touches."""
    lines = ZERO
    for visit in distinct(call):
        lines = lines + shape_of(visit.region, line_bytes).lines
    return lines * line_bytes


def amounts(call: ArrayCall, levels: Sequence[int], line_bytes: int) -> Iterator[Amount]:
    """Yield what a call takes of each coefficient.

    Parameters
    ----------
    call : ArrayCall
    levels : sequence of int
        Bytes up to which data counts as being in each level of the memory, ascending; lines from
        the first one cost nothing of their own.
    line_bytes : int
    """
    yield Amount((CALL,), ONE)
    if call.operation is ArrayOperation.VIEW:
        return
    yield Amount((RUN,), _runs(call))
    shapes = [(visit, shape_of(visit.region, line_bytes)) for visit in distinct(call)]
    apart = any(shape.lie is Lie.APART for _, shape in shapes)
    gapless = call.length is not None or call.operation is ArrayOperation.LOOP
    in_rows = not (apart or gapless) and _runs(call) != ONE
    element = APART_ELEMENT if apart else ROWS_ELEMENT if in_rows else ELEMENT
    yield Amount((element,), call.elements * _work_each(call))
    own = working_set(call, line_bytes)
    pages = ZERO
    for _, shape in shapes:
        if shape.lie is Lie.APART:
            pages = pages + shape.elements * minimum(1, shape.pitch_bytes / PAGE_BYTES)
    if pages != ZERO:
        yield Amount((PAGE,), pages * less(PAGES_AT_HAND, pages))
    for visit, shape in shapes:
        if call.operation in _BLOCKED:
            # such algorithms bring their data near by themselves
            yield Amount((LINE, BEYOND), shape.lines)
            continue
        if _is_table(call, visit):
            # places that only the data know: a line for each, last used about a table ago
            for key, here in _by_level(shape.lines * line_bytes, levels):
                yield Amount((APART_LINE, key), call.elements * here)
            continue
        walked = _walked_across(call, visit)
        if walked is not None:
            yield from _across(visit, *walked, own, levels, line_bytes)
            continue
        name = LINE
        conflicts: Expr = ZERO
        if shape.lie is Lie.APART:
            name = APART_LINE
            conflicts = equal(shape.pitch_bytes % CONFLICT_BYTES, 0)
        for distance, lines in _parts(visit, shape.lines, shape.pitch_bytes, own, line_bytes):
            for key, here in _by_level(distance, levels):
                yield from _charged(name, key, lines * here, conflicts)
    if call.fresh and call.result is not None:
        lines = shape_of(call.result.region, line_bytes).lines
        # a library that may take over an operand does so with arrays of this size
        if not call.reuses:
            yield Amount((FRESH, BEYOND), lines * less(KEPT_BYTES, lines * line_bytes))


def _is_table(call: ArrayCall, visit: Visit) -> bool:
    match call.operation:
        case ArrayOperation.TAKE:
            return visit is call.operands[0]
        case ArrayOperation.ADD_AT | ArrayOperation.ADD_AT_CAST:
            return visit is call.result
        case _:
            return False


def _walked_across(call: ArrayCall, visit: Visit) -> tuple[Expr, Expr] | None:
    """Return pitch and length of a walk that takes one element of each line it comes to.

    Operations along an axis that is not the last one do one walk after another; so does a copy
    that transposes, in its source.
    """
    axis = call.axis_from_last
    if call.operation is ArrayOperation.TRANSPOSE:
        axis = 0 if visit in call.operands else None
    elif call.operation not in _WALKING or axis == 0:
        axis = None
    if axis is None or len(visit.region.counts) < 2:
        return None
    place = len(visit.region.counts) - 1 - axis
    return visit.region.pitches_bytes[place], visit.region.counts[place]


def _across(
    visit: Visit,
    pitch: Expr,
    length: Expr,
    own: Expr,
    levels: Sequence[int],
    line_bytes: int,
) -> Iterator[Amount]:
    """Yield the lines of walks side by side: each has a line for every element.

    The next walk finds them where this one left them, if that is not too long ago.
    """
    region = visit.region
    elements = ONE
    for count in region.counts:
        elements = elements * count
    share = minimum(1, num(region.itemsize_bytes) / line_bytes)
    near = 2 * length * line_bytes
    far = own if visit.distance_bytes is None else maximum(own, visit.distance_bytes)
    conflicts = equal(pitch % CONFLICT_BYTES, 0)
    for distance, lines in ((far, elements * share), (near, elements * (1 - share))):
        for key, here in _by_level(distance, levels):
            yield from _charged(APART_LINE, key, lines * here, conflicts)
    # conflicts drive lines out even where all of them would fit
    yield Amount((CONFLICT_LINE, NEAR), elements * conflicts * less_equal(near, levels[0]))


def _charged(name: str, key: str, lines: Expr, conflicts: Expr) -> Iterator[Amount]:
    if conflicts != ONE:
        yield Amount((name, key), conditional(conflicts, 0, lines))
    if conflicts != ZERO:
        yield Amount((CONFLICT_LINE, key), conditional(conflicts, lines, 0))


def _parts(
    visit: Visit, lines: Expr, pitch: Expr, own: Expr, line_bytes: int
) -> Iterator[tuple[Expr, Expr]]:
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


def _by_level(distance: Expr, levels: Sequence[int]) -> Iterator[tuple[str, Expr]]:
    """Yield for each piece beyond the first level whether data comes from there."""
    nearer = levels[0]
    for level, key in zip(levels[1:], piece_keys(levels)[:-1], strict=True):
        inside = conditional(less(nearer, distance), less_equal(distance, level), 0)
        if inside != ZERO:
            yield key, inside
        nearer = level
    beyond = less(nearer, distance)
    if beyond != ZERO:
        yield BEYOND, beyond


def _runs(call: ArrayCall) -> Expr:
    match call.operation:
        case (
            ArrayOperation.MATMUL
            | ArrayOperation.TAKE
            | ArrayOperation.ADD_AT
            | ArrayOperation.ADD_AT_CAST
            | ArrayOperation.LOOP
        ):
            return ZERO
        case ArrayOperation.FFT | ArrayOperation.SORT | ArrayOperation.MATVEC if (
            call.length is not None
        ):
            return call.elements / call.length
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
        case ArrayOperation.FFT | ArrayOperation.SORT:
            return (
                log2(maximum(2, length))
                if not isinstance(length, Num)
                else log2(max(2, length.value))
            )
        case _:
            return ONE
