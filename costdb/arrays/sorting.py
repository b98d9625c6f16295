"""What a sort of some length takes, as NumPy's library (x86-simd-sort) does it with wide vectors.

A few hundred elements are sorted by a network of comparisons that depends on nothing but their
number, filled up to a power of two; more are parted around a middle value until a network holds
what is left. Without such vectors the library parts down to a handful of elements: what that
takes goes with the logarithm of the length, and a fit has both.
"""

from __future__ import annotations

from math import log2 as log2_of

from costdb.expr import Expr, less, log2, maximum, num

_SMALLEST_BYTES, _LARGEST_BYTES = 64, 2048
"""A network holds one vector at least, and so much at most."""
_LEFT = 3 / 8, 1.0
"""What is left when the middle was guessed from a few elements, in parts of the largest network."""
_UNEVEN = 1.5
"""Halves are uneven: parting ends as late as for so many times as many elements."""
_SAMPLES = 64


def compared(length: Expr, itemsize_bytes: int) -> Expr:
    """Return the comparisons of networks in a sort of so many elements."""
    smallest, largest = _SMALLEST_BYTES // itemsize_bytes, _LARGEST_BYTES // itemsize_bytes
    total, size = num(network(smallest)), smallest
    while size < largest:
        total = total + (network(2 * size) - network(size)) * less(size, length)
        size *= 2
    beyond = num(_each_left(largest)) * length - network(largest)
    return total + less(largest, length) * beyond


def parted(length: Expr, itemsize_bytes: int) -> Expr:
    """Return how often each of so many elements is held against a middle one."""
    largest = _LARGEST_BYTES // itemsize_bytes
    often = maximum(1, log2(maximum(1, length * _UNEVEN / largest)))
    return less(largest, length) * often


def network(size: int) -> float:
    """Return the comparisons of a bitonic network on a power of two."""
    doublings = log2_of(size)
    return size / 2 * doublings * (doublings + 1) / 2


def _each_left(largest: int) -> float:
    """Return the comparisons for each element of what is left, on average."""
    low, high = _LEFT
    total = 0.0
    for sample in range(_SAMPLES):
        left = largest * (low + (high - low) * (sample + 0.5) / _SAMPLES)
        total += network(largest if left > largest / 2 else largest // 2) / left
    return round(total / _SAMPLES, 2)
