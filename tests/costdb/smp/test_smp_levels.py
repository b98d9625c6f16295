"""Cost functions by cache level: each access is paid at the rate of the level that it falls in."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costdb.estimate import Missing
from costdb.expr import evaluate, num
from costdb.machines import Machine, MachineError, machine_of
from costdb.profile_check import check_profile
from costdb.smp.functions import Family, superstep_interval
from tests.costdb.made_up import HEADING

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


def both(machine: Machine, hr: int, hw: int, total: int, processors: int) -> tuple[float, float]:
    counts = (num(count) for count in (hr, hw, total, processors))
    found = superstep_interval(Family.HRHWM, *counts, machine)
    assert not isinstance(found, Missing)
    values = {name: quantity.value for name, quantity in found.coefficients.items()}
    return float(evaluate(found.good, values)), float(evaluate(found.bad, values))


def by_hand(family: str, hr: int, hw: int, total: int, processors: int) -> float:
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
    expected = [by_hand(family, *point) for family in ("good", "bad")]
    assert both(machine_of(document(), "test"), *point) == pytest.approx(expected, rel=1e-12)


@given(accesses, accesses)
def test_between_counts_of_processors_both_are_interpolated(hr: int, hw: int) -> None:
    machine, point = machine_of(document(), "test"), (hr, hw, hr + hw)
    ends = both(machine, *point, 2), both(machine, *point, 4)
    middle = [(one + other) / 2 for one, other in zip(*ends, strict=True)]
    assert both(machine, *point, 3) == pytest.approx(middle, rel=1e-12)


@pytest.mark.parametrize("limits", [[50_000, 1_000], [1_000, "far"], "1000", 1_000, None])
def test_limits_that_do_not_grow_are_refused(limits: Any) -> None:
    with pytest.raises(MachineError, match="/smp/levels/good/limits: expected growing numbers"):
        both(machine_of(document(limits), "test"), 1, 1, 2, 2)
