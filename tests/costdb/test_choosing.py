"""Ranking anything: nothing that a condition allows is lost, and the order is that of the times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costdb.choosing import (
    _DENSE,
    Bound,
    Chosen,
    RefusedError,
    SubjectError,
    crossover,
    possible_values,
    rank,
)
from costdb.evaluate import Missing, Priced, Term
from costdb.expr import Expr, ExprError, evaluate, parse

LARGEST = 14
PARTS = st.sampled_from(
    [
        "X*Y == 12",
        "12 == X*Y",
        "3*X*Y == 36",
        "X*Y/2 == 6",
        "X*Y == 7.5",
        "X <= 4",
        "X < 4",
        "4 > X",
        "2*X*Y <= 21",
        "X*Y < 10 or X == 3",
        "X + Y <= 6",
        "X >= 2",
        "X != Y",
        "Y == 5",
        "X*X == 9",
        "X*Y == Z*2",
        "not X == 3",
        "-X >= 0 - 5",
        "X % 2 == 0",
        "X*Y == 0",
        "max(X, Y) <= 5",
    ]
)


@settings(max_examples=30, deadline=None)
@given(parts=st.lists(PARTS, min_size=1, max_size=3), most=st.sampled_from([3, 100]))
def test_a_condition_holds_for_possible_values_only(parts: list[str], most: int) -> None:
    condition = parse(" and ".join(f"({part})" for part in parts))
    possible = possible_values(condition, most)
    for x, y, z in product(range(1, LARGEST), repeat=3):
        values = {"X": x, "Y": y, "Z": z}
        if evaluate(condition, values):
            for name, allowed in possible.items():
                # Of a long range only so much is given that a ranking knows it is too long.
                assert values[name] in allowed or len(allowed) > most
    assert all(list(allowed) == sorted(set(allowed)) for allowed in possible.values())


@dataclass(frozen=True)
class Shape:
    """A made-up subject: area over X and Y in one variant, its circumference in the other."""

    origin: str = "shape"
    names: tuple[str, ...] = ("X", "kind", "Y")
    words: frozenset[str] = frozenset({"kind"})

    def about(self, name: str) -> str:
        return "width" if name == "X" else ""

    def bind(self, given: Mapping[str, Chosen]) -> Bound:
        if given.get("X") == given.get("Y") and "X" in given:
            raise RefusedError("shape: no squares")
        numbers = {n: v for n, v in given.items() if not isinstance(v, str)}
        return Bound({"kind": str(given.get("kind", "area"))}, numbers, given)

    def price(self, words: Mapping[str, str]) -> Priced | Missing:
        if words["kind"] == "colour":
            return Missing("colours", "paint")
        time = parse("X*Y") if words["kind"] == "area" else parse("2*X + 2*Y")
        return Priced(time, (Term("all", "m", time),))

    def values(self, name: str, given: Mapping[str, Chosen]) -> Sequence[Chosen]:
        if name == "kind":
            return ("area", "circumference")
        raise SubjectError("shape: no end")


def ranked(over: Mapping[str, Sequence[Chosen] | None], where: Expr | None = None) -> list[object]:
    found = rank(Shape(), over, {}, where)
    assert not isinstance(found, Missing)
    return [tuple(choice.bindings.values()) for choice in found]


@settings(max_examples=30, deadline=None)
@given(
    xs=st.lists(st.integers(1, 9), min_size=1, max_size=4, unique=True),
    ys=st.lists(st.integers(1, 9), min_size=1, max_size=4, unique=True),
    limit=st.integers(1, 60),
)
def test_a_ranking_is_what_trying_everything_gives(
    xs: list[int], ys: list[int], limit: int
) -> None:
    allowed = [(x, y) for x, y in product(xs, ys) if x != y and x * y <= limit]
    times = {("area", x, y): x * y for x, y in allowed}
    times |= {("circumference", x, y): 2 * x + 2 * y for x, y in allowed}
    over: dict[str, Sequence[Chosen] | None] = {"kind": None, "X": xs, "Y": ys}
    if not times:
        with pytest.raises(SubjectError):
            ranked(over, parse(f"X*Y <= {limit}"))
        return
    found = ranked(over, parse(f"X*Y <= {limit}"))
    assert sorted(map(str, found)) == sorted(map(str, times))
    seconds = [time for choice in found for key, time in times.items() if key == choice]
    assert seconds == sorted(seconds)


# Crossovers say of every value that was tried what the two prices say there.


WEIGHTS = st.integers(0, 9)


def priced(text: str) -> Priced:
    return Priced(parse(text))


@settings(max_examples=30, deadline=None)
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


def test_long_sums_are_tried_to_the_end() -> None:
    one, other = priced("sum(i = 1, N, max(N - i, 7) % 5)"), priced("10**6")
    found = crossover(one, other, "N", {}, 1, 10**6)
    # each term is 2 in the mean
    assert found.high == 10**6 and not found.after_wins_first
    (flip,) = found.flips
    assert flip == pytest.approx(500_000, rel=0.02)


def test_a_range_without_values_is_refused() -> None:
    with pytest.raises(ExprError, match="is empty"):
        crossover(priced("N"), priced("3"), "N", {}, 5, 4)
