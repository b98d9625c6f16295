"""Sizes to measure at, and how often to repeat what is short."""

from __future__ import annotations

import math

# A clock's tick and a barrier's skew are small beside a sample so long.
SAMPLE_US = 100.0


def spread_sizes(low: int, high: int, count: int, unit: int = 8) -> list[int]:
    """Return `count` sizes from `low` to `high`, evenly spaced in their logarithm.

    They are multiples of `unit` bytes, and not powers of two but by chance.
    """
    ratio = math.log(high / low)
    sizes = (low * math.exp(ratio * number / (count - 1)) for number in range(count))
    return [max(unit, round(size / unit) * unit) for size in sizes]


def repetitions(guess_us: float) -> int:
    """Return how often to repeat what takes about so long, for a sample that can be timed."""
    return max(1, round(SAMPLE_US / guess_us))
