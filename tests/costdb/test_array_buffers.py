"""What an array library copies by way of buffers: which operands, and what that is priced as."""

from __future__ import annotations

from itertools import pairwise, product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costdb.arrays.amounts import ELEMENT, ROWS_LOADED, ROWS_STORED, amounts, residual_key
from costdb.arrays.hierarchy import hierarchy
from costdb.arrays.memory import inner_runs, visits_in_rows
from costdb.expr import evaluate, num
from costdb.work import ArrayCall, ArrayOperation, Region, Visit

CACHES = hierarchy((49_152, 1_048_576, 8_388_608), 64)


def visit(counts: tuple[int, ...], pitches: tuple[int, ...], array: str = "") -> Visit:
    return Visit(Region(8, tuple(map(num, counts)), tuple(num(8 * p) for p in pitches)), array)


def gapless(counts: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(prod(counts[axis + 1 :]) for axis in range(len(counts)))


def added(counts: tuple[int, ...], *all_pitches: tuple[int, ...]) -> ArrayCall:
    """Return a sum of two arrays into a third, of which the pitches in elements are given."""
    one, two, made = (
        visit(counts, pitches, name) for pitches, name in zip(all_pitches, "abc", strict=True)
    )
    return ArrayCall(ArrayOperation.BINARY, "float64", num(prod(counts)), made, (one, two))


@st.composite
def calls(draw: st.DrawFn) -> ArrayCall:
    counts = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))

    def pitches() -> tuple[int, ...]:
        kind = draw(st.sampled_from(("gapless", "gaps", "again")))
        if kind == "gaps":
            wider = tuple(count + draw(st.integers(0, 2)) for count in counts)
            return gapless(wider)
        own = gapless(counts)
        if kind == "gapless":
            return own
        left_out = draw(st.integers(0, len(counts) - 1))
        kept = gapless(tuple(1 if axis == left_out else n for axis, n in enumerate(counts)))
        return tuple(0 if axis == left_out else pitch for axis, pitch in enumerate(kept))

    return added(counts, pitches(), pitches(), pitches())


@given(calls())
def test_what_is_in_rows_has_no_one_distance_from_element_to_element(call: ArrayCall) -> None:
    counts = [int(evaluate(count, {})) for count in call.visits[0].region.counts]

    def steps(one: Visit) -> set[int]:
        pitches = [int(evaluate(pitch, {})) for pitch in one.region.pitches_bytes]
        places = [
            sum(i * pitch for i, pitch in zip(index, pitches, strict=True))
            for index in product(*map(range, counts))
        ]
        return {after - before for before, after in pairwise(places)}

    in_rows = [len(steps(one)) > 1 for one in call.visits]
    assert [one in visits_in_rows(call) for one in call.visits] == in_rows
    if inner_runs(call) == num(1):
        assert not any(in_rows)


ROWS, WHOLE, AGAIN = (102, 1), (100, 1), (0, 1)


@pytest.mark.parametrize(
    ("pitches", "loaded", "stored"),
    [
        ((WHOLE, WHOLE, WHOLE), 0, 0),
        ((WHOLE, ROWS, WHOLE), 1, 0),
        ((ROWS, ROWS, WHOLE), 2, 0),
        ((WHOLE, WHOLE, ROWS), 0, 1),
        ((ROWS, ROWS, ROWS), 2, 1),
        ((WHOLE, AGAIN, WHOLE), 1, 0),
        ((AGAIN, (1, 0), WHOLE), 2, 0),
    ],
)
def test_each_operand_in_rows_is_copied_and_so_is_the_result(
    pitches: tuple[tuple[int, int], ...], loaded: int, stored: int
) -> None:
    call = added((50, 100), *pitches)
    taken = {amount.place: float(evaluate(amount.amount, {})) for amount in amounts(call, CACHES)}
    assert taken[ELEMENT,] == 5000
    assert taken.get((ROWS_LOADED,), 0) == 5000 * loaded
    assert taken.get((ROWS_STORED,), 0) == 5000 * stored
    assert (residual_key(taken) == "rows_residual") is (loaded + stored > 0)
