"""What an array library copies by way of buffers: which operands, and what that is priced as."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product
from math import prod

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from costdb.arrays.amounts import ELEMENT, ROWS_LOADED, ROWS_STORED, amounts, residual_key
from costdb.arrays.hierarchy import hierarchy
from costdb.arrays.memory import inner_runs, visits_in_rows
from costdb.arrays.reuse import ELIDED_BYTES, taking_over, with_copies
from costdb.expr import evaluate, num, sym
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


ORDERS = ("C", "F", "row", "column", "all but the last", "all but the first")


def stored(order: str, counts: tuple[int, ...]) -> tuple[NDArray[np.float64], Visit]:
    """Return an array, broadcast where it is but some of one, and how the model sees it."""
    last = len(counts) - 1
    kept = {"row": {last}, "column": {0}, "all but the last": {*range(last)},
            "all but the first": {*range(1, last + 1)}}.get(order, {*range(last + 1)})  # fmt: skip
    shape = [count if d in kept else 1 for d, count in enumerate(counts)]
    array = np.zeros(shape, order="F" if order == "F" else "C")
    if array.shape != counts:
        array = np.broadcast_to(array, counts)
    pitches = tuple(num(step) for step in array.strides)
    return array, Visit(Region(8, tuple(map(num, counts)), pitches), str(id(array)))


@given(
    st.lists(st.sampled_from(ORDERS), min_size=1, max_size=2),
    st.sampled_from(("C", "F", "fresh")),
    st.lists(st.integers(2, 5), min_size=2, max_size=3).map(tuple),
)
def test_operands_are_turned_that_the_library_does_not_go_through_by_neighbours(
    orders: list[str], result: str, counts: tuple[int, ...]
) -> None:
    # which of several orders goes first in more dimensions is the library's own affair
    assume(len(counts) == 2 or "F" not in (*orders, result))
    arrays, visits = zip(*(stored(order, counts) for order in orders), strict=True)
    out, made = stored("C" if result == "fresh" else result, counts)
    call = ArrayCall(
        ArrayOperation.BINARY, "float64", num(prod(counts)), made, visits, fresh=result == "fresh"
    )
    flags = [["readonly"]] * len(arrays) + [["writeonly", "allocate"]]
    shown = np.nditer(
        [*arrays, None if result == "fresh" else out], ["external_loop"], flags, order="K"
    )
    if shown.ndim == 1:
        neighbours = [True] * len(arrays)
    else:
        # of what is broadcast nothing can be turned
        neighbours = [
            view.strides[0] in (0, 8) or order in ("row", "column")
            for view, order in zip(shown.value, orders, strict=False)
        ]
    *copies, rest = with_copies(call)
    turned = [visit for visit, near in zip(visits, neighbours, strict=True) if not near]
    assert [copy.operands for copy in copies] == [(visit,) for visit in turned]
    assert {copy.operation for copy in copies} <= {ArrayOperation.TRANSPOSE}
    assert rest.operands == tuple(visit for visit in visits if visit not in turned)


def test_a_large_result_has_the_lines_of_the_operand_whose_place_it_takes() -> None:
    made = Region(8, (sym("n"),), (num(8),))
    other = Visit(Region(8, (sym("n"),), (num(8),)), "b")
    call = ArrayCall(
        ArrayOperation.BINARY, "float64", sym("n"), Visit(made), (Visit(made), other),
        fresh=True, reuses=True,
    )  # fmt: skip

    def lines(one: ArrayCall, elements: int) -> float:
        return sum(
            share * float(evaluate(amount.amount, {"n": elements}))
            for when, way in taking_over(one)
            for share in [float(evaluate(when, {"n": elements}))]
            for amount in amounts(way, CACHES)
            if amount.place == ("line_us", "near")
        )

    few, many = ELIDED_BYTES // 8 - 1, ELIDED_BYTES // 8
    assert lines(call, few) == pytest.approx(3 * (few / 8 + 7 / 8))
    assert lines(call, many) == pytest.approx(2 * (many / 8 + 7 / 8))
    # what a name refers to stays as it is
    named = replace(call, operands=(Visit(made, "a"), other))
    assert lines(named, many) == pytest.approx(3 * (many / 8 + 7 / 8))
