"""Crossovers say of every value that was tried what the two prices say there."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costdb import crossovers
from costdb.crossovers import _DENSE, crossover
from costdb.estimate import Priced
from costdb.expr import ExprError, evaluate, parse

WEIGHTS = st.integers(0, 9)


def priced(text: str) -> Priced:
    return Priced(parse(text))


@settings(max_examples=60, deadline=None)
@given(WEIGHTS, WEIGHTS, WEIGHTS, st.integers(2, 9), st.sampled_from([1.0, 1.05, 2.0]))
def test_what_is_said_of_a_value_is_what_the_prices_say_there(
    a: int, b: int, c: int, share: int, least: float
) -> None:
    before, after = f"{a}*N + {b}*ceil(N/{share}) + 7", f"{c}*N*log2(N + 1)/{share} + {a} + 5"
    found = crossover(priced(before), priced(after), "N", {}, 1, 1000, least)
    assert (found.low, found.high) == (1, 1000)
    tried = [value for value, _ in found.samples]
    assert tried[:_DENSE] == list(range(1, _DENSE + 1)) and tried[-1] == 1000
    for value in tried:
        one, other = (evaluate(parse(text), {"N": value}) for text in (before, after))
        gain = float(one) / float(other)
        if abs(gain - least) > 1e-6:
            assert found.holds(value) == (gain > least), value


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 5000), st.floats(1.0, 3.0))
def test_an_edge_beyond_the_dense_values_is_found_exactly(edge: int, least: float) -> None:
    # N against edge: after is the better one by `least` from the first N above least * edge
    found = crossover(priced("N"), priced(str(edge)), "N", {}, 1, 100_000, least)
    assert len(found.flips) == 1 and not found.after_wins_first
    (flip,) = found.flips
    assert flip > least * edge * (1 - 1e-6) and flip - 1 <= least * edge * (1 + 1e-6)
    assert all((ratio > least) == found.holds(value) for value, ratio in found.samples
               if abs(ratio - least) > 1e-6)  # fmt: skip


def test_long_sums_are_tried_as_far_as_the_work_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crossovers, "MOST_WORK", 20_000)
    one, other = priced("sum(i = 1, N, max(N - i, 7) % 5)"), priced("10**6")
    found = crossover(one, other, "N", {}, 1, 10**6)
    assert found.high < 10**6 and found.samples[-1][0] == found.high


def test_a_range_without_values_is_refused() -> None:
    with pytest.raises(ExprError, match="is empty"):
        crossover(priced("N"), priced("3"), "N", {}, 5, 4)
