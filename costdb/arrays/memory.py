"""Memory that a call touches: runs, lines, how they lie, and which level still holds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from costdb.expr import ONE, ZERO, Expr, gcd, less, maximum, minimum, num
from costdb.expr.functions import Min
from costdb.expr.nodes import Num
from costdb.work import ArrayCall, Region, Visit


@dataclass(frozen=True, slots=True)
class Shape:
    """How a region lies in memory.

    Attributes
    ----------
    lines : Expr
        Cache lines touched, as expected for any alignment.
    apart_bytes : Expr or None
        Between neighbours, where each may have a line of its own; None where they fill lines.
    """

    lines: Expr
    apart_bytes: Expr | None = None


def shape_of(region: Region, line_bytes: int) -> Shape:
    """Return how a region lies in memory."""
    item, line = num(region.itemsize_bytes), num(line_bytes)
    dims = [
        (count, pitch)
        for count, pitch in zip(region.counts, region.pitches_bytes, strict=True)
        if count != ONE and pitch != ZERO
    ]
    if not dims:
        return Shape(ONE)
    inner = next((d for d in reversed(dims) if d[1] == item), None)
    if inner is None:
        lines, pitch = ONE, _closest(dims)[1]
        for count, _ in dims:
            lines = lines * count
        return Shape(lines * minimum(1, pitch / line), pitch)
    run, rest = inner[0] * item, [d for d in dims if d is not inner]
    # dimensions that go on where the one inside them ends make longer runs
    while following := next((d for d in rest if _goes_on((d[1],), inner[0], (inner[1],))), None):
        run, inner = run * following[0], following
        rest.remove(following)
    lines = run / line + (1 - item / line)
    if rest:
        lines = minimum(lines, _closest(rest)[1] / line)
    for count, _ in rest:
        lines = lines * count
    return Shape(lines)


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
        if inside is not None and not _goes_on(pitches, *inside):
            runs = runs * count
            continue
        inside = count, pitches
    return runs


def _dimensions(call: ArrayCall) -> Iterator[tuple[Expr, list[Expr]]]:
    """Yield extents other than 1 and the pitches of all visits along them, the innermost first."""
    visits = call.visits
    ranks = max((len(visit.region.counts) for visit in visits), default=0)
    regions = [_padded(visit.region, ranks) for visit in visits]
    for dimension in reversed(range(ranks)):
        count = next((counts[dimension] for counts, _ in regions if counts[dimension] != ONE), ONE)
        if count != ONE:
            yield count, [pitches[dimension] for _, pitches in regions]


def _goes_on(pitches: Sequence[Expr], count: Expr, inside: Sequence[Expr]) -> bool:
    """Return whether a dimension goes on, everywhere, where the one inside it ends.

    Rows of a region that shrinks, cut to what a rank has, go on for as long as they are whole: they
    count as if they always did.
    """
    ends = (count, *count.args) if isinstance(count, Min) else (count,)
    return all(
        any(pitch == end * inner for end in ends)
        for pitch, inner in zip(pitches, inside, strict=True)
    )


def _padded(region: Region, ranks: int) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    missing = ranks - len(region.counts)
    return (ONE,) * missing + region.counts, (ZERO,) * missing + region.pitches_bytes


def distinct(call: ArrayCall) -> tuple[Visit, ...]:
    """Return the memory of a call, each part once: what is stored where it was loaded."""
    found: dict[tuple[str, Region], Visit] = {}
    for visit in call.visits:
        found.setdefault((visit.array or str(id(visit)), visit.region), visit)
    return tuple(found.values())


BEYOND = "beyond"
_PITCHES_BYTES = 4096
"""Lines so far apart share a set of the first level: what a pitch says of sets ends at the page."""
_STEPS = ((2, 3), (1, 1), (4, 3))
"""A level has lost a third of its data at two thirds of its size, two at its size, and all at four
thirds: in steps, which closed forms of loops bear better than slopes."""


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """The caches of a machine, nearest first.

    Attributes
    ----------
    levels : tuple of int
        Bytes that each holds, ascending.
    line_bytes : int
    """

    levels: tuple[int, ...]
    line_bytes: int

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of what lies beyond the first level, nearest first."""
        return (*(f"b{level}" for level in self.levels[1:]), BEYOND)

    def crowding(self, pitch: Expr) -> Expr:
        """Return by how much larger lines at a pitch seem to a cache than they are.

        Those at a pitch that shares a large power of two with a page fit few of its sets.
        """
        return maximum(1, gcd(pitch, _PITCHES_BYTES) / self.line_bytes)

    def shares(self, distance: Expr) -> Iterator[tuple[str, Expr]]:
        """Yield, for each level, the share of data that comes from there.

        Parameters
        ----------
        distance : Expr
            Bytes touched since the data was last used.
        """
        yield from self._differences([_lost_of(distance, level) for level in self.levels])

    def shares_anywhere(self, table_bytes: Expr) -> Iterator[tuple[str, Expr]]:
        """Yield, for each level, the share of references to random places of a table.

        A level holds a part of the table, whichever it is.
        """
        lost = [1 - level / maximum(level, table_bytes) for level in self.levels]
        yield from self._differences(lost)

    def _differences(self, lost: Sequence[Expr]) -> Iterator[tuple[str, Expr]]:
        for number, key in enumerate(self.keys):
            here = lost[number] - (lost[number + 1] if number + 1 < len(lost) else ZERO)
            if here != ZERO:
                yield key, here


def _lost_of(used: Expr, size: int) -> Expr:
    """Return the share that a store of some size has lost when so much was used since."""
    total = ZERO
    for times, parts in _STEPS:
        total = total + less(times * size, parts * used)
    return total / len(_STEPS)
