"""Lengths of transforms: powers of two, smooth ones, and those that become convolutions."""

from __future__ import annotations

from math import log2

import pytest

from costdb.arrays.transform import padded, passes, planned, sweeps


def is_smooth(number: int) -> bool:
    for factor in (2, 3, 5, 7, 11):
        while number % factor == 0:
            number //= factor
    return number == 1


@pytest.mark.parametrize("exponent", [1, 5, 12, 20])
def test_passes_over_a_power_of_two_are_about_its_logarithm(exponent: int) -> None:
    eights, rest = divmod(exponent, 3)
    assert 3 * eights + rest <= passes(2**exponent) <= 3 * eights + 1.25 * rest


def test_smooth_lengths_take_about_their_logarithm_and_never_less_than_it() -> None:
    for length in filter(is_smooth, range(2, 3000)):
        assert padded(length) is None
        assert planned(length) == (length, 0.0)
        assert log2(length) <= passes(length) <= 2 * log2(length)


def test_passes_of_factors_add_up_where_none_joins_the_other() -> None:
    for one, other in ((9, 35), (8, 27), (64, 25), (3, 121)):
        assert passes(one * other) == pytest.approx(passes(one) + passes(other))
    # twos are taken as eights first
    assert passes(8) < 3 * passes(2)


def test_data_are_gone_over_once_for_each_factor_that_is_taken_out() -> None:
    found = {length: sweeps(length) for length in (8, 512, 1024, 60, 77, 3**5)}
    assert found == {8: 1, 512: 3, 1024: 4, 60: 3, 77: 2, 3**5: 5}
    around = padded(2003)
    assert around is not None
    # there and back, in longer transforms
    assert sweeps(2003) == pytest.approx(2 * sweeps(around) * around / 2003)


def test_long_primes_become_transforms_of_the_least_smooth_length_that_holds_a_convolution() -> (
    None
):
    found = {length: padded(length) for length in (1009, 2003, 4001, 20_011)}
    for length, around in found.items():
        least = 2 * length - 1
        assert around == next(n for n in range(least, 2 * least) if is_smooth(n))
        assert passes(length) > 4 * log2(length)
        # another transform is made with each call
        roots, operations = planned(length)
        assert roots == length + around
        assert operations == pytest.approx(around * passes(around))


def test_short_primes_are_done_pass_by_pass() -> None:
    assert padded(47) is None
    assert padded(97) is None
    # six pairs of a sum and a difference with themselves, three real factors each, and six roots
    assert passes(7) == pytest.approx(6 * 22 / 7 / (12.25 / 3))
