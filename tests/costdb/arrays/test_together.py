"""Ranks that compute at the same time: what is measured, the fit, and prices in company."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from costdb.arrays.amounts import Hierarchy
from costdb.calibration import loops
from costdb.calibration.loops import ARRAYS_OF, BY_ALL, BY_ONE, TOGETHER, fit_together
from costdb.calibration.section import Effort, Host, Point, Timing, World
from costdb.documents import check_profile
from costdb.evaluate import Priced, evaluate_price
from costdb.expr import Expr, num, sym
from costdb.machines import Machine, machine_of
from costdb.pricing import price_work
from costdb.work import Access, ArrayCall, ArrayOperation, Region, Statement, Visit
from tests.costdb.hosts import EPYC
from tests.costdb.made_up import HEADING

LEVELS = (1000, 10_000, 100_000, 1_000_000)
MEMORY = Hierarchy(LEVELS, 64)
PIECES = MEMORY.keys
LINE_US = dict(zip(PIECES, (0.0, 0.5, 2.0, 8.0), strict=True))
P = sym("P")


def piece(size: int) -> str:
    return next((f"b{level}" for level in LEVELS[1:] if size <= level), "beyond")


def timings(factors: dict[str, float], sizes: list[int]) -> Iterator[Timing]:
    """Yield times of a machine whose shared lines take so many times longer in company."""
    for operation in ARRAYS_OF:
        for size in sizes:
            own, lines = size * 1e-3, size / 64 * LINE_US[piece(size)]
            for who in (BY_ONE, BY_ALL):
                factor = factors[piece(size)] if who == BY_ALL else 1.0
                features = {"bytes": size, "who": who, "ranks": 4}
                point = Point(f"together.{operation}", features)
                yield Timing(point, (((own + lines * factor,),),))


SIZES = [5000, 8000, 20_000, 50_000, 200_000, 700_000, 2_000_000, 4_000_000]
FACTORS = st.tuples(*[st.floats(1, 4)] * 3).map(
    lambda some: dict(zip(PIECES, (1.0, *some), strict=True))
)


@given(FACTORS)
def test_the_factors_of_a_machine_are_found(factors: dict[str, float]) -> None:
    found = fit_together(list(timings(factors, SIZES)), MEMORY)
    stated = found.parts["arrays"]["together"]["p4"]["line_factor"]
    assert {key: one["value"] for key, one in stated.items()} == pytest.approx(
        {key: factors[key] for key in PIECES[1:]}, rel=1e-5
    )


def test_what_is_farther_than_measured_is_shared_as_the_farthest_that_was() -> None:
    factors = dict(zip(PIECES, (1, 1.5, 2, 3), strict=True))
    near = fit_together(list(timings(factors, SIZES[:4])), MEMORY)
    stated = near.parts["arrays"]["together"]["p4"]["line_factor"]
    assert [stated[key]["value"] for key in PIECES[1:]] == pytest.approx([1.5, 1.5, 1.5])
    (note,) = fit_together([], MEMORY).notes
    assert "no working set was measured" in note


@pytest.mark.parametrize("effort", list(Effort))
def test_each_working_set_is_timed_alone_and_in_company(effort: Effort, host: Host) -> None:
    points = TOGETHER.points(effort, 2, host)
    by_who = {
        who: [(p.operation, p.features["bytes"]) for p in points if p.features["who"] == who]
        for who in (BY_ONE, BY_ALL)
    }
    assert by_who[BY_ONE] == by_who[BY_ALL] and len(by_who[BY_ONE]) == len(set(by_who[BY_ONE])) > 10
    assert TOGETHER.points(effort, 1, host) == ()


@pytest.mark.parametrize("operation", list(ARRAYS_OF))
def test_only_the_first_rank_computes_where_one_does(
    operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "_LARGEST_BYTES", 1 << 16)
    loops._memory.cache_clear()
    target = loops._memory({"copy": 1, "add": 2}[operation])[:100]
    value = {"copy": 1.0, "add": 2.0}[operation]
    for who, rank, works in ((BY_ONE, 1, False), (BY_ONE, 0, True), (BY_ALL, 1, True)):
        point = Point(f"together.{operation}", {"bytes": 2400, "who": who, "ranks": 2})
        action = TOGETHER.action(point, World(EPYC, rank, 2))
        target[:] = 7.0
        action.run()
        assert np.all(target[: 2400 // 8 // ARRAYS_OF[operation]] == (value if works else 7.0))
    loops._memory.cache_clear()


def machine(**factors: float) -> Machine:
    leaf = {"provenance": "measured", "source": "calibration"}

    def us(value: float, unit: str = "us") -> dict[str, object]:
        return {"value": value, "unit": unit, **leaf}

    lines = {key: us(LINE_US[key]) for key in PIECES}
    stated = {
        **HEADING,
        "hardware": {"cache_line_bytes": us(64, "byte")},
        "arrays": {
            "levels": {f"b{level}": us(level, "byte") for level in LEVELS},
            "rates": {"copy": {"float64": {"call_us": us(1.0), "line_us": lines}}},
            "together": {
                f"p{ranks[1:]}": {"line_factor": {key: us(factor, "1") for key in PIECES[1:]}}
                for ranks, factor in factors.items()
            },
        },
    }
    assert not check_profile(stated, "made up")
    return machine_of(stated, "made up")


def priced(on: Machine, count: int, together: Expr | None) -> Priced:
    region = Region(8, (num(count),), (num(8),))
    visits = Visit(region, "x"), Visit(region, "y")
    call = ArrayCall(ArrayOperation.COPY, "float64", num(count), visits[0], visits[1:])
    work = Statement((Access(region),), num(0), "copy", (call,), together)
    found = price_work(work, on)
    assert isinstance(found, Priced)
    return found


def price(on: Machine, count: int, together: Expr | None, **sizes: int) -> float:
    return float(evaluate_price(priced(on, count, together), sizes).mid) * 1e6


@pytest.mark.parametrize("count", [250, 2000, 20_000, 200_000])
def test_lines_from_shared_levels_take_longer_in_company_and_others_do_not(count: int) -> None:
    shared = machine(p2=3.0)
    alone = price(shared, count, None)
    # where on a line an array begins is not known
    lines_us = 2 * (count / 8 + 7 / 8) * LINE_US[piece(16 * count)]
    assert alone == pytest.approx(1.0 + lines_us)
    assert price(shared, count, num(1)) == alone
    assert price(shared, count, num(2)) == pytest.approx(1.0 + 3 * lines_us)
    assert price(shared, count, num(64)) == pytest.approx(1.0 + 3 * lines_us)
    for ranks in (1, 2, 5):
        assert price(shared, count, P, P=ranks) == price(shared, count, num(ranks))
    assert price(machine(), count, num(2)) == alone
