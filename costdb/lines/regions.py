"""What marshalling a region is made of: bytes, runs, loops, lines, and how crowded they lie.

A message whose region is one contiguous run is sent as it lies. Any other is *staged*: copied to
a contiguous buffer by the sender and from one by the receiver. Such a copy runs one inner loop
for each contiguous run, or, where runs are single elements, one strided loop along the innermost
dimension; it touches lines of the region, and how long a line takes depends on which cache still
holds it. Lines at a pitch that shares a large power of two with the sets of a cache crowd into
few of them, so they leave it as a larger region would.
"""

from __future__ import annotations

from dataclasses import dataclass

from costdb.expr import ONE, Expr, ceil_div, conditional, gcd, less, less_equal, maximum, num
from costdb.lines.symbolic import by_pitch, magnitude, region_line_bounds
from costdb.work import Region


@dataclass(frozen=True, slots=True)
class Marshalling:
    """The copies between a region and a contiguous buffer, on either side of a message.

    Attributes
    ----------
    staged : Expr
        1 where there are any: the region is more than one run.
    loops : Expr
        Inner loops of one copy.
    strided : Expr
        Elements that are copied one by one, at a stride.
    bytes : Expr
        Of all elements.
    lines : Expr
        Touched, the mean of their bounds where the start is unknown.
    crowding : Expr
        By how much larger the region seems to a cache than its lines are, at least 1.
    """

    staged: Expr
    loops: Expr
    strided: Expr
    bytes: Expr
    lines: Expr
    crowding: Expr


def elements_of(region: Region) -> Expr:
    """Return the number of elements of a region."""
    elements = num(1)
    for count in region.counts:
        elements = elements * count
    return elements


def bytes_of(region: Region) -> Expr:
    """Return the bytes of a region's elements, without what lies between them."""
    return elements_of(region) * region.itemsize_bytes


def marshalling_of(region: Region, line_bytes: int, way_bytes: int) -> Marshalling:
    """Return what staging a region takes.

    Where the structure of sizes does not show that a dimension goes on where the one inside it
    ends, it is taken not to.

    Parameters
    ----------
    line_bytes : int
    way_bytes : int
        Span of addresses that one way of the cache covers: lines so far apart share a set.
    """
    run, outer = _run(region)
    runs = ONE
    for count, _ in outer:
        runs = runs * count
    single = less_equal(run, region.itemsize_bytes)
    inner = outer[0][0] if outer else ONE
    lower, upper = region_line_bounds(region, line_bytes)
    # an empty message has no lines, and none that crowd
    lines_each = maximum(1, ceil_div(run, line_bytes)) * line_bytes
    shared = gcd(outer[0][1], way_bytes) if outer else ONE
    return Marshalling(
        staged=less(1, runs),
        loops=conditional(single, _product(outer[1:]), runs),
        strided=conditional(single, _product(outer[1:]) * inner, 0),
        bytes=bytes_of(region),
        lines=(lower + upper) / 2,
        crowding=maximum(1, shared / lines_each),
    )


def _run(region: Region) -> tuple[Expr, list[tuple[Expr, Expr]]]:
    """Return the bytes of a contiguous run, and the dimensions outside it, smallest pitch first."""
    dimensions = [
        (count, magnitude(pitch))
        for count, pitch in zip(region.counts, region.pitches_bytes, strict=True)
        if count != ONE
    ]
    run: Expr = num(region.itemsize_bytes)
    outer: list[tuple[Expr, Expr]] = []
    for count, pitch in by_pitch(dimensions):
        if pitch == run and not outer:
            run = run * count
        elif outer and pitch == outer[-1][0] * outer[-1][1]:
            outer[-1] = (outer[-1][0] * count, outer[-1][1])
        else:
            outer.append((count, pitch))
    return run, outer


def _product(dimensions: list[tuple[Expr, Expr]]) -> Expr:
    product = ONE
    for count, _ in dimensions:
        product = product * count
    return product
