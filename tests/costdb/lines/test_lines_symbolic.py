"""Bounds on lines against enumeration, for every start that alignment allows."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from costdb.expr import Expr, ceil_div, evaluate, num, sym
from costdb.lines.coefficients import region_line_bounds
from costdb.work import Region
from tests.costdb.lines.published import (
    enumerate_lines,
)

N, M, K = sym("N"), sym("M"), sym("K")
D = ceil_div(N, 4)


def region(itemsize: int, counts: list[Expr | int], pitches: list[Expr | int]) -> Region:
    return Region(
        itemsize,
        tuple(num(c) if isinstance(c, int) else c for c in counts),
        tuple(num(p) if isinstance(p, int) else p for p in pitches),
    )


SHAPES = {
    "row": region(4, [1, D], [4 * D, 4]),
    "column": region(4, [D, 1], [4 * D, 4]),
    "columns": region(8, [N, K], [8 * M, 8]),
    "block in a halo": region(4, [N, N], [4 * (N + 2), 4]),
    "whole block": region(8, [N, M], [8 * M, 8]),
    "fortran face": region(4, [N, M, 1], [4, 4 * N, 4 * N * M]),
    "inner face": region(4, [N, M, 1], [4 * M * K, 4 * K, 4]),
    "middle face": region(8, [N, 1, K], [8 * M * K, 8 * K, 8]),
    "part of a cube": region(2, [N, M, K], [2 * (M + 3) * (K + 5), 2 * (K + 5), 2]),
    "every third column": region(4, [N, M], [12 * M, 12]),
    "backwards": region(4, [N, M], [-4 * M, -4]),
    "unordered": region(4, [N, M], [4 * K, 4 * M]),
    "any sign": region(4, [N, M], [4 * (N - M), 4 * K]),
    "any pitch": region(3, [N, M], [K, 7 * M]),
    "broadcast": region(8, [N, M], [0, 8 * K]),
    "one element": region(16, [], []),
    "constants": region(4, [5, 7], [300, 4]),
}
sizes = st.fixed_dictionaries({name: st.integers(0, 20) for name in "NMK"})


def exact_counts(block: Region, bound: dict[str, int], line: int) -> list[int]:
    """Return how many lines are touched from each start that the element's size allows."""
    item = block.itemsize_bytes
    counts = [max(0, int(evaluate(c, bound))) for c in block.counts]
    pitches = [int(evaluate(p, bound)) for p in block.pitches_bytes]
    starts = range(0, line * item, item) if line % item else range(0, line, item)
    return [enumerate_lines(item, counts, pitches, start, line) for start in starts]


def of_numbers(block: Region, bound: dict[str, int]) -> Region:
    """Return a region with its sizes put in: formulas of numbers are numbers."""
    counts = (num(evaluate(c, bound)) for c in block.counts)
    return Region(
        block.itemsize_bytes,
        tuple(counts),
        tuple(num(evaluate(p, bound)) for p in block.pitches_bytes),
    )


@pytest.mark.parametrize("name", list(SHAPES))
@settings(max_examples=30, deadline=None)
@given(bound=sizes, line=st.sampled_from([16, 32, 64]))
@example(bound={"N": 70, "M": 40, "K": 60}, line=64)
def test_bounds_bracket_every_start(name: str, bound: dict[str, int], line: int) -> None:
    block = SHAPES[name]
    exact = exact_counts(block, bound, line)
    for one in (block, of_numbers(block, bound)):
        lower, upper = (evaluate(end, bound) for end in region_line_bounds(one, line))
        assert lower <= min(exact)
        assert max(exact) <= upper
        if name in ("row", "column", "whole block", "backwards", "one element"):
            assert (lower, upper) == (min(exact), max(exact))


@st.composite
def array_slices(draw: st.DrawFn) -> Region:
    """Any basic slice of a C- or Fortran-ordered array."""
    itemsize = draw(st.sampled_from([1, 2, 4, 8, 16]))
    extents = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    order = range(len(extents)) if draw(st.booleans()) else reversed(range(len(extents)))
    strides = [0] * len(extents)
    pitch = itemsize
    for axis in order:
        strides[axis] = pitch
        pitch *= extents[axis]
    counts, pitches = list[Expr | int](), list[Expr | int]()
    for extent, stride in zip(extents, strides, strict=True):
        end = st.none() | st.integers(-extent, extent)
        step = draw(st.sampled_from([1, 1, 2, 3, -1, -2]))
        indices = range(extent)[slice(draw(end), draw(end), step)]
        counts.append(len(indices))
        pitches.append(indices.step * stride)
    return region(itemsize, counts, pitches)


@settings(max_examples=100, deadline=None)
@given(array_slices(), st.sampled_from([8, 16, 32, 64]))
def test_bounds_bracket_every_start_of_a_slice(block: Region, line: int) -> None:
    exact = exact_counts(block, {}, line)
    lower, upper = (evaluate(end, {}) for end in region_line_bounds(block, line))
    assert lower <= min(exact)
    assert max(exact) <= upper


def test_huge_regions_are_not_enumerated() -> None:
    # nobody would see the end of it
    huge = 10**12
    lower, upper = region_line_bounds(region(4, [huge, 3], [4097, 1000]), 64)
    assert 3 * huge <= evaluate(lower, {}) <= evaluate(upper, {}) <= 4 * huge
    whole = region_line_bounds(region(8, [huge, huge], [8 * huge, 8]), 64)
    assert [evaluate(end, {}) - huge * huge // 8 for end in whole] == [0, 1]
