import math
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costdb.choosing import crossover
from costdb.evaluate import Priced, compare, evaluate_price
from costdb.expr import ExprError, evaluate, num, parse, sym
from costdb.quantity import Provenance, Quantity

NAMES = ("m.a", "m.b", "m.c", "m.d")


def quantity(low, value, high, provenance=Provenance.MEASURED):
    return Quantity(value, low, high, "us", provenance, "test")


def boxes(low):
    triple = st.tuples(*[st.integers(low, 50)] * 3).map(sorted).map(lambda t: quantity(*t))
    return st.fixed_dictionaries(dict.fromkeys(NAMES, triple))


def at_corner(priced, values, bindings):
    return float(evaluate(priced.microseconds, {**bindings, **values}))


def ratio_at(values, before, after, size):
    return at_corner(before, values, {"N": size}) / at_corner(after, values, {"N": size})


def corners(coefficients):
    names = sorted(coefficients)
    ends = [(coefficients[name].low, coefficients[name].high) for name in names]
    for values in product(*ends):
        yield dict(zip(names, values, strict=True))


def middle(coefficients):
    return {name: quantity.value for name, quantity in coefficients.items()}


def affine(weights, constant=0):
    total = num(constant)
    for name, weight in zip(NAMES, weights, strict=True):
        total = total + weight * sym("N") * sym(name)
    return total


weights = st.tuples(*[st.integers(-5, 5)] * 4)
amounts = st.tuples(*[st.integers(0, 5)] * 4)


@given(boxes(-20), weights, st.integers(-50, 50))
@settings(max_examples=60, deadline=None)
def test_ends_of_an_affine_price_are_those_of_all_corners(box, slopes, constant):
    priced = Priced(affine(slopes, constant), (), box)
    estimate = evaluate_price(priced, {"N": 3})
    values = [at_corner(priced, corner, {"N": 3}) for corner in corners(box)]
    expected = min(values), at_corner(priced, middle(box), {"N": 3}), max(values)
    found = estimate.low, estimate.mid, estimate.high
    assert found == pytest.approx([max(0.0, value) * 1e-6 for value in expected])
    assert estimate.low <= estimate.mid <= estimate.high
    assert estimate.in_range == (expected[1] >= 0)


PRODUCTS = [
    "m.a*(3 + m.b*N) + m.c",
    "m.d*(m.a + 8*N*m.b + (N + m.c*2)*m.a) + m.b",
    "m.c*(m.a*N + m.b) + (50 - m.c)*(m.d*N)",
    "if(N < 10, m.a - m.b*m.c, m.d)",
    "sum(i = 1, N, i*m.a*m.b + m.c)",
    "max(m.a*N, m.b*N*2 - m.c, min(m.d, N))",
]


@pytest.mark.parametrize("text", PRODUCTS)
@given(box=boxes(0))
@settings(max_examples=25, deadline=None)
def test_ends_of_a_price_with_products_or_pieces_are_those_of_all_corners(text, box):
    priced = Priced(parse(text) + 10_000_000, (), box)
    estimate = evaluate_price(priced, {"N": 7})
    values = [at_corner(priced, corner, {"N": 7}) for corner in corners(box)]
    assert (estimate.low, estimate.high) == pytest.approx(
        (min(values) * 1e-6, max(values) * 1e-6), rel=1e-12
    )


@given(boxes(0), amounts, amounts, st.integers(1, 30), st.integers(1, 30))
@settings(max_examples=80, deadline=None)
def test_ends_of_a_ratio_are_those_of_all_corners(box, above, below, base, other):
    before, after = Priced(affine(above, base), (), box), Priced(affine(below, other), (), box)
    ratio = compare(before, after, {"N": 2})
    values = [ratio_at(corner, before, after, 2) for corner in corners(box)]
    assert ratio.low == pytest.approx(min(values), rel=1e-12)
    assert ratio.high == pytest.approx(max(values), rel=1e-12)
    assert ratio.low <= ratio.mid <= ratio.high


MIXED = "m.a*(share*3*N + (1 - share)*(m.b*N + m.d)) + m.c"
"""Between two predictions, by a share that nobody knows, with a factor for what a fit missed."""
STAGED = "m.c*N + share*m.d*8*N + m.b"
"""Lines between their bounds."""


@pytest.mark.parametrize(("above", "below"), list(product((MIXED, STAGED), repeat=2)))
@given(box=boxes(1))
@settings(max_examples=40, deadline=None)
def test_ends_of_a_ratio_with_products_are_those_of_all_corners(above, below, box):
    box = {**box, "share": quantity(0, 0.5, 1)}
    before = Priced(parse(above), (), box)
    after = Priced(parse(below) + 1, (), box)
    ratio = compare(before, after, {"N": 2})
    values = [ratio_at(corner, before, after, 2) for corner in corners(box)]
    assert (ratio.low, ratio.high) == pytest.approx((min(values), max(values)), rel=1e-12)


@given(boxes(1))
@settings(max_examples=30, deadline=None)
def test_a_ratio_of_piecewise_prices_holds_all_corners_and_the_middle(box):
    before = Priced(parse("max(m.a*N, m.b) + m.c"), (), box)
    after = Priced(parse("max(m.c*N, m.d)"), (), box)
    ratio = compare(before, after, {"N": 5})
    for point in (*corners(box), middle(box)):
        value = ratio_at(point, before, after, 5)
        assert ratio.low - 1e-12 <= value <= ratio.high + 1e-12


def test_prices_that_disagree_on_a_coefficient_are_refused():
    one, two = (Priced(sym("m.a"), (), {"m.a": quantity(1, 2, high)}) for high in (3, 4))
    with pytest.raises(ExprError, match=r"m\.a"):
        compare(one, two, {})


def test_a_ratio_to_nothing_is_infinite_and_of_nothings_one():
    free, dear = Priced(num(0)), Priced(num(3))
    assert compare(dear, free, {}).mid == math.inf
    assert compare(free, free, {}).mid == 1
    assert compare(free, dear, {}).mid == 0


def test_a_formula_used_where_it_is_negative_is_said_to_be():
    priced = Priced(parse("N - 100 + m.a"), (), {"m.a": quantity(1, 2, 3)})
    estimate = evaluate_price(priced, {"N": 10})
    assert (estimate.low, estimate.mid, estimate.high) == (0, 0, 0)
    assert not estimate.in_range
    assert "negative" in estimate.remarks[0]


def test_an_unbound_or_infinite_size_is_named():
    priced = Priced(parse("N*m.a + P"), (), {"m.a": quantity(1, 2, 3)})
    with pytest.raises(ExprError, match="'P'"):
        evaluate_price(priced, {"N": 1})
    with pytest.raises(ExprError, match="'N'"):
        compare(priced, priced, {"P": 1})
    with pytest.raises(ExprError, match="'P'"):
        crossover(priced, Priced(num(1)), "N", {})
    with pytest.raises(ExprError, match="'N' is not a finite number"):
        evaluate_price(priced, {"N": math.nan, "P": 1})
