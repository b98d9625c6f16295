"""Pieces of the memory by what a system tells of its caches, and how lines spread over sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costdb.arrays.amounts import amounts
from costdb.arrays.hierarchy import SPREADS, Hierarchy, hierarchy
from costdb.arrays.rates import LEARNED, PAGES, SPREAD
from costdb.calibration.array_calls.arrays import cache_levels, caches
from costdb.calibration.array_calls.fit import (
    PAGES_OF_PROCESSORS,
    STEPS_OF_PROCESSORS,
    fit_classes,
)
from costdb.calibration.array_calls.point_actions import call_of
from costdb.calibration.array_calls.points import array_points
from costdb.calibration.host.hardware import read_host
from costdb.calibration.section import Effort, Timing
from costdb.estimate import Priced
from costdb.evaluate import evaluate_price
from costdb.expr import evaluate, num
from costdb.machines.documents import Json
from costdb.machines.machine import machine_of
from costdb.pricing import price_work
from costdb.profile_check import check_profile
from costdb.work import Statement

KIB, MIB = 2**10, 2**20
CACHES = hierarchy((48 * KIB, 2 * MIB, 8 * MIB, 64 * MIB), 64)
TRUTH = {
    ("call_us",): 0.4,
    ("element_us",): 0.0002,
    ("line_us", "b2097152"): 0.0003,
    ("line_us", "b8388608"): 0.001,
    ("apart_line_us", "b2097152"): 0.0003,
    ("apart_line_us", "b8388608"): 0.001,
    ("apart_line_us", "b67108864"): 0.002,
    ("conflict_line_us", "b2097152"): 0.0005,
    ("conflict_line_us", "b8388608"): 0.004,
    ("conflict_line_us", "b67108864"): 0.006,
    ("page_us",): 0.008,
    ("short_walk_us",): 0.0015,
}


def told(folder: Path, *sizes: int) -> Path:
    """Write what a system says of caches of so many bytes, with ways of a sixteenth each."""
    for number, size in enumerate(sizes, 1):
        place = folder / f"index{number}"
        place.mkdir()
        for name, value in {
            "type": "Unified",
            "level": number,
            "size": f"{size // KIB}K",
            "number_of_sets": size // 16 // 64,
            "coherency_line_size": 64,
        }.items():
            (place / name).write_text(f"{value}\n")
    return folder


@pytest.mark.parametrize(
    ("sizes", "ends"),
    [
        ((48 * KIB, 2 * MIB, 480 * MIB), (48 * KIB, 2 * MIB, 4 * MIB, 16 * MIB, 64 * MIB)),
        ((32 * KIB, MIB, 32 * MIB), (32 * KIB, MIB, 2 * MIB, 8 * MIB, 32 * MIB)),
        ((32 * KIB, 256 * KIB, 6 * MIB), (32 * KIB, 256 * KIB, 512 * KIB, 2 * MIB, 6 * MIB)),
        ((32 * KIB, 2 * MIB, 3 * MIB), (32 * KIB, 2 * MIB, 3 * MIB)),
        ((32 * KIB, 2 * MIB, 2 * MIB), (32 * KIB, 2 * MIB, 2 * MIB + 1)),
    ],
)
def test_pieces_reach_from_the_second_cache_to_the_last_or_to_what_is_measured(
    tmp_path: Path, sizes: tuple[int, ...], ends: tuple[int, ...]
) -> None:
    host = read_host(told(tmp_path, *sizes), tmp_path / "cpuinfo")
    found = caches(host)
    assert found.levels == ends
    assert found.ways == (*(size // 16 for size in sizes), *[sizes[-1] // 16] * (len(ends) - 3))
    assert cache_levels(host)[:2] == sizes[:2]
    assert cache_levels(host)[-1] == 2 * cache_levels(host)[-2]


def test_a_system_that_does_not_tell_has_usual_caches(tmp_path: Path) -> None:
    host = read_host(told(tmp_path, 32 * KIB, MIB), tmp_path / "cpuinfo")
    found = caches(host)
    assert (*found.levels, 2 * found.levels[-1]) == cache_levels(host)


@given(
    pitch=st.integers(1, 2**20),
    bytes_used=st.integers(1, 2**28),
    spread=st.sampled_from(SPREADS),
)
def test_lines_that_spread_over_fewer_sets_are_lost_no_later(
    pitch: int, bytes_used: int, spread: int
) -> None:
    def lost(memory: Hierarchy) -> list[float]:
        found = memory.lost(num(bytes_used), memory.crowding(num(pitch)))
        return [float(evaluate(share, {})) for share in found]

    narrow, wide = (lost(replace(CACHES, spread=one)) for one in (1, spread))
    assert narrow[0] == wide[0]
    assert all(a >= b for a, b in zip(narrow, wide, strict=True))


def made_up(
    memory: Hierarchy, operation: str, truth: Mapping[tuple[str, ...], float] = TRUTH
) -> list[Timing]:
    made = []
    for point in array_points(Effort.FULL):
        if point.operation == operation:
            taken = amounts(call_of(point), memory)
            us = sum(truth.get(one.place, 0.0) * float(evaluate(one.amount, {})) for one in taken)
            made.append(Timing(point, (((us, us),),)))
    return made


@pytest.mark.parametrize("spread", SPREADS)
def test_a_fit_finds_how_lines_spread_over_sets_and_prices_with_it(spread: int) -> None:
    timings = made_up(replace(CACHES, spread=spread), "transpose float64")
    (fitted,), qualities, _ = fit_classes(timings, CACHES)
    assert fitted.spread == spread
    standard, chosen = sorted(qualities, key=lambda one: one.chosen)
    # a faint pull keeps levels that few points tell of from explaining noise
    assert chosen.median_error < 0.01 and chosen.r2 < 0.1 * standard.r2

    stated = {"unit": "byte", "provenance": "measured", "source": "calibration"}
    rates: dict[str, Json] = {"transpose": {"float64": fitted.document()}}
    levels: dict[str, Json] = {f"b{one}": {"value": one, **stated} for one in CACHES.levels}
    document: dict[str, Json] = {
        "schema_version": 1,
        "name": "made-up",
        "title": "Made up",
        "library": "none",
        "date": "2026-11-22",
        "sources": {"calibration": "made up"},
        "hardware": {"cache_line_bytes": {"value": 64, **stated}},
        "arrays": {"levels": levels, "rates": rates},
    }
    assert check_profile(document, "made-up.json") == []
    machine = machine_of(document, "made-up.json")
    for timing in timings:
        call = call_of(timing.point)
        us = sum(
            fitted.coefficients.get(one.place, 0.0) * float(evaluate(one.amount, {}))
            for one in amounts(call, replace(CACHES, spread=spread))
        )
        price = price_work(Statement((), num(0), calls=(call,)), machine)
        assert isinstance(price, Priced)
        assert 1e6 * evaluate_price(price, {}).mid == pytest.approx(us, rel=1e-4)


def test_a_class_without_lines_that_crowd_says_nothing_of_sets() -> None:
    (fitted,), _, _ = fit_classes(made_up(CACHES, "take float64"), CACHES)
    assert fitted.spread is None and SPREAD not in fitted.document()


@pytest.mark.parametrize("pages", PAGES_OF_PROCESSORS)
def test_a_fit_finds_how_many_pages_are_at_hand(pages: int) -> None:
    timings = made_up(replace(CACHES, pages=pages, spread=2), "binary float64")
    (fitted,), _, _ = fit_classes(timings, CACHES)
    assert (fitted.pages, fitted.spread) == (pages, 2)
    assert fitted.coefficients["page_us",] == pytest.approx(TRUTH["page_us",], rel=0.02)
    stated = fitted.document()[PAGES]
    assert isinstance(stated, dict) and stated["value"] == pages


def test_a_class_that_comes_to_few_pages_says_nothing_of_them() -> None:
    (fitted,), _, _ = fit_classes(made_up(CACHES, "take float64"), CACHES)
    assert fitted.pages is None and PAGES not in fitted.document()


@pytest.mark.parametrize("steps", STEPS_OF_PROCESSORS)
def test_a_fit_finds_after_how_many_steps_a_sum_is_handed_on(steps: int) -> None:
    timings = made_up(replace(CACHES, learned=steps, spread=1), "scan int32")
    across, along = sorted(fit_classes(timings, CACHES)[0], key=lambda one: "across" not in one.key)
    assert (across.learned, along.learned) == (steps, None)
    found = across.coefficients["short_walk_us",]
    assert found == pytest.approx(TRUTH["short_walk_us",], rel=0.02)
    stated = across.document()[LEARNED]
    assert isinstance(stated, dict) and stated["value"] == steps


def test_a_processor_that_has_nothing_to_learn_says_nothing_of_it() -> None:
    timings = made_up(CACHES, "scan int32", {**TRUTH, ("short_walk_us",): 0.0})
    for fitted in fit_classes(timings, CACHES)[0]:
        assert fitted.learned is None and LEARNED not in fitted.document()
        assert ("short_walk_us",) not in fitted.coefficients


@given(table=st.integers(1, 2**30), more=st.integers(1, 2**24))
def test_random_places_of_larger_tables_are_farther_and_come_from_one_place(
    table: int, more: int
) -> None:
    def beyond(size: int) -> list[float]:
        shares = {k: float(evaluate(one, {})) for k, one in CACHES.shares_anywhere(num(size))}
        assert all(share >= -1e-12 for share in shares.values()) and sum(shares.values()) < 1
        # from each piece or from beyond it: no larger table has less of these
        return [sum(shares.get(key, 0.0) for key in CACHES.keys[n:]) for n in range(4)]

    near, far = beyond(table), beyond(table + more)
    assert all(b >= a - 1e-12 for a, b in zip(near, far, strict=True))
    first, *_ = CACHES.levels
    assert (near[0] > 0) == (2 * table > first)
