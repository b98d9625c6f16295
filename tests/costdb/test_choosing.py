"""Ranking anything: nothing that a condition allows is lost, and the order is that of the times."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costdb.choosing import possible_values, rank
from costdb.estimate import Missing, Priced, Term
from costdb.expr import Expr, evaluate, parse
from costdb.subject import Bound, Chosen, RefusedError, SubjectError

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


@settings(max_examples=60, deadline=None)
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
