"""Formulas that decide over whole numbers have the values of those with fractions."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from costdb.expr import Expr, ExprError, compile_scalar, evaluate, num, parse, sym
from costdb.expr.denominators import MOST_DENOMINATOR, cleared, over_denominator
from costdb.expr.functions import Comparison, Log2, Sum
from costdb.expr.nodes import Add, Division, Mul, Num
from costdb.expr.whole_sums import whole_products
from tests.costdb.expr.expr_strategies import NAMES, bindings, expressions

points = st.one_of(
    bindings, st.fixed_dictionaries(dict.fromkeys(NAMES, st.fractions(-5, 9, max_denominator=6)))
)


def value(expr: Expr, point: dict[str, Fraction]) -> object:
    """Return the value at a point; formulas without one are not compared."""
    try:
        return evaluate(expr, point)
    except ExprError:
        assume(False)
        raise


@settings(max_examples=300, deadline=None)
@given(expressions, points)
def test_values_stay_the_same(expr: Expr, point: dict[str, Fraction]) -> None:
    above, below = over_denominator(expr)
    expected = value(expr, point)
    event(f"a denominator: {below > 1}")
    assert evaluate(above, point) == expected * below
    assert evaluate(cleared(expr), point) == expected


@settings(max_examples=200, deadline=None)
@given(expressions, bindings)
def test_compiled_decisions_equal_exact_ones(expr: Expr, point: dict[str, int]) -> None:
    expected = value(expr, point)
    found = compile_scalar(expr, NAMES)(*(point[name] for name in NAMES))
    assert float(found) == pytest.approx(float(expected), rel=1e-12, abs=1e-12)


def fractions_in(expr: Expr) -> list[Expr]:
    """Return the parts below decisions whose own number is no whole one."""
    found, pending = [], [(expr, isinstance(expr, Comparison))]
    while pending:
        part, decides = pending.pop()
        own = part.value if isinstance(part, Num) else 0
        own = part.constant if isinstance(part, Add) else own
        own = part.coefficient if isinstance(part, Mul) else own
        if decides and not isinstance(own, int):
            found.append(part)
        inner = decides or isinstance(part, Division | Comparison)
        pending += [(child, inner and not isinstance(part, Log2)) for child in part.children]
    return found


def test_decisions_of_a_price_hold_no_fractions() -> None:
    expr = parse(
        "x*if(max(N/8 - i/8 + 3/4, min(N*ceil(N/P)/4, 7/2))*64 > 49152, 1, 0)"
        " + (N + 7)/8*if(3*gcd(N, 4096)/64 < 1024/3, 1, 0) + y*floor(min(N/512, 1)*N + 1/3)"
    )
    assert fractions_in(expr)
    assert not fractions_in(cleared(expr))
    assert fractions_in(num(Fraction(1, 3)) + sym("N")) == []


def test_what_is_too_fine_keeps_its_fractions() -> None:
    fine = parse(f"if(N/{MOST_DENOMINATOR + 1} < 1/3, N, 2)")
    assert over_denominator(fine)[1] == 1
    assert fractions_in(cleared(fine)) == [cleared(fine).children[0].children[0]]
    edge = -(-(MOST_DENOMINATOR + 1) // 3)
    assert [evaluate(cleared(fine), {"N": n}) for n in (edge - 1, edge)] == [edge - 1, 2]


FACTORS = ("u", "v", "w")
whole_parts = st.sampled_from(
    [
        "i",
        "N - i",
        "min(i, 5)",
        "if(3*i/4 < P, 1, 0)",
        "(floor(i/P) + 1)",
        "max(N/8 - i/8, 1/4)",
        "ceil(log2(i + 1))",
        "1/max(gcd(8*P, 64)/16, 1)",
        "if(1 < P, 2/P, 1/3)",
        "gcd(N, 6)",
    ]
)
term = st.tuples(
    st.lists(st.sampled_from(FACTORS), max_size=2, unique=True),
    st.lists(whole_parts, min_size=1, max_size=3, unique=True),
).map(lambda one: "*".join([*one[0], *one[1]]))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(term, min_size=1, max_size=6),
    st.integers(1, 40),
    st.integers(1, 6),
    st.lists(st.floats(0.001, 1000), min_size=3, max_size=3),
)
def test_sums_of_products_equal_an_enumeration(
    terms: list[str], size: int, ranks: int, rates: list[float]
) -> None:
    body = parse(" + ".join(terms))
    expr = Sum("i", num(1), sym("N"), body)
    assert whole_products(expr, frozenset(FACTORS)) is not None
    exactly = {name: Fraction(rate) for name, rate in zip(FACTORS, rates, strict=True)}
    point = {"N": size, "P": ranks, **exactly}
    expected = sum(evaluate(body, {**point, "i": i}) for i in range(1, size + 1))
    assert evaluate(expr, point) == expected
    loose = {**point, **{name: float(rate) for name, rate in exactly.items()}}
    assert float(evaluate(expr, loose)) == pytest.approx(float(expected), rel=1e-12)


def test_a_reciprocal_that_a_choice_guards_is_not_taken_out() -> None:
    expr = parse("sum(i = 1, 20, if(P == 0, i, i/P*u))")
    assert evaluate(expr, {"P": 0, "u": 0.5}) == 210
    assert evaluate(expr, {"P": 3, "u": Fraction(1, 2)}) == 35


def test_divisors_of_rounded_logarithms_are_found() -> None:
    expr = parse("sum(i = 1, N, u*gcd(floor(log2(i + 2)), 6) + gcd(ceil(log2(i)), 4*i))")
    body = parse("gcd(floor(log2(i + 2)), 6)/2 + gcd(ceil(log2(i)), 4*i)")
    expected = sum(evaluate(body, {"i": i}) for i in range(1, 51))
    assert evaluate(expr, {"N": 50, "u": Fraction(1, 2)}) == expected
