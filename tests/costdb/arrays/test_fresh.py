"""Memory that comes anew: how far it is by what was given back with it, and what is fitted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costdb.arrays.heap import PADDING_BYTES, SMALL_AWAY_BYTES, Heap, come_anew, far_share
from costdb.calibration.array_calls.view_points import SIZES, fresh_lines, fresh_points
from costdb.calibration.section import Point, Timing
from costdb.estimate import Priced
from costdb.evaluate import evaluate_price
from costdb.expr import evaluate, num
from costdb.heap_work import Drain, FreshMemory, Released, Taken
from costdb.machines.machine import machine_of
from costdb.pricing import price_work

LINE_US = {"small": 0.125, "small_far": 0.5, "huge": 0.0625, "huge_far": 0.25, "beyond": 1.0}


def price_us(work: FreshMemory, *kinds: str) -> float:
    leaf = {"provenance": "measured", "source": "calibration"}
    stated = {kind: {"value": LINE_US[kind], "unit": "us/line", **leaf} for kind in kinds}
    document = {
        "schema_version": 1,
        "name": "made-up",
        "title": "Made up",
        "library": "none",
        "sources": {"calibration": "nobody"},
        "hardware": {"cache_line_bytes": {"value": 64, "unit": "byte", **leaf}},
        "arrays": {"levels": {}, "rates": {}, "fresh": {"line_us": stated}},
    }
    price = price_work(work, machine_of(document, "made-up.json"))
    assert isinstance(price, Priced)
    return 1e6 * evaluate_price(price, {}).mid


def all_at_once(size: int, count: int) -> FreshMemory:
    """Return the work of taking equal arrays and freeing them all."""
    names = [f"a{number}" for number in range(count)]
    steps = (*(Taken(name, num(size)) for name in names), *map(Released, reversed(names)))
    return FreshMemory((), (num(size),), steps=steps)


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_what_is_given_back_with_more_is_no_nearer(one: int, more: int) -> None:
    shares = [far_share(size, SMALL_AWAY_BYTES) for size in (one, one + more)]
    assert 0 <= shares[0] <= shares[1] <= 1


@pytest.mark.parametrize(("count", "far"), [(3, 0.0), (40, 1.0)])
def test_arrays_freed_together_are_as_far_as_all_of_them(count: int, far: float) -> None:
    usual, _ = come_anew(all_at_once(500_000, count))
    anew = float(evaluate(usual.small_bytes, {}))
    assert anew > 0
    assert float(evaluate(usual.far_small_bytes, {})) == pytest.approx(far * anew)


def test_arrays_freed_one_by_one_are_near_however_many_there_are() -> None:
    heap = Heap(threshold=1_000_000)
    for _ in range(50):
        heap.release(heap.take(2_000_000))
        heap.threshold = 1_000_000  # as if it were set, so that each comes from the system
    assert heap.came.small_bytes > 90e6
    assert heap.came.far_small_bytes == 0


@pytest.mark.parametrize("steps", [True, False])
def test_memory_that_is_far_costs_more_where_a_profile_knows_it(steps: bool) -> None:
    size, count = 500_000, 40
    work = all_at_once(size, count)
    if not steps:
        work = FreshMemory((Drain((num(size),) * count),), (num(size),))
    near = price_us(work, "small", "huge")
    assert near == pytest.approx(0.125 * (size * count - PADDING_BYTES) / 64, rel=0.02)
    assert price_us(work, "small", "small_far", "huge") == pytest.approx(4 * near)


def test_what_pages_take_is_fitted_without_what_copying_takes() -> None:
    def timing(point: Point) -> Timing:
        kind, lines = str(point.features["fresh"]), SIZES[str(point.features["fresh"])].size_bytes
        anew = LINE_US[kind] if point.features["given"] == "anew" else 0.0
        us = (0.01 + anew) * lines / 64
        # a host that lacks memory itself for once does not count
        return Timing(point, (((us, us), (us, 30 * us)), ((us,),)))

    found = fresh_lines([timing(point) for point in fresh_points()], 64)
    assert {kind: stated["value"] for kind, stated in found.items()} == pytest.approx(LINE_US)
