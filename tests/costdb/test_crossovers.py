"""Crossovers that are said to be all of them equal a scan of every value."""

from __future__ import annotations

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from costdb import crossovers
from costdb.crossovers import PROVED_TO, crossover, proved_crossover
from costdb.envelope.signs import changes_of, sign_changes
from costdb.estimate import Priced
from costdb.expr import Expr, ExprError, evaluate, num, parse, substitute
from costdb.expr.exact import Value, exact
from costdb.expr.functions import Sum
from costdb.quantity import exactly
from tests.costdb.expr.expr_strategies import NAMES, expressions

FEW = 4
SCANNED = 5000


def signs(expr: Expr, name: str, high: int) -> list[bool | None]:
    """Return whether a formula is above 0 at every value from 1 on, None where it has no value."""

    def above(value: int) -> bool | None:
        try:
            return evaluate(expr, {name: value}) > 0
        except ExprError:
            return None

    return [above(value) for value in range(1, high + 1)]


def said(first: bool, flips: tuple[int, ...], high: int) -> list[bool]:
    told, places = first, set(flips)
    found = []
    for value in range(1, high + 1):
        told ^= value in places
        found.append(told)
    return found


def check(expr: Expr, name: str, high: int) -> bool:
    """Compare what is said to be decided with every value; tell whether something is said."""
    try:
        found = sign_changes(
            expr, name, 1, high, lambda value: evaluate(expr, {name: value}) > 0, FEW, high
        )
    except ExprError:
        return False
    if found is None:
        return False
    pairs = zip(said(*found, high), signs(expr, name, high), strict=True)
    assert all(one == other for one, other in pairs if other is not None)
    return True


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=5),
    st.integers(-60, 60),
    st.integers(0, 120),
)
def test_changes_of_polynomials_equal_a_scan(coefficients: list[int], low: int, more: int) -> None:
    def above(place: int) -> bool:
        return sum(c * place**power for power, c in enumerate(coefficients)) > 0

    flips = [n for n in range(low + 1, low + more + 1) if above(n) != above(n - 1)]
    assert changes_of(coefficients, low, low + more) == flips


@settings(max_examples=150, deadline=None)
@given(expressions, st.fixed_dictionaries(dict.fromkeys(NAMES, st.integers(1, 9))), st.data())
def test_random_formulas_change_where_a_scan_finds_it(
    expr: Expr, values: dict[str, int], data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(NAMES))
    try:
        alone = substitute(expr, {n: v for n, v in values.items() if n != name})
    except ExprError:
        return
    event("decided" if check(alone, name, 400) else "left open")


weights = st.fractions(-9, 9, max_denominator=7)


@settings(max_examples=12, deadline=None)
@given(weights, weights, weights, st.integers(2, 9), st.integers(1, 70), st.integers(1, 10**6))
def test_formulas_like_prices_are_decided(
    a: object, b: object, c: object, share: int, line: int, limit: int
) -> None:
    """Shares of ranks, lines, a cache that is left, messages by the logarithm, a sum of passes."""
    text = (
        f"({a})*N*ceil(N/{share}) + ({b})*ceil(N*8/{line}) + ({c})*sum(i = 1, N, i)"
        f" + if(N*N < {limit}, ({b})*N, ({a})*N*log2(N + 1)) - {limit}/7"
    )
    event("decided" if check(parse(text), "N", SCANNED) else "left open")


@pytest.mark.parametrize(
    ("before", "after", "flips"),
    [
        ("N", "1000003", (1_000_004,)),
        ("N*ceil(N/4)", "10**12", (2_000_001,)),
        ("ceil(N/64)*N*N", "900*N*log2(N)*N", None),
        ("1000*1000", "N*N*ceil(1024/N)", None),
        ("ceil(1048576/N)*3", "40", None),
        ("1000/N + N/1000", "9/2", None),
        ("sum(i = 1, N, max(N - i, 0)*3)", "10**6", (817,)),
    ],
)
def test_far_crossovers_are_proved(before: str, after: str, flips: tuple[int, ...] | None) -> None:
    one, other = Priced(parse(before)), Priced(parse(after))
    found = proved_crossover(one, other, "N", {})
    assert found is not None and found.proved
    assert found.high == PROVED_TO
    if flips is not None:
        assert found.flips == flips
    gain = parse(f"({before}) - ({after})")
    for flip in found.flips:
        assert (evaluate(gain, {"N": flip}) > 0) != (evaluate(gain, {"N": flip - 1}) > 0)
    searched = crossover(one, other, "N", {}, 1, SCANNED)
    assert set(searched.flips) <= set(found.flips)
    assert [f for f in found.flips if f <= 256] == [f for f in searched.flips if f <= 256]


def test_what_changes_on_and_on_is_not_said_to_be_decided() -> None:
    assert proved_crossover(Priced(parse("N % 2")), Priced(parse("1/2")), "N", {}) is None
    assert not crossover(Priced(parse("N % 2")), Priced(parse("1/2")), "N", {}, 1, 999).proved


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 400), st.integers(1, 60), st.integers(1, 30), st.integers(1, 2000))
def test_sums_of_what_is_not_whole_are_compared_exactly(
    rate: int, cap: int, share: int, fixed: int
) -> None:
    quantities = {
        "rate": exactly(rate / 7, "us", "made up"),
        "cap": exactly(cap / 3, "us", "made up"),
    }
    one = Priced(parse(f"sum(i = 1, N, min(i*rate/{share}, cap))"), coefficients=quantities)
    other = Priced(parse(f"{fixed} + N*cap/3"), coefficients=quantities)
    found = crossover(one, other, "N", {}, 1, 120)
    values = {name: exact(quantity.value) for name, quantity in quantities.items()}

    def wins(size: int) -> bool:
        point = {**values, "N": size}
        return evaluate(one.microseconds, point) > evaluate(other.microseconds, point)

    for flip in found.flips:
        assert wins(flip) != wins(flip - 1)
    assert wins(1) == found.after_wins_first
    assert wins(120) == (found.after_wins_first != bool(len(found.flips) % 2))


@given(
    st.integers(1, 60),
    st.integers(1, 60),
    st.integers(-3000, 3000),
    st.integers(0, 24_000_000),
)
@settings(max_examples=40, deadline=None)
def test_a_search_agrees_with_a_longer_one_up_to_where_it_searched(
    weight: int, other: int, constant: int, work: int
) -> None:
    before = Priced(parse(f"sum(i = 1, n, log2(i + {weight}))/{other} + {constant}/7"), {})
    after = Priced(parse("n*log2(n + 1)/3"), {})
    whole = crossover(before, after, "n", {}, high=600)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crossovers, "MOST_WORK", work)
        found = crossover(before, after, "n", {}, high=600)
        assert found == crossover(before, after, "n", {}, high=600)
    event(f"to the end: {found.high == 600}")
    assert whole.high == 600
    assert found.high <= 600
    assert found.after_wins_first == whole.after_wins_first
    assert found.flips == tuple(flip for flip in whole.flips if flip <= found.high)


CALIBRATED = {
    "call": exactly(0.4173519, "us", "made up"),
    "line.near": exactly(0.0031807, "us", "made up"),
    "line.far": exactly(0.0182231, "us", "made up"),
    "element": exactly(0.00058213, "us", "made up"),
    "start": exactly(1.7310904, "us", "made up"),
    "residual": exactly(1.03, "", "made up"),
}


@st.composite
def calibrated_prices(draw: st.DrawFn) -> Expr:
    """Return a price like those of a calibrated machine: a loop of calls, each graded by caches.

    Lines are near or far by what a call touches, which shrinks with the loop, in thirds, and by
    how the pitch of rows meets the sets of a cache; blocks of columns belong to ranks.
    """
    pitch = draw(st.sampled_from([1, 8, 24]))
    cache = draw(st.integers(64, 20_000))
    ranks = draw(st.integers(1, 6))
    block = f"ceil(N/{ranks})"
    width = draw(st.sampled_from(["(N - i)", f"min(N - i, {block})", f"max({block} - i, 1)"]))
    touched = f"max({width}*{pitch}/8 + N/8 + 7/4, min({block}, 9/2))*64"
    far = f"(if({touched} > {cache}, 1, 0) + if(3*{touched} > 4*{cache}, 1, 0))/3"
    crowded = f"max(gcd(8*{block}, {draw(st.sampled_from([64, 4096]))})/16, 1)"
    body = (
        f"residual*(call*{draw(st.integers(1, 9))} + element*{width}*min(N - i, {block})"
        f" + line.near*({width} + 7)/8 + line.far*({width} + 7)/8*{far}"
        f" + line.far*{width}/{crowded})"
    )
    steps = f" + start*ceil(log2({ranks} - floor((i - 1)/{block}) + 1))" if ranks > 1 else ""
    return parse(f"sum(i = 1, N, {body}{steps})")


@settings(max_examples=25, deadline=None)
@given(calibrated_prices(), calibrated_prices(), st.floats(0.5, 2))
def test_prices_like_calibrated_ones_are_compared_as_exact_ones_are(
    before: Expr, after: Expr, share: float
) -> None:
    one = Priced(before * num(share), coefficients=CALIBRATED)
    other = Priced(after, coefficients=CALIBRATED)
    values = {name: exact(quantity.value) for name, quantity in CALIBRATED.items()}

    def added(expr: Expr, size: int) -> Value:
        """Add the terms up one by one, with fractions."""
        assert isinstance(expr, Sum)
        point = {**values, "N": size}
        return sum(evaluate(expr.body, {**point, expr.index: i}) for i in range(1, size + 1))

    sizes = range(1, 41)
    found = crossover(one, other, "N", {}, sizes[0], sizes[-1])
    wins = [exact(share) * added(before, size) > added(after, size) for size in sizes]
    assert found.high == sizes[-1]
    assert wins[: found.dense_to] == said(found.after_wins_first, found.flips, found.dense_to)
    for flip in found.flips:
        assert wins[flip - 1] != wins[flip - 2]
    assert wins[-1] == (found.after_wins_first != bool(len(found.flips) % 2))
    event(f"{len(found.flips)} flips")
