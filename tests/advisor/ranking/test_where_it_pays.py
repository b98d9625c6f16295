"""Where a suggestion pays: crossovers, exact, in words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.ranking.compare import Costed, crossing, pays_for, where_it_pays
from advisor.transform_registry import transforms
from costdb.crossovers import Crossover
from costdb.estimate import Priced
from costdb.expr import compile_scalar, evaluate, parse
from costdb.process.terms import NOTHING
from tests.advisor.ranking.priced_kernels import BOX, HALO, kernel_of, priced


def formula(text: str) -> Costed:
    return Costed(NOTHING, Priced(parse(text)))


@pytest.mark.parametrize(
    ("before", "after", "flips", "pays"),
    [
        ("N", "10", (11,), "N >= 11"),
        ("10", "N", (10,), "N < 10"),
        ("100", "(N - 20)**2", (11, 30), "11 <= N < 30"),
        ("(N - 20)**2", "100", (10, 31), "N < 10 or N >= 31"),
        ("1", "2*(N - 20)**2", (20, 21), "N = 20"),
        ("2*(N - 20)**2", "1", (20, 21), "N < 20 or N >= 21"),
        ("100", "100", None, None),
        ("N", "2*N", None, None),
        ("2*N", "N", None, None),
        ("2*(N - 20)**2*(N - 40)**2", "1", (20, 21, 40, 41), "N < 20 or 21 <= N < 40 or N >= 41"),
        ("N / 3000", "1", (3001,), "N >= 3001"),
    ],
)
def test_where_a_suggestion_pays_in_words(
    before: str, after: str, flips: tuple[int, ...] | None, pays: str | None
) -> None:
    found = where_it_pays(formula(before), formula(after), "N", {"N": 100})
    assert found == (None if flips is None else (flips, pays))


@pytest.mark.parametrize(
    ("first", "flips", "pays"),
    [
        (False, (2,), "2 <= N < 10"),
        (False, (9,), "N = 9"),
        (True, (4,), "N < 4"),
        (True, (4, 6), "N < 4 or 6 <= N < 10"),
    ],
)
def test_nothing_is_said_of_what_lies_beyond_a_search_that_was_cut_short(
    first: bool, flips: tuple[int, ...], pays: str
) -> None:
    assert pays_for(Crossover("N", flips, first, 1, 9, 9), 4096) == pays
    assert "<" not in pays_for(Crossover("N", (2,), False, 1, 9, 9), 9)


def test_ranges_that_change_at_every_value_are_not_spelled_out() -> None:
    found = where_it_pays(formula("N % 2"), formula("if(N < 40, 1/2, 9)"), "N", {"N": 100})
    assert found is not None
    assert found[1] == "some values of N below 40"
    found = where_it_pays(formula("if(N < 40, N % 2, 9)"), formula("1/2"), "N", {"N": 100})
    assert found is not None
    assert found[1] == "N >= 39, and for some values below"


@settings(max_examples=40, deadline=None)
@given(
    st.fractions(-9, 9, max_denominator=7),
    st.fractions(-900, 900, max_denominator=7),
    st.integers(1, 9),
    st.integers(-3, 3),
)
def test_crossovers_equal_a_dense_scan(slope: Any, shift: Any, block: int, curve: int) -> None:
    """Also where two prices are equal: compiled floats and exact fractions agree."""
    before = f"({curve})*N*N + ({slope})*ceil(N/{block})"
    after = f"({shift}) + N*ceil(N/{block})/3"
    found = where_it_pays(formula(before), formula(after), "N", {"N": 1})
    gain = parse(f"({before}) - ({after})")
    wins = [evaluate(gain, {"N": n}) > 0 for n in range(1, 257)]
    flips = tuple(n + 1 for n in range(1, 256) if wins[n] != wins[n - 1])
    assert tuple(f for f in (found[0] if found else ()) if f <= 256) == flips


def test_proved_crossovers_of_kernels_equal_a_scan() -> None:
    """At every value up to 5000 the better of two kernels is the one that the flips tell."""
    proved = []
    for source, sizes in (
        (BOX, {"N": 1000, "b": 4}),
        (
            HALO.format(
                dtype="f8", dims="block(x), none", order="C", region="2:, :", shifted=":-2, :"
            ),
            {"N": 100, "M": 50, "T": 3, "w": 20},
        ),
    ):
        kernel = kernel_of(source)
        before = priced(kernel)
        variants = [one.variant for rule in transforms() for one in rule.propose(kernel)]
        for variant in variants[:4]:
            after = priced(variant)
            coefficients = {
                name: quantity.value
                for costed in (before, after)
                for name, quantity in costed.priced.coefficients.items()
            }
            gain = before.priced.microseconds - after.priced.microseconds
            for variable in sorted(before.sizes | after.sizes):
                found = crossing(before, after, variable, sizes, 1, 5000)
                if not found.proved:
                    continue
                proved.append(variable)
                values = {**sizes, **coefficients}
                names = tuple(values)
                at, of = (
                    compile_scalar(gain, names),
                    compile_scalar(before.priced.microseconds, names),
                )
                after_wins = found.after_wins_first
                for value in range(1, 5001):
                    after_wins ^= value in found.flips
                    point = [value if name == variable else values[name] for name in names]
                    difference = float(at(*point))
                    if abs(difference) > 1e-9 * float(of(*point)):
                        assert (difference > 0) == after_wins, (variable, value)
    assert len(proved) >= 4


def test_crossovers_of_kernels_equal_a_dense_scan() -> None:
    kernel = kernel_of(BOX)
    before = priced(kernel)
    scan = next(rule for rule in transforms() if rule.code == "ADV201")
    after = priced(next(iter(scan.propose(kernel))).variant)
    for variable, fixed in (("b", {"N": 1000}), ("N", {"b": 4})):
        found = where_it_pays(before, after, variable, {"N": 1000, "b": 4})
        coefficients = {
            name: quantity.value
            for costed in (before, after)
            for name, quantity in costed.priced.coefficients.items()
        }
        gain = before.priced.microseconds - after.priced.microseconds
        wins = [
            evaluate(gain, {**coefficients, **fixed, variable: value}) > 0
            for value in range(1, 257)
        ]
        flips = tuple(n + 1 for n in range(1, 256) if wins[n] != wins[n - 1])
        assert tuple(f for f in (found[0] if found else ()) if f <= 256) == flips
