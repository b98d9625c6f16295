"""Closed-form line counts against enumeration of every byte touched."""

from __future__ import annotations

import itertools
from itertools import product
from math import gcd, prod

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from costdb.expr import evaluate, num
from costdb.lines.coefficients import Marshalling, marshalling_of
from costdb.lines.symbolic import count_lines, line_bounds
from costdb.work import Region
from tests.costdb.lines.published import column_bounds, lines_per_period, row_bounds


def enumerate_lines(
    itemsize: int, counts: tuple[int, ...], pitches: tuple[int, ...], start: int, line: int
) -> int:
    touched: set[int] = set()
    for index in itertools.product(*map(range, counts)):
        first = start + sum(i * pitch for i, pitch in zip(index, pitches, strict=True))
        touched.update(range(first // line, (first + itemsize - 1) // line + 1))
    return len(touched)


@st.composite
def blocks(
    draw: st.DrawFn, max_pitch: int = 150
) -> tuple[int, tuple[int, ...], tuple[int, ...], int, int]:
    line = draw(st.sampled_from([1, 2, 8, 12, 16, 32, 64]))
    itemsize = draw(st.integers(1, 17))
    dimensions = draw(st.integers(0, 4))
    largest = {0: 1, 1: 40, 2: 14, 3: 7, 4: 4}[dimensions]
    counts = tuple(draw(st.integers(0 if n == 0 else 1, largest)) for n in range(dimensions))
    pitch = st.integers(-max_pitch, max_pitch)
    pitches = tuple(draw(pitch) for _ in range(dimensions))
    return itemsize, counts, pitches, draw(st.integers(-100, 300)), line


@st.composite
def array_slices(
    draw: st.DrawFn,
) -> tuple[int, tuple[int, ...], tuple[int, ...], int, int]:
    """Any basic slice of a C- or Fortran-ordered array."""
    line = draw(st.sampled_from([8, 16, 32, 64]))
    itemsize = draw(st.sampled_from([1, 2, 4, 8, 16]))
    extents = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    order = range(len(extents)) if draw(st.booleans()) else reversed(range(len(extents)))
    strides = [0] * len(extents)
    pitch = itemsize
    for axis in order:
        strides[axis] = pitch
        pitch *= extents[axis]
    start, counts, pitches = draw(st.integers(0, 100)) * itemsize, [], []
    for extent, stride in zip(extents, strides, strict=True):
        indices = range(extent)[
            slice(
                draw(st.none() | st.integers(-extent, extent)),
                draw(st.none() | st.integers(-extent, extent)),
                draw(st.sampled_from([1, 1, 2, 3, -1, -2])),
            )
        ]
        counts.append(len(indices))
        pitches.append(indices.step * stride)
        start += indices.start * stride
    return itemsize, tuple(counts), tuple(pitches), start, line


@settings(max_examples=400, deadline=None)
@given(blocks())
def test_any_strides_equal_enumeration(
    block: tuple[int, tuple[int, ...], tuple[int, ...], int, int],
) -> None:
    assert count_lines(*block) == enumerate_lines(*block)


@settings(max_examples=400, deadline=None)
@given(array_slices())
def test_array_slices_equal_enumeration(
    block: tuple[int, tuple[int, ...], tuple[int, ...], int, int],
) -> None:
    assert count_lines(*block) == enumerate_lines(*block)


@settings(max_examples=60, deadline=None)
@given(blocks(max_pitch=500), st.sampled_from([None, 1, 2, 4, 8]))
# a walk downwards from an aligned start begins a byte below it, not above
@example((1, (2,), (-1,), 0, 8), 4)
def test_bounds_are_the_extremes_over_aligned_starts(
    block: tuple[int, tuple[int, ...], tuple[int, ...], int, int], alignment: int | None
) -> None:
    itemsize, counts, pitches, _, line = block
    step = itemsize if alignment is None else alignment
    found = [
        count_lines(itemsize, counts, pitches, start, line) for start in range(0, step * line, step)
    ]
    assert line_bounds(itemsize, counts, pitches, line, alignment) == (min(found), max(found))


@pytest.mark.parametrize("line", [32, 64])
def test_published_row_bounds_bracket_every_start(line: int) -> None:
    for run in range(1, 200):
        fewest, most = row_bounds(run, line)
        exact = [count_lines(1, (run,), (1,), start, line) for start in range(line)]
        assert fewest == min(exact)
        assert max(exact) <= most


def test_worked_period() -> None:
    assert lines_per_period(36, 4, 32) == (8, 8)
    assert lines_per_period(36, 12, 32) == (8, 10)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([16, 32, 64]),
    st.integers(1, 60),
    st.integers(1, 100),
    st.integers(0, 200),
    st.integers(0, 63),
)
def test_published_column_bounds_bracket_every_start(
    line: int, rows: int, width: int, beyond: int, start: int
) -> None:
    pitch = width + line - 1 + beyond
    exact = count_lines(1, (rows, width), (pitch, 1), start, line)
    fewest, most = column_bounds(rows, pitch, width, line)
    assert fewest <= exact <= most
    period, lines = lines_per_period(pitch, width, line)
    whole = count_lines(1, (rows * period, width), (pitch, 1), start - start % line, line)
    assert whole == rows * lines


def test_counts_of_huge_regions_are_not_enumerated() -> None:
    # nobody would see the end of it
    huge = 10**12
    # Rows one byte longer than a multiple of the line: every residue occurs.
    assert count_lines(4, (huge, 3), (4097, 1000), 0, 64) > 3 * huge
    assert count_lines(8, (huge, huge), (8 * huge, 8), 0, 64) == huge * huge // 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, (1,), (4,), 0, 64), "at least 1 byte"),
        ((4, (1,), (4,), 0, 0), "at least 1 byte"),
        ((4, (-1,), (4,), 0, 64), "cannot be negative: -1"),
        ((4, (1, 2), (4,), 0, 64), "2 counts need as many pitches, got 1"),
    ],
)
def test_bad_sizes_are_refused(
    arguments: tuple[int, tuple[int, ...], tuple[int, ...], int, int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        count_lines(*arguments)


# What marshalling a block of an array is made of, against its addresses, one by one.


LINE, WAY = 64, 4096

Block = tuple[int, tuple[int, ...], tuple[int, ...]]


@st.composite
def blocks_of_region(draw: st.DrawFn) -> Block:
    """Part of an array of up to four dimensions, whole along some, in any order of storage."""
    itemsize = draw(st.sampled_from([1, 2, 4, 8, 16]))
    extents = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    innermost_first = draw(st.permutations(range(len(extents))))
    pitches = [0] * len(extents)
    pitch = itemsize
    for axis in innermost_first:
        pitches[axis] = pitch
        pitch *= extents[axis]
    counts = tuple(
        draw(st.sampled_from([extent, draw(st.integers(1, extent))])) for extent in extents
    )
    return itemsize, counts, tuple(pitches)


def of(block: Block) -> Marshalling:
    itemsize, counts, pitches = block
    return marshalling_of(
        Region(itemsize, tuple(map(num, counts)), tuple(map(num, pitches))), LINE, WAY
    )


def addresses(block: Block) -> set[int]:
    _, counts, pitches = block
    places = product(*map(range, counts))
    return {sum(i * p for i, p in zip(place, pitches, strict=True)) for place in places}


def began(found: set[int], step: int) -> int:
    """Return how many of them do not go on where another one, a step before, left off."""
    return sum(address - step not in found for address in found)


@given(blocks_of_region())
def test_runs_and_loops_equal_enumeration(block: Block) -> None:
    itemsize, counts, _ = block
    found, made = addresses(block), of(block)
    runs = began(found, itemsize)
    single = runs == len(found) > 1
    event("single elements" if single else "runs" if runs > 1 else "one run")
    assert evaluate(made.bytes, {}) == itemsize * prod(counts)
    assert evaluate(made.staged, {}) == (runs > 1)
    if single:
        step = min(address for address in found if address)
        assert evaluate(made.strided, {}) == len(found)
        assert evaluate(made.loops, {}) == began(found, step)
    elif runs > 1:
        assert evaluate(made.strided, {}) == 0
        assert evaluate(made.loops, {}) == runs


@given(blocks_of_region())
def test_crowding_is_what_sets_a_pitch_shares(block: Block) -> None:
    itemsize, _, _ = block
    found, made = addresses(block), of(block)
    runs = began(found, itemsize)
    if runs == 1:
        return
    run = itemsize * len(found) // runs
    pitch = min(address for address in found if address >= run and address - itemsize not in found)
    lines_each = -(-run // LINE) * LINE
    assert evaluate(made.crowding, {}) == max(1, gcd(pitch, WAY) / lines_each)
