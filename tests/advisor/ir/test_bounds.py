"""What is shown of indices within nested loops holds for every iteration of small ones."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.ir import signs
from advisor.ir.signs import least_index, non_negative_within
from costdb.expr import Expr, evaluate, num, sym

SMALL = st.integers(-2, 3)


def linear(names: list[str]) -> st.SearchStrategy[Expr]:
    coefficients = st.lists(SMALL, min_size=len(names), max_size=len(names))
    return st.builds(
        lambda constant, factors: sum(
            (sym(name) * factor for name, factor in zip(names, factors, strict=True)),
            num(constant),
        ),
        SMALL,
        coefficients,
    )


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_a_sign_within_loops_holds_in_every_iteration(data: st.DataObject) -> None:
    minima: dict[str, int] = {}
    maxima: dict[str, Expr] = {}
    starts: dict[str, Expr] = {}
    for names in (["N"], ["N", "i"], ["N", "i", "j"]):
        index = "ijk"[len(names) - 1]
        starts[index] = data.draw(linear(names))
        maxima[index] = data.draw(linear(names))
        minima[index] = least_index(starts[index], minima)
    expr = data.draw(linear(["N", "i", "j", "k"]))
    if not non_negative_within(expr, minima, maxima, starts):
        return

    def values(index: str, known: dict[str, int]) -> range:
        low = int(evaluate(starts[index], known))
        # a start of unknown sign is taken to stay inside its array
        assumed = max(low, minima[index]) if minima[index] >= 0 else low
        return range(assumed, int(evaluate(maxima[index], known)) + 1)

    for size in range(1, 6):
        for i in values("i", {"N": size}):
            for j in values("j", {"N": size, "i": i}):
                for k in values("k", {"N": size, "i": i, "j": j}):
                    assert evaluate(expr, {"N": size, "i": i, "j": j, "k": k}) >= 0


def test_rows_below_the_pivot_are_below_it() -> None:
    """``for i in range(k + 1, n)``: the distance to row k is known, whatever k is."""
    distance = sym("i") - sym("k") - 1
    bounds = {"k": 0, "i": 1}
    ends = {"k": sym("n") - 1, "i": sym("n") - 1}
    assert not non_negative_within(distance, bounds, ends)
    assert non_negative_within(distance, bounds, ends, {"k": num(0), "i": sym("k") + 1})
    assert not non_negative_within(distance - 1, bounds, ends, {"k": num(0), "i": sym("k") + 1})


def test_questions_within_deep_nests_take_two_steps_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    known = signs.known_non_negative

    def counted(expr: Expr, minima: Mapping[str, int]) -> bool:
        nonlocal asked
        asked += 1
        return known(expr, minima)

    monkeypatch.setattr(signs, "known_non_negative", counted)
    for depth in (2, 4, 8):
        names = [f"i{level}" for level in range(depth)]
        starts = {n: sym(o) + 1 for n, o in zip(names[1:], names, strict=False)}
        starts[names[0]] = num(0)
        maxima = dict.fromkeys(names, sym("N") - 1)
        minima = {name: level for level, name in enumerate(names)}
        distance = sym(names[-1]) - sym(names[0]) - (depth - 1)
        asked = 0
        assert non_negative_within(distance, minima, maxima, starts)
        assert not non_negative_within(distance - 1, minima, maxima, starts)
        # for each loop one question of its direction and one of what comes of it, and once more
        # counted down, besides the first of all
        assert asked <= 2 * (3 * depth + 1)
