"""Reductions a stretch at a time against enumeration, at every block boundary."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costdb.expr import Expr, ExprError, evaluate, parse, sym
from costdb.expr.functions import MaxOver, Reduction, Sum
from costdb.expr.pieces import by_pieces
from tests.costdb.expr.expr_strategies import NAMES, expressions

SHRINKING = [
    "sum(k = 0, N - 2) min(ceil(N/P), max((N // ceil(N/P))*ceil(N/P) - k - 1, 0))",
    "sum(k = 0, N - 1) ceil(min(N - k, ceil(N/P))*8 / 64)*k",
    "sum(k = 0, N - 1) ceil(log2(P - k // ceil(N/P)))*(N - k)",
    "sum(k = 1, N) if(k % 7 == 0, k*N, if(k < P, 3, k // 4))",
    "sum(k = 0, N) (8*k*N - 3*k) // 63",
    "sum(k = 0, N) ((k*k + 3*k) // 5 - (k*k) % 4)",
    "sum(k = 0, N) max(k*k - P*k, P - 3)*(k*k - 9*k < P)",
    "sum(k = 0, N) ((k*k == 16) + (k*k - 5*k == -6))",
    "sum(k = 0, N) min(k**3 - 9*k*k, 7*k)",
    "sum(k = -N, N) ceil((2*k - 1)/3)*(-k) // 2",
    "max(k = 0, N - 1) min(k, N - k)*(k % 3)",
    "max(k = 0, N) (P*k - k*k)",
    "sum(k = 1, N) sum(j = 1, P) j*(P // 3)",
    "sum(k = 0, N) k**2 * P**-1",
]


def enumerated(expr: Reduction, low: int, high: int, values: dict[str, int]) -> object:
    found = [evaluate(expr.body, {**values, expr.index: at}) for at in range(low, high + 1)]
    if isinstance(expr, Sum):
        return sum(found)
    return max(found, default=0)


@pytest.mark.parametrize("text", SHRINKING)
def test_shrinking_regions_equal_enumeration(text: str) -> None:
    expr = parse(text)
    assert isinstance(expr, Reduction)
    for n, p in itertools.product((1, 2, 5, 8, 15, 16, 17, 33, 64), (1, 2, 3, 4, 7, 16)):
        values = {"N": n, "P": p}
        low, high = (evaluate(bound, values) for bound in (expr.low, expr.high))
        assert isinstance(low, int) and isinstance(high, int)
        found = by_pieces(expr, low, high, values)
        assert found == {(): enumerated(expr, low, high, values)}, values


@settings(max_examples=300, deadline=None)
@given(
    expressions,
    st.sampled_from([Sum, MaxOver]),
    st.integers(-9, 9),
    st.integers(-3, 40),
    st.fixed_dictionaries(dict.fromkeys(NAMES[1:], st.integers(-5, 9))),
)
def test_any_body_that_has_pieces_equals_enumeration(
    body: Expr, kind: type[Reduction], low: int, length: int, values: dict[str, int]
) -> None:
    # the first of the names is the index
    expr = kind(NAMES[0], sym("lo"), sym("hi"), body)
    high = low + length - 1
    try:
        expected = enumerated(expr, low, high, values)
    except ExprError:
        return
    try:
        found = by_pieces(expr, low, high, values)
    except ExprError:
        pytest.fail("no value where enumeration has one")
    assert found is None or found == {(): expected}


def test_symbols_without_value_are_kept_with_their_weights() -> None:
    expr = parse("sum(k = 0, N - 1) if(k % 4 == 0, a + k*b, if(k < 10, c*b*k/2, a))")
    assert isinstance(expr, Reduction)
    assert by_pieces(expr, 0, 99, {}) == {
        (): 0,
        ("a",): 25 + 75 - 7,
        ("b",): sum(range(0, 100, 4)),
        ("b", "c"): Fraction(sum(k for k in range(10) if k % 4), 2),
    }
    assert by_pieces(parse("sum(k = 0, 9) max(k, a)"), 0, 9, {}) is None


def test_a_long_range_takes_as_many_pieces_as_it_has_blocks() -> None:
    expr = parse("sum(k = 0, N - 1) min(N - (k // B)*B, B)*(k // B)")
    assert isinstance(expr, Reduction)
    n, ranks = 10**12 + 7, 16
    block = -(-n // ranks)
    owned = [min(block, n - rank * block) for rank in range(ranks)]
    expected = sum(rank * length * length for rank, length in enumerate(owned))
    assert by_pieces(expr, 0, n - 1, {"N": n, "B": block}, most=40) == {(): expected}
    # neither a number of pieces nor a formula: it is for enumeration
    assert by_pieces(parse("sum(k = 1, N) k % (k + 3)"), 1, 10**6, {}, most=40) is None
