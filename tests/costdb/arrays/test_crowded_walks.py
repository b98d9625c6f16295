"""Walks across lines that crowd: what the model says of them, and what a calibration finds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costdb.arrays.amounts import amounts
from costdb.arrays.hierarchy import PAGE_BYTES, SPREADS, Hierarchy, hierarchy
from costdb.arrays.rates import KEPT
from costdb.calibration.array_calls.arrays import SECTION
from costdb.calibration.array_calls.view_points import WALK, kept_of, walk_points
from costdb.calibration.section import Effort, Timing
from costdb.estimate import Priced
from costdb.evaluate import evaluate_price
from costdb.expr import evaluate, num
from costdb.machines.documents import Json
from costdb.machines.machine import machine_of
from costdb.pricing import price_work
from costdb.profile_check import check_profile
from costdb.work import ArrayCall, ArrayOperation, Region, Statement, Visit
from tests.costdb.hosts import EPYC

KIB, MIB = 1024, 2**20
OF_PROCESSORS = (
    hierarchy((48 * KIB, 2 * MIB, 8 * MIB, 32 * MIB), 64, (4096, 128 * KIB, 2 * MIB, 2 * MIB)),
    hierarchy((32 * KIB, 512 * KIB, 2 * MIB, 32 * MIB), 64, (4096, 64 * KIB, 2 * MIB, 2 * MIB)),
    hierarchy((32 * KIB, MIB, 4 * MIB, 32 * MIB), 64, (4096, 64 * KIB, 2 * MIB, 2 * MIB)),
)


def transposed(lines: int, walks: int, pitch: int, itemsize: int = 8) -> ArrayCall:
    """Return a copy of so many columns of a wider array."""
    source = Region(itemsize, (num(walks), num(lines)), (num(itemsize), num(pitch)))
    target = Region(itemsize, (num(walks), num(lines)), (num(lines * itemsize), num(itemsize)))
    return ArrayCall(
        ArrayOperation.TRANSPOSE, "float64", num(lines * walks), Visit(target), (Visit(source),)
    )


def taken(call: ArrayCall, memory: Hierarchy) -> dict[tuple[str, ...], float]:
    found: dict[tuple[str, ...], float] = {}
    for one in amounts(call, memory):
        found[one.place] = found.get(one.place, 0.0) + float(evaluate(one.amount, {}))
    return found


@given(
    memory=st.sampled_from(OF_PROCESSORS),
    spread=st.sampled_from(SPREADS),
    kept=st.floats(0.8, 1.6),
    lines=st.integers(2, 5000),
    walks=st.integers(2, 300),
    pitch=st.integers(8, 4000).map(lambda items: 8 * items),
)
def test_no_walk_takes_less_than_nothing_of_anything(
    memory: Hierarchy, spread: int, kept: float, lines: int, walks: int, pitch: int
) -> None:
    memory = replace(memory, spread=spread, kept=kept)
    found = taken(transposed(lines, walks, pitch), memory)
    assert all(amount >= 0 for amount in found.values())
    again = lines * walks * (1 - 8 / 64)
    crowded = [amount for place, amount in found.items() if place[0] == "conflict_line_us"]
    assert all(amount <= again * (1 + 1e-9) for amount in crowded)


@pytest.mark.parametrize("memory", OF_PROCESSORS)
@pytest.mark.parametrize("kept", [0.9, 1.0, 1.25, 1.5])
def test_a_level_has_lost_half_of_lines_that_crowd_where_it_was_found_to(
    memory: Hierarchy, kept: float
) -> None:
    memory = replace(memory, spread=1, kept=kept)
    # at the pitch of a page, one line in 64 of the level's is there for a walk
    half = kept * memory.levels[1] / PAGE_BYTES
    place = "conflict_line_us", memory.keys[1]

    def lost(lines: int) -> float:
        return taken(transposed(lines, 64, PAGE_BYTES), memory).get(place, 0.0) / lines / 64

    every = 1 - 8 / 64
    assert lost(int(0.7 * half)) == 0
    assert 0.3 * every <= lost(int(half)) <= 0.7 * every
    assert lost(int(1.3 * half)) == pytest.approx(every)


def test_walks_wait_longer_for_fewer_sets_even_where_no_line_would_be_kept_anyway() -> None:
    memory = OF_PROCESSORS[0]
    long = 2 * memory.levels[0] // 64

    def waited(pitch: int) -> float:
        found = taken(transposed(long, 8, pitch), memory)
        return found.get(("conflict_line_us", memory.keys[0]), 0.0)

    shared = [64 * times for times in (1, 2, 4, 8)]
    # odd multiples share no more with the bytes of a way than these do
    found = [waited(4096 + one) for one in shared]
    assert found[0] == 0 and found == sorted(found) and found[1] > 0


def made_up(memory: Hierarchy, more: float = 6.0) -> list[Timing]:
    """Return walks as they take on a machine, with launches that differ by a few per cent."""
    made = []
    crowding = memory.crowding(num(PAGE_BYTES))
    for number, point in enumerate(walk_points(Effort.FULL)):
        lines = int(point.features[WALK])
        lost = float(evaluate(memory.lost(num(64 * lines), crowding)[1], {}))
        us = lines * (0.001 + 0.001 * more * lost)
        made.append(Timing(point, tuple(((us * f,),) for f in (0.98, 1.0, 1.01 + number % 3 / 50))))
    return made


@pytest.mark.parametrize("memory", OF_PROCESSORS)
@pytest.mark.parametrize("kept", [0.9, 1.0, 1.2, 1.4])
@pytest.mark.parametrize("spread", SPREADS)
def test_walks_tell_what_the_second_level_keeps(
    memory: Hierarchy, kept: float, spread: int
) -> None:
    found = kept_of(made_up(replace(memory, kept=kept, spread=spread)), memory)
    if spread * kept * memory.levels[1] / PAGE_BYTES > 800:
        # the longest walks are too short to say
        assert found is None or found == pytest.approx(kept, abs=0.11)
    else:
        assert found == pytest.approx(kept, abs=0.06)


def test_walks_that_take_as_long_however_many_lines_say_nothing() -> None:
    memory = OF_PROCESSORS[0]
    assert kept_of(made_up(memory, more=0.05), memory) is None
    assert kept_of([], memory) is None
    assert kept_of(made_up(memory)[:4], memory) is None


def test_a_first_idea_has_no_time_for_walks() -> None:
    assert walk_points(Effort.QUICK) == []
    named = [p for p in SECTION.points(Effort.FULL, 1, EPYC) if WALK in p.features]
    assert named == walk_points(Effort.FULL)


def test_a_price_goes_by_what_the_profile_says_is_kept() -> None:
    stated = {"provenance": "measured", "source": "calibration"}
    memory = OF_PROCESSORS[0]

    def priced(kept: float | None) -> float:
        rates: dict[str, Json] = {
            "call_us": {"value": 1.0, "unit": "us", **stated},
            "conflict_line_us": {memory.keys[1]: {"value": 0.005, "unit": "us/line", **stated}},
            "set_spread": {"value": 1, "unit": "1", **stated},
        }
        arrays: dict[str, Json] = {
            "levels": {f"b{n}": {"value": n, "unit": "byte", **stated} for n in memory.levels},
            "rates": {"transpose": {"float64": rates}},
        }
        if kept is not None:
            arrays[KEPT] = {"value": kept, "unit": "1", **stated}
        document: dict[str, Json] = {
            "schema_version": 1,
            "name": "made-up",
            "title": "Made up",
            "library": "none",
            "date": "2026-11-22",
            "sources": {"calibration": "made up"},
            "hardware": {"cache_line_bytes": {"value": 64, "unit": "byte", **stated}},
            "arrays": arrays,
        }
        assert check_profile(document, "made-up.json") == []
        call = transposed(600, 64, PAGE_BYTES)
        price = price_work(
            Statement((), num(0), calls=(call,)), machine_of(document, "made-up.json")
        )
        assert isinstance(price, Priced)
        return float(evaluate_price(price, {}).mid)

    # 512 lines of this pitch fill their sets of 2 MiB
    assert priced(None) == priced(1.0) > priced(1.2) > priced(1.6)
