"""Sorts by networks: closed forms against the recursion of a sort on drawn middles."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from costdb.arrays.amounts import compared, network, parted
from costdb.expr import Expr, evaluate, num, sym

N = sym("n")
DRAWS = 60


def at(formula: Expr, length: int) -> float:
    return float(evaluate(formula, {"n": length}))


def bitonic(size: int) -> int:
    """Return the comparisons of a network, merge by merge."""
    if size == 1:
        return 0
    merged, half, parts = 0, size // 2, 1
    while half:
        merged, half, parts = merged + parts * half, half // 2, parts * 2
    return 2 * bitonic(size // 2) + merged


def sort(length: int, largest: int, source: Random) -> tuple[int, int]:
    """Return the comparisons in networks, and elements held against a middle, of one sort."""
    if length <= largest:
        size = max(largest // 32, 1 << (length - 1).bit_length())
        return bitonic(size), 0
    # the middle of a few elements is that of all but for so much
    left = round(length * min(max(source.gauss(0.5, 0.08), 0.05), 0.95))
    one, other = sort(left, largest, source), sort(length - left, largest, source)
    return one[0] + other[0], one[1] + other[1] + length


@pytest.mark.parametrize("size", [1, 8, 64, 256, 512])
def test_a_network_sorts_halves_and_merges_them(size: int) -> None:
    assert network(size) == bitonic(size)


@pytest.mark.parametrize("itemsize_bytes", [8, 4])
def test_what_fits_one_network_is_filled_up_to_a_power_of_two(itemsize_bytes: int) -> None:
    largest = 2048 // itemsize_bytes
    source = Random(0)
    for length in range(2, largest + 1):
        assert at(compared(N, itemsize_bytes), length) == sort(length, largest, source)[0]
        assert at(parted(N, itemsize_bytes), length) == 0


@pytest.mark.parametrize("itemsize_bytes", [8, 4])
@pytest.mark.parametrize("length", [700, 1000, 1500, 3000, 10_000, 50_000])
def test_longer_rows_are_parted_until_networks_hold_them(length: int, itemsize_bytes: int) -> None:
    source = Random(length)
    drawn = [sort(length, 2048 // itemsize_bytes, source) for _ in range(DRAWS)]
    networks, partings = (sum(one) / DRAWS for one in zip(*drawn, strict=True))
    assert at(compared(N, itemsize_bytes), length) == pytest.approx(networks, rel=0.1)
    assert length * at(parted(N, itemsize_bytes), length) == pytest.approx(partings, rel=0.15)


@pytest.mark.parametrize("itemsize_bytes", [8, 4])
def test_longer_rows_never_take_less(itemsize_bytes: int) -> None:
    lengths = [*range(2, 1200), 5000, 5001, 100_000]
    for formula in (compared(N, itemsize_bytes), N * parted(N, itemsize_bytes)):
        found = [at(formula, length) for length in lengths]
        assert all(one <= other for one, other in pairwise(found))


def test_formulas_hold_for_lengths_that_are_known() -> None:
    for length in (5, 100, 256, 257, 4000):
        known = compared(num(length), 8), parted(num(length), 8)
        assert [at(one, 0) for one in known] == pytest.approx(
            [at(compared(N, 8), length), at(parted(N, 8), length)]
        )
