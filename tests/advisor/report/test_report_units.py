"""Numbers are shown with three digits, in the unit where they read best."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.report.style import column_for, duration, ratio, significant, unit_of

SIZES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@pytest.mark.parametrize(
    "seconds, shown",
    [
        (3.1234e-3, "3.12 ms"),
        (0.99996e-3, "1.00 ms"),
        (999.4e-6, "999 us"),
        (1e-3, "1.00 ms"),
        (1e-6, "1.00 us"),
        (1e-9, "1.00 ns"),
        (5.1e-5, "51.0 us"),
        (2.5e-10, "0.250 ns"),
        (0.0, "0 s"),
        (12345.0, "12345 s"),
        (math.inf, "unbounded s"),
    ],
)
def test_durations(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


@given(st.floats(1e-10, 1e7))
def test_a_duration_read_back_is_within_half_a_percent(seconds: float) -> None:
    number, unit = duration(seconds).split()
    assert float(number) * SIZES[unit] == pytest.approx(seconds, rel=5.1e-3)
    assert unit in ("ns", "s") or 1 <= float(number) < 1000


@given(st.floats(1e-9, 1e3), st.floats(1e-9, 1e3))
def test_a_column_shows_both_ends(one: float, other: float) -> None:
    column = column_for(one, other)
    assert column.unit == unit_of(max(one, other))
    for value in (one, other):
        text = column.number(value)
        if text.startswith("<"):
            assert value < float(text[1:]) * SIZES[column.unit]
        else:
            half = 0.5 * 10.0**-column.decimals
            scaled = value / SIZES[column.unit]
            assert abs(float(text) - scaled) <= half * (1 + 1e-6) + 1e-12 * scaled


def test_ratios() -> None:
    assert [ratio(x) for x in (1.0, 1.254, 9.994, 9.996, 31.26, 99.96, 1234.5)] == [
        "1.00x", "1.25x", "9.99x", "10.0x", "31.3x", "100x", "1234x"
    ]  # fmt: skip
    assert ratio(math.inf) == significant(math.inf) == "unbounded"


def test_the_largest_numbers_have_digits_too() -> None:
    assert significant(1.7976931348623157e308) == "1.80e+308"
    assert duration(1.7976931348623157e308).startswith("1.80e+308")
