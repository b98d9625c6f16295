"""Intervals of prices that several residuals enter: squares of what is independent add."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costdb.estimate import Priced
from costdb.evaluate import compare, evaluate_price
from costdb.expr import num, sym
from costdb.quantity import Provenance, Quantity

CLASSES = ("a", "b", "c")


def residual(low: float, high: float) -> Quantity:
    return Quantity(1.0, low, high, "1", Provenance.MEASURED, "test", independent=True)


def rate(low: float, value: float, high: float) -> Quantity:
    return Quantity(value, low, high, "us", Provenance.MEASURED, "test")


def priced(shares, residuals, rates) -> Priced:
    """Return shares of three classes, each a rate of its own times its residual."""
    total = num(0)
    coefficients = {}
    for name, share in zip(CLASSES, shares, strict=True):
        total = total + share * sym(f"m.{name}") * sym(f"m.{name}.residual")
        coefficients[f"m.{name}"] = rates[name]
        coefficients[f"m.{name}.residual"] = residuals[name]
    return Priced(total, (), coefficients)


shares = st.tuples(*[st.integers(0, 20)] * 3).filter(any)
residuals = st.fixed_dictionaries(
    {
        name: st.tuples(st.floats(0.3, 1.0), st.floats(1.0, 3.0)).map(lambda ends: residual(*ends))
        for name in CLASSES
    }
)
certain = {name: rate(2.0, 2.0, 2.0) for name in CLASSES}
uncertain = {name: rate(1.0, 2.0, 4.0) for name in CLASSES}


@given(shares, residuals)
@settings(max_examples=60, deadline=None)
def test_squares_of_independent_deviations_add(shares, residuals) -> None:
    found = evaluate_price(priced(shares, residuals, certain), {})
    parts = {name: 2e-6 * share for name, share in zip(CLASSES, shares, strict=True)}
    middle = sum(parts.values())
    below = math.hypot(*(parts[name] * (1 - residuals[name].low) for name in CLASSES))
    above = math.hypot(*(parts[name] * (residuals[name].high - 1) for name in CLASSES))
    assert found.mid == pytest.approx(middle)
    assert found.low == pytest.approx(middle - below)
    assert found.high == pytest.approx(middle + above)


@given(shares, residuals)
@settings(max_examples=40, deadline=None)
def test_ends_lie_between_each_deviation_alone_and_all_of_them_together(shares, residuals) -> None:
    price = priced(shares, residuals, uncertain)
    found = evaluate_price(price, {})
    dependent = {
        name: replace(quantity, independent=False) for name, quantity in price.coefficients.items()
    }
    together = evaluate_price(Priced(price.microseconds, (), dependent), {})
    assert together.low <= found.low * (1 + 1e-12)
    assert found.high <= together.high * (1 + 1e-12)
    for name in CLASSES:
        calm = {one: residuals[one] if one == name else residual(1, 1) for one in CLASSES}
        alone = evaluate_price(priced(shares, calm, uncertain), {})
        assert found.low <= alone.low * (1 + 1e-12)
        assert alone.high <= found.high * (1 + 1e-12)


@given(st.integers(1, 20), residuals)
@settings(max_examples=20, deadline=None)
def test_one_class_keeps_its_quantiles_however_often_it_is_called(times, residuals) -> None:
    found = evaluate_price(priced((times, 0, 0), residuals, certain), {})
    assert found.low == pytest.approx(2e-6 * times * residuals["a"].low)
    assert found.high == pytest.approx(2e-6 * times * residuals["a"].high)


@given(shares, shares, residuals)
@settings(max_examples=40, deadline=None)
def test_a_ratio_is_narrower_than_at_its_worst_corner_and_one_of_equals_is_one(
    above, below, residuals
) -> None:
    before, after = priced(above, residuals, certain), priced(below, residuals, certain)
    found = compare(before, after, {})
    dependent = {
        name: replace(quantity, independent=False) for name, quantity in before.coefficients.items()
    }
    together = compare(
        Priced(before.microseconds, (), dependent), Priced(after.microseconds, (), dependent), {}
    )
    assert found.low <= found.mid <= found.high
    assert found.mid == pytest.approx(together.mid)
    assert compare(before, before, {}).high == pytest.approx(1)
