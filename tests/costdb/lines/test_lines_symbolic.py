"""Symbolic bounds against exact counts, for every start that alignment allows."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costdb.expr import Expr, ceil_div, evaluate, num, sym
from costdb.lines.symbolic import count_lines, line_bounds, region_line_bounds
from costdb.work import Region
from tests.costdb.lines.published import lines_per_period

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
sizes = st.fixed_dictionaries({name: st.integers(0, 70) for name in "NMK"})


def exact_counts(block: Region, bound: dict[str, int], line: int, step: int) -> list[int]:
    counts = [int(evaluate(c, bound)) for c in block.counts]
    pitches = [int(evaluate(p, bound)) for p in block.pitches_bytes]
    found = line_bounds(block.itemsize_bytes, counts, pitches, line, step)
    starts = range(0, line, step)[:8]
    some = [count_lines(block.itemsize_bytes, counts, pitches, s, line) for s in starts]
    return [*found, *some]


@pytest.mark.parametrize("name", list(SHAPES))
@settings(max_examples=50, deadline=None)
@given(bound=sizes, line=st.sampled_from([16, 32, 64]), aligned=st.booleans())
def test_bounds_bracket_every_start(
    name: str, bound: dict[str, int], line: int, aligned: bool
) -> None:
    block = SHAPES[name]
    step = block.itemsize_bytes if aligned else 1
    lower, upper = region_line_bounds(block, line, step)
    exact = exact_counts(block, bound, line, step)
    assert evaluate(lower, bound) <= min(exact)
    assert max(exact) <= evaluate(upper, bound)


@pytest.mark.parametrize("name", ["row", "column", "whole block", "backwards", "one element"])
@settings(max_examples=40, deadline=None)
@given(bound=sizes, line=st.sampled_from([16, 32, 64]))
def test_bounds_of_single_runs_and_columns_are_attained(
    name: str, bound: dict[str, int], line: int
) -> None:
    block = SHAPES[name]
    exact = exact_counts(block, bound, line, block.itemsize_bytes)
    lower, upper = region_line_bounds(block, line)
    assert (evaluate(lower, bound), evaluate(upper, bound)) == (min(exact), max(exact))


@pytest.mark.parametrize("name", list(SHAPES))
@settings(max_examples=40, deadline=None)
@given(bound=sizes, line=st.sampled_from([16, 64]), start=st.integers(0, 200))
def test_a_known_start_is_bracketed_too(
    name: str, bound: dict[str, int], line: int, start: int
) -> None:
    for known, names in ((num(start), {}), (sym("start"), {"start": start})):
        shape = SHAPES[name]
        block = Region(shape.itemsize_bytes, shape.counts, shape.pitches_bytes, known)
        counts = [int(evaluate(c, bound)) for c in block.counts]
        pitches = [int(evaluate(p, bound)) for p in block.pitches_bytes]
        exact = count_lines(block.itemsize_bytes, counts, pitches, start, line)
        lower, upper = region_line_bounds(block, line)
        assert evaluate(lower, {**bound, **names}) <= exact <= evaluate(upper, {**bound, **names})
        if name in ("row", "column", "columns", "whole block", "every third column", "backwards"):
            assert lower == upper


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(1, 300),
    extra=st.integers(0, 40),
    width=st.integers(1, 12),
    line=st.sampled_from([32, 64]),
)
def test_aligned_columns_give_the_published_count(
    rows: int, extra: int, width: int, line: int
) -> None:
    pitch = 4 * (width + extra) + line
    period, lines = lines_per_period(pitch, 4 * width, line)
    block = Region(4, (N, num(width)), (M, num(4)), num(0))
    bound = {"N": rows * period, "M": pitch}
    found = {evaluate(b, bound) for b in region_line_bounds(block, line)}
    assert found == {rows * lines}
