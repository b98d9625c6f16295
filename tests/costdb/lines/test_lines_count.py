"""What marshalling a block of an array is made of, against its addresses, one by one."""

from __future__ import annotations

from itertools import product
from math import prod

from hypothesis import event, given
from hypothesis import strategies as st

from costdb.expr import evaluate, num
from costdb.lines.coefficients import Marshalling, marshalling_of
from costdb.work import Region

LINE = 64

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
    return marshalling_of(Region(itemsize, tuple(map(num, counts)), tuple(map(num, pitches))), LINE)


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
