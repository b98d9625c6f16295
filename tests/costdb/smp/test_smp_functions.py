"""The Power Challenge's cost functions give the printed numbers, and Good stays under Bad."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costdb.calibration.supersteps import Kind, make_plan
from costdb.documents import check_profile
from costdb.evaluate import Missing, evaluate_price
from costdb.expr import evaluate, num, sym
from costdb.machines import Machine, MachineError, load_machine, machine_of
from costdb.quantity import Provenance
from costdb.smp import (
    SuperstepError,
    SuperstepInterval,
    price_superstep,
    superstep_interval,
)
from costdb.work import Superstep
from tests.costdb.made_up import HEADING

PUBLISHED = json.loads(
    (Path(__file__).parents[2] / "data" / "smp_power_challenge.json").read_text()
)
CAPACITY = PUBLISHED["cache_capacity_elements"]
PRINTED_COUNTS = (2, 4, 8, 12)
MACHINE = load_machine("powerchallenge")
HR, HW, M, P = sym("hr"), sym("hw"), sym("M"), sym("P")


def interval() -> SuperstepInterval:
    found = superstep_interval(HR, HW, M, P, MACHINE)
    assert isinstance(found, SuperstepInterval)
    return found


INTERVAL = interval()


def both(hr: int, hw: int, total: int, processors: int) -> tuple[float, float]:
    values = {name: quantity.value for name, quantity in INTERVAL.coefficients.items()}
    values |= {"hr": hr, "hw": hw, "M": total, "P": processors}
    return float(evaluate(INTERVAL.good, values)), float(evaluate(INTERVAL.bad, values))


def by_hand(table: dict[str, float], hr: int, hw: int, total: int) -> float:
    amounts = {
        "L": 1,
        "ghr": hr,
        "ghw": hw,
        "gM": total,
        "ghrc": min(hr, CAPACITY),
        "ghrm": max(0, hr - CAPACITY),
        "ghwc": min(hw, CAPACITY),
        "ghwm": max(0, hw - CAPACITY),
    }
    return sum(coefficient * amounts[name] for name, coefficient in table.items())


def printed(processors: int) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    count = str(processors)
    return PUBLISHED["good"]["HrHwM-c"][count], PUBLISHED["bad"]["HrHwM"][count]


POINTS = [
    (5_000, 0, 5_000),
    (0, 5_000, 10_000),
    (100_000, 40_000, 250_000),
    (CAPACITY, CAPACITY, 3 * CAPACITY),
    (CAPACITY + 1, 17, 2 * CAPACITY),
    (123_456, 1_900_000, 3_000_000),
    (1_900_000, 1_900_000, 7_600_000),
]


@pytest.mark.parametrize("point", POINTS, ids=str)
@pytest.mark.parametrize("processors", PRINTED_COUNTS)
def test_the_printed_coefficients_values_come_out(
    processors: int, point: tuple[int, int, int]
) -> None:
    good_table, bad_table = printed(processors)
    piece = "R0" if max(point[:2]) <= CAPACITY else "R1"
    good, bad = both(*point, processors)
    assert good == pytest.approx(by_hand(good_table[piece], *point), rel=1e-12)
    assert bad == pytest.approx(by_hand(bad_table, *point), rel=1e-12)


def test_the_profile_holds_every_printed_validation_error() -> None:
    for name, functions in PUBLISHED["validation"].items():
        for function, errors in functions.items():
            by_piece = errors.items() if isinstance(errors, dict) else [("", errors)]
            for piece, row in by_piece:
                for count, error in zip(PRINTED_COUNTS, row, strict=True):
                    path = (function.replace("-", "_"), *filter(None, (piece,)), f"p{count}")
                    kept = MACHINE.quantity("smp", "validation", name, *path)
                    assert kept is not None
                    assert (kept.value, kept.provenance) == (error, Provenance.PUBLISHED)


def test_between_printed_processor_counts_both_are_interpolated() -> None:
    point = (300_000, 200_000, 1_000_000)
    for below, above in ((2, 4), (4, 8), (8, 12)):
        ends = both(*point, below), both(*point, above)
        for count in range(below, above + 1):
            share = (count - below) / (above - below)
            expected = [a * (1 - share) + b * share for a, b in zip(*ends, strict=True)]
            assert both(*point, count) == pytest.approx(expected, rel=1e-12)


def test_a_price_runs_from_good_to_bad_with_their_mean_in_the_middle() -> None:
    priced = price_superstep(Superstep(P, HR, HW, M, "gather"), MACHINE)
    assert not isinstance(priced, Missing)
    for processors in (2, 5, 12):
        for point in POINTS:
            if point[2] > processors * (point[0] + point[1]):
                continue
            names = dict(zip(("hr", "hw", "M"), point, strict=True))
            estimate = evaluate_price(priced, {**names, "P": processors})
            good, bad = both(*point, processors)
            assert estimate.low == pytest.approx(good * 1e-6)
            assert estimate.mid == pytest.approx((good + bad) / 2 * 1e-6)
            assert estimate.high == pytest.approx(bad * 1e-6)
            assert estimate.in_range
            assert estimate.terms[0].label == "gather"


@pytest.mark.parametrize(
    ("bindings", "said"),
    [
        ({"hr": 64, "hw": 64, "M": 128, "P": 2}, "accesses of the busiest processor: 64 is"),
        ({"hr": 2_000_000, "hw": 0, "M": 2_000_000, "P": 2}, "2e+06 is outside"),
        ({"hr": 9_000, "hw": 0, "M": 9_000, "P": 13}, "processors: 13 is outside"),
        ({"hr": 9_000, "hw": 0, "M": 9_000, "P": 1}, "processors: 1 is outside"),
    ],
)
def test_an_extrapolation_says_so(bindings: dict[str, int], said: str) -> None:
    priced = price_superstep(Superstep(P, HR, HW, M), MACHINE)
    assert not isinstance(priced, Missing)
    estimate = evaluate_price(priced, bindings)
    assert not estimate.in_range
    assert any(said in remark for remark in estimate.remarks)
    assert 0 <= estimate.low <= estimate.mid <= estimate.high


def test_outside_the_printed_counts_the_nearest_stands_in() -> None:
    point = (300_000, 200_000, 600_000)
    assert both(*point, 1) == both(*point, 2)
    assert both(*point, 36) == both(*point, 12)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ((5, 5, 10, 0), "at least 1 processor"),
        ((-1, 5, 10, 2), "cannot be negative"),
        ((5, 5, 9, 2), "cannot make 9 accesses"),
        ((5, 5, 21, 2), "cannot make 21 accesses"),
    ],
)
def test_contradictory_counts_are_refused(counts: tuple[int, ...], said: str) -> None:
    reads, writes, total, processors = map(num, counts)
    with pytest.raises(SuperstepError, match=said) as caught:
        price_superstep(Superstep(processors, reads, writes, total), MACHINE)
    assert "\n" not in str(caught.value)


def test_a_machine_without_the_model_says_what_is_missing() -> None:
    missing = price_superstep(Superstep(P, HR, HW, M), load_machine("mupc"))
    assert isinstance(missing, Missing)
    assert "smp functions HrHwM_c and HrHwM" in missing.what
    assert "advise" in missing.remedy


@pytest.mark.parametrize(
    ("smp", "said"),
    [
        ({"range": {"h": [5]}}, "/smp/range/h: expected"),
        ({"good": {"HrHwM_c": {"8": {}}}}, "/smp/good/HrHwM_c/8: expected p and a number"),
        ({"bad": {"HrHwM": {"p2": {"gZ": 1}}}}, "/smp/bad/HrHwM/p2/gZ: expected a quantity"),
        ({"good": {"HrHwM_c": {"p2": {"R0": {}}}}}, "/smp/good/HrHwM_c/p2/R0: expected coeff"),
    ],
)
def test_a_malformed_section_is_refused_with_its_place(smp: dict[str, object], said: str) -> None:
    document = json.loads(json.dumps(dict(MACHINE.document)))
    document["smp"] |= smp
    with pytest.raises(MachineError, match=said):
        price_superstep(Superstep(P, HR, HW, M), machine_of(document, "mine.json"))


def test_a_residual_of_a_calibrated_profile_widens_both_ends() -> None:
    document = json.loads(json.dumps(dict(MACHINE.document)))
    document["smp"]["residual"] = {
        "value": 1.0,
        "low": 0.5,
        "high": 2.0,
        "unit": "1",
        "provenance": "derived",
        "source": "smp",
    }
    step = Superstep(num(4), num(10_000), num(10_000), num(40_000))
    plain = price_superstep(step, MACHINE)
    widened = price_superstep(step, machine_of(document, "mine.json"))
    assert not isinstance(plain, Missing)
    assert not isinstance(widened, Missing)
    before, after = evaluate_price(plain, {}), evaluate_price(widened, {})
    assert after.low == pytest.approx(before.low * 0.5)
    assert after.high == pytest.approx(before.high * 2)
    assert after.mid == pytest.approx(before.mid)


@pytest.mark.parametrize("counted", [2, 4, 8, 16])
def test_counts_are_of_the_elements_that_the_functions_were_fitted_to(counted: int) -> None:
    size = MACHINE.quantity("smp", "element_bytes")
    assert size is not None
    point = {"hr": 90_000, "hw": 60_000, "M": 400_000, "P": 4}
    stated = price_superstep(Superstep(P, HR, HW, M, counted_bytes=counted), MACHINE)
    plain = price_superstep(Superstep(P, HR, HW, M), MACHINE)
    assert not isinstance(stated, Missing)
    assert not isinstance(plain, Missing)
    times = counted / size.value
    scaled = {name: value if name == "P" else value * times for name, value in point.items()}
    given = evaluate_price(stated, point)
    wanted = evaluate_price(plain, scaled)
    assert (given.low, given.mid, given.high) == (wanted.low, wanted.mid, wanted.high)


# Cost functions by cache level: each access is paid at the rate of the level that it falls in.


LIMITS = [1_000, 50_000]
COUNTS = (2, 4)
RATES = {"good": 1.0, "bad": 8.0}


def rate(family: str, processors: int, name: str) -> float:
    """Return a coefficient; no two are alike."""
    level = float(name[-1]) if name[-1].isdigit() else 0.0
    side = {"L": 100.0, "gM": 0.25, "ghr": 1.0, "ghw": 3.0}[name.rstrip("012")]
    return RATES[family] * side * (1 + level) * processors


def document(limits: Any = LIMITS) -> dict[str, Any]:
    names = ["L", "gM", *(f"{key}{level}" for key in ("ghr", "ghw") for level in range(3))]

    def stated(family: str, processors: int, name: str) -> dict[str, Any]:
        value = rate(family, processors, name)
        unit = "us" if name == "L" else "us/element"
        return {"value": value, "unit": unit, "provenance": "measured", "source": "test"}

    levels = {
        family: {
            "limits": limits,
            **{f"p{count}": {n: stated(family, count, n) for n in names} for count in COUNTS},
        }
        for family in RATES
    }
    return {
        **HEADING,
        "smp": {"levels": levels},
    }


def superstep_us(
    machine: Machine, hr: int, hw: int, total: int, processors: int
) -> tuple[float, float]:
    counts = (num(count) for count in (hr, hw, total, processors))
    found = superstep_interval(*counts, machine)
    assert not isinstance(found, Missing)
    values = {name: quantity.value for name, quantity in found.coefficients.items()}
    return float(evaluate(found.good, values)), float(evaluate(found.bad, values))


def worked_out(family: str, hr: int, hw: int, total: int, processors: int) -> float:
    """Walk over the levels, as accesses do."""
    cost = rate(family, processors, "L") + rate(family, processors, "gM") * total
    for key, count in (("ghr", hr), ("ghw", hw)):
        low = 0
        for level, limit in enumerate((*LIMITS, 10**9)):
            cost += rate(family, processors, f"{key}{level}") * len(range(low, min(count, limit)))
            low = limit
    return cost


def test_the_profile_of_the_tests_is_sound() -> None:
    assert check_profile(document(), "made-up") == []


near = st.sampled_from(LIMITS).flatmap(lambda limit: st.integers(limit - 1, limit + 1))
accesses = st.one_of(st.integers(0, 200_000), near)


@given(accesses, accesses, st.sampled_from(COUNTS))
def test_each_level_takes_what_lies_in_it(hr: int, hw: int, processors: int) -> None:
    point = hr, hw, hr + hw, processors
    expected = [worked_out(family, *point) for family in ("good", "bad")]
    assert superstep_us(machine_of(document(), "test"), *point) == pytest.approx(
        expected, rel=1e-12
    )


@pytest.mark.parametrize("limits", [[50_000, 1_000], [1_000, "far"], "1000", 1_000, None])
def test_limits_that_do_not_grow_are_refused(limits: Any) -> None:
    with pytest.raises(MachineError, match="/smp/levels/good/limits: expected growing numbers"):
        superstep_us(machine_of(document(limits), "test"), 1, 1, 2, 2)


# Plans of supersteps to measure with.


@st.composite
def plans(draw: st.DrawFn) -> tuple[Kind, int, int, int]:
    h, number, processors = (draw(st.integers(*ends)) for ends in ((1, 2_000_000), (0, 3), (2, 16)))
    return draw(st.sampled_from(list(Kind))), h, number, processors


@given(plans())
def test_plans_keep_to_their_kind(chosen: tuple[Kind, int, int, int]) -> None:
    kind, h, number, processors = chosen
    reads, writes = make_plan(*chosen)
    assert make_plan(*chosen) == (reads, writes)
    assert len(reads) == len(writes) == processors and min(reads + writes) >= 0
    assert max(reads + writes) == h
    assert sum(reads) == sum(writes)
    some = {Kind.LIKE_GATHER: [reads], Kind.LIKE_SCATTER: [writes]}.get(kind, [reads, writes])
    for one in some:
        assert one[0] == h and (number or not any(one[1:]))
    for one in [each for each in (reads, writes) if each not in some]:
        assert max(one) - min(one) <= 1
