"""Memory that a call touches: runs, lines, and how they lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from costdb.expr import ONE, ZERO, Expr, minimum, num
from costdb.expr.nodes import Num
from costdb.work import ArrayCall, Region, Visit


class Lie(StrEnum):
    """How the elements of a region follow one another in memory.

    Dense ones fill their lines; apart, each may have a line of its own.
    """

    DENSE = "dense"
    APART = "apart"


@dataclass(frozen=True, slots=True)
class Shape:
    """A region without dimensions that change nothing.

    Attributes
    ----------
    lie : Lie
    elements : Expr
        Distinct ones.
    lines : Expr
        Cache lines touched, as expected for any alignment.
    pitch_bytes : Expr
        Between neighbours of the innermost dimension.
    runs : Expr
        Parts without gaps; 1 where elements lie apart.
    """

    lie: Lie
    elements: Expr
    lines: Expr
    pitch_bytes: Expr
    runs: Expr = ONE


def shape_of(region: Region, line_bytes: int) -> Shape:
    """Return how a region lies in memory."""
    item, line = num(region.itemsize_bytes), num(line_bytes)
    dims = [
        (count, pitch)
        for count, pitch in zip(region.counts, region.pitches_bytes, strict=True)
        if count != ONE and pitch != ZERO
    ]
    if not dims:
        return Shape(Lie.DENSE, ONE, ONE, item)
    inner = next((d for d in reversed(dims) if d[1] == item), None)
    elements = ONE
    for count, _ in dims:
        elements = elements * count
    if inner is None:
        inner = _closest(dims)
        return Shape(Lie.APART, elements, elements * minimum(1, inner[1] / line), inner[1])
    run, rest = inner[0] * item, [d for d in dims if d is not inner]
    runs, joined = ONE, True
    gap: Expr | None = None
    # dimensions that go on where the one inside them ends make longer runs
    while joined and rest:
        following = next((d for d in rest if d[1] == run), None)
        joined = following is not None
        if following is not None:
            run = run * following[0]
            rest.remove(following)
    for count, _ in rest:
        runs = runs * count
    if rest:
        gap = _closest(rest)[1]
    own = run / line + (1 - item / line)
    lines = own if gap is None else minimum(own, gap / line)
    return Shape(Lie.DENSE, elements, runs * lines, item, runs)


def _closest(dims: list[tuple[Expr, Expr]]) -> tuple[Expr, Expr]:
    """Return the dimension with the least pitch where numbers tell, else the last one."""
    if all(isinstance(pitch, Num) for _, pitch in dims):
        return min(dims, key=lambda d: abs(float(d[1].value)) if isinstance(d[1], Num) else 0.0)
    return dims[-1]


def moving_axes(region: Region) -> list[int]:
    """Return the axes along which memory changes: 0 is the last, -1 before it."""
    dimensions = zip(region.counts, region.pitches_bytes, strict=True)
    axes = enumerate(dimensions, 1 - len(region.counts))
    return [axis for axis, (count, pitch) in axes if count != ONE and pitch != ZERO]


def fastest(region: Region) -> int | None:
    """Return the axis along which elements are next to each other.

    None where there is none, or only one axis along which memory changes: no order then.
    """
    axes, item = moving_axes(region), num(region.itemsize_bytes)
    if len(axes) < 2:
        return None
    return next((axis for axis in axes if region.pitches_bytes[axis - 1] == item), None)


def is_turned(region: Region, other: Region) -> bool:
    """Return whether neighbours in one region's memory are not neighbours in another's.

    Along a dimension in which a region is repeated it has no neighbours: the others count then.
    """
    one, there = fastest(region), fastest(other)
    if one is None or there is None:
        return False
    moving = moving_axes(region)
    if there not in moving:
        there = max(moving) if there == 0 else min(moving)
    return one != there


def inner_runs(call: ArrayCall) -> Expr:
    """Return how often the library's innermost loop is entered.

    Dimensions that go on in all memory alike where the one inside them ends are one loop.
    """
    runs, inside = ONE, None
    for count, pitches in _dimensions(call):
        if inside is not None and not _go_on(pitches, inside):
            runs = runs * count
            continue
        inside = (count, pitches) if inside is None else (inside[0] * count, inside[1])
    return runs


def visits_in_rows(call: ArrayCall) -> tuple[Visit, ...]:
    """Return what a call that is no single loop does not go through as one by itself.

    That are rows with gaps between them, and what is read again for each row or in each.
    """
    if inner_runs(call) == ONE:
        return ()
    dimensions = list(_dimensions(call))
    found = []
    for number, visit in enumerate(call.visits):
        inside = None
        for count, pitches in dimensions:
            own = [pitches[number]]
            if inside is not None and not _go_on(own, inside):
                found.append(visit)
                break
            inside = (count, own) if inside is None else (inside[0] * count, inside[1])
    return tuple(found)


def _dimensions(call: ArrayCall) -> Iterator[tuple[Expr, list[Expr]]]:
    """Yield extents other than 1 and the pitches of all visits along them, the innermost first."""
    visits = call.visits
    ranks = max((len(visit.region.counts) for visit in visits), default=0)
    regions = [_padded(visit.region, ranks) for visit in visits]
    for dimension in reversed(range(ranks)):
        count = next((counts[dimension] for counts, _ in regions if counts[dimension] != ONE), ONE)
        if count != ONE:
            yield count, [pitches[dimension] for _, pitches in regions]


def _go_on(pitches: Sequence[Expr], inside: tuple[Expr, Sequence[Expr]]) -> bool:
    """Return whether a dimension goes on, everywhere, where the one inside it ends."""
    return all(p == inside[0] * q for p, q in zip(pitches, inside[1], strict=True))


def _padded(region: Region, ranks: int) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    missing = ranks - len(region.counts)
    return (ONE,) * missing + region.counts, (ZERO,) * missing + region.pitches_bytes


def distinct(call: ArrayCall) -> tuple[Visit, ...]:
    """Return the memory of a call, each part once: what is stored where it was loaded."""
    found: dict[tuple[str, Region], Visit] = {}
    for visit in call.visits:
        found.setdefault((visit.array or str(id(visit)), visit.region), visit)
    return tuple(found.values())
