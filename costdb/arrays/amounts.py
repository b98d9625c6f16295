"""How much of each coefficient one call of an array library takes.

A call takes a fixed time, some time for every entry into its innermost loop, some for every
element, and some for every cache line that comes from beyond the first-level cache, by how far
the line has gone since it was last used. Where the innermost dimension is strided, elements and
lines have coefficients of their own, and others again where the pitch is a multiple of
4096 bytes, at which lines compete for few places in a cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from costdb.work import ArrayCall, ArrayOperation, Visit

ZERO, ONE = num(0), num(1)
CONFLICT_BYTES = 4096
"""A pitch that is a multiple of it maps all lines of a column to few sets of a cache."""
TAKEN_OVER_BYTES = 262_144
"""Temporaries from here on are taken over by the next operator: NumPy's constant."""

CALL, RUN, ELEMENT, APART_ELEMENT = "call_us", "run_us", "element_us", "apart_element_us"
LINE, APART_LINE, CONFLICT_LINE, FRESH_LINE = (
    "line_us",
    "apart_line_us",
    "conflict_line_us",
    "fresh_line_us",
)
BEYOND = "beyond"


@dataclass(frozen=True, slots=True)
class Amount:
    """So much of one coefficient: its place under the operation's rates, and a formula."""

    place: tuple[str, ...]
    amount: Expr


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
    yield Amount((APART_ELEMENT if apart else ELEMENT,), call.elements * _work_each(call))
    own = working_set(call, line_bytes)
    for visit, shape in shapes:
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
        size = lines * line_bytes
        made = less(size, TAKEN_OVER_BYTES) if call.reuses else ONE
        for key, here in _by_level(size, levels):
            yield Amount((FRESH_LINE, key), conditional(made, lines * here, 0))


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
            | ArrayOperation.LOOP
        ):
            return ZERO
        case ArrayOperation.FFT | ArrayOperation.SORT if call.length is not None:
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
