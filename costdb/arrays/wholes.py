"""Rows that are whole for a while: regions cut to what a rank has.

A region that shrinks, such as what elimination has still to do, covers all columns of a rank as
long as it begins before them. Its rows then have no gaps between them, and a call goes through
them as through one; only later it goes row by row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from costdb.arrays.memory import ONE
from costdb.expr import Expr, less_equal, minimum, num
from costdb.expr.functions import Min
from costdb.expr.names import replace_part
from costdb.work import ArrayCall, Region, Visit


def in_whole_rows(call: ArrayCall) -> Iterator[tuple[Expr, ArrayCall]]:
    """Yield a call as it is with whole rows and without, each with when it is so, as 1 or 0.

    A call whose rows are always or never whole comes alone.
    """
    found = next((cut for visit in call.visits for cut in _cuts(visit.region)), None)
    if found is None:
        yield ONE, call
        return
    cut, whole = found
    rest = minimum(*(one for one in cut.args if one != whole))
    is_whole = less_equal(whole, rest)
    yield is_whole, _with(call, cut, whole)
    yield 1 - is_whole, _with(call, cut, rest)


def _cuts(region: Region) -> Iterator[tuple[Min, Expr]]:
    """Yield extents of rows that are at most the distance of neighbouring rows, and that."""
    item = num(region.itemsize_bytes)
    for count, pitch in zip(region.counts, region.pitches_bytes, strict=True):
        if isinstance(count, Min) and pitch == item:
            for whole in count.args:
                if whole * item in region.pitches_bytes:
                    yield count, whole


def _with(call: ArrayCall, cut: Expr, new: Expr) -> ArrayCall:
    def replaced(expr: Expr | None) -> Expr | None:
        return None if expr is None else replace_part(expr, cut, new)

    def moved(visit: Visit) -> Visit:
        region = visit.region
        return replace(
            visit,
            region=replace(
                region,
                counts=tuple(replace_part(one, cut, new) for one in region.counts),
                pitches_bytes=tuple(replace_part(one, cut, new) for one in region.pitches_bytes),
            ),
            distance_bytes=replaced(visit.distance_bytes),
            advance_bytes=replaced(visit.advance_bytes),
        )

    return replace(
        call,
        elements=replace_part(call.elements, cut, new),
        result=None if call.result is None else moved(call.result),
        operands=tuple(moved(visit) for visit in call.operands),
        length=replaced(call.length),
    )
