"""What marshalling a block of an array is made of, against its addresses, one by one."""

from __future__ import annotations

from itertools import product
from math import prod

from hypothesis import event, given
from hypothesis import strategies as st

from costdb.expr import evaluate, num
from costdb.expr.nodes import Value
from costdb.lines.coefficients import amounts, scale
from costdb.work import Region

PLAIN = scale(64, (), (), ())

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


def of(block: Block) -> dict[str | int, Value]:
    """Return what a message takes of each coefficient of its copies."""
    itemsize, counts, pitches = block
    region = Region(itemsize, tuple(map(num, counts)), tuple(map(num, pitches)))
    return {one.place[-1]: evaluate(one.units, {}) for one in amounts(region, PLAIN)}


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
    assert made["beta_us_per_byte"] == itemsize * prod(counts)
    assert made["copy_us_per_byte"] == (runs > 1) * itemsize * prod(counts)
    assert made["call_us"] == (runs > 1)
    if single:
        step = min(address for address in found if address)
        assert made["element_us"] == len(found)
        assert made["loop_us"] == began(found, step)
    elif runs > 1:
        assert made["element_us"] == 0
        assert made["loop_us"] == runs
