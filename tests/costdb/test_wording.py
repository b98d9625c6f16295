"""Numbers and hints as people write and read them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.processes import Transfer
from costdb.records import counted, nearest, read_number


@given(st.integers(-(10**18) + 1, 10**18 - 1))
def test_whole_numbers_are_read_as_they_are_written(number: int) -> None:
    assert read_number(str(number)) == number


@pytest.mark.parametrize("digits", [19, 400, 5000])
def test_what_has_too_many_digits_is_too_large_and_still_a_number(digits: int) -> None:
    assert read_number("9" * digits) == math.inf
    assert read_number("-" + "9" * digits) == -math.inf
    assert read_number("9" * digits + "x") is None


def test_hints_are_the_near_words_or_a_few_of_all() -> None:
    assert nearest("stesp", ["steps", "N"]) == ": nearest is steps"
    assert nearest("Q", ["N", "b"]) == ": known are N, b"
    assert nearest("Q", ["N", "b"], most=1) == ""
    assert nearest("stesp", ["steps", "N", "b"], most=1) == ": nearest is steps"


def test_one_is_no_plural() -> None:
    assert [counted(n, "line") for n in (0, 1, 2)] == ["0 lines", "1 line", "2 lines"]
    assert counted(2, "launch", "launches") == "2 launches"
    assert str(Transfer("halo", 1, 8, 64, 1, 1)) == (
        "halo: 1 element of 8 B each time, on 1 cache line of 64 B"
    )
    assert str(Transfer("halo", 9, 8, 64, 2, 3)) == (
        "halo: 9 elements of 8 B each time, on 2 to 3 cache lines of 64 B"
    )
