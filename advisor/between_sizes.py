"""Times between two sizes at which something was measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

Sizes = Mapping[str, int | float]
Times = tuple[float, float, float]
"""The least, the typical and the greatest seconds."""
_SURE = 0.05
"""How far a time between two sizes may be from a power law through them, at least."""


def between(
    points: Iterable[tuple[Sizes, Times]], sizes: Sizes
) -> tuple[Times, tuple[float, float], str] | None:
    """Return times between two sizes that were measured, by a power law through them.

    Where a size before or behind them was measured too, the law through these says how far the
    time may be off: the bend between two slopes may lie anywhere between the sizes.

    Parameters
    ----------
    points : iterable of (sizes, times)
        What was measured, in seconds.
    sizes : mapping of str to number

    Returns
    -------
    (Times, (float, float), str) or None
        The times, the sizes around, and which size it is. None where not exactly one size
        differs, or none was measured on both sides.
    """
    lines: dict[str, dict[float, Times]] = {}
    for known, times in points:
        other = [name for name in sizes if known.get(name) != sizes[name]]
        if len(other) == 1 and known.keys() == sizes.keys() and times[0] > 0:
            lines.setdefault(other[0], {})[known[other[0]]] = times
    for name, measured in lines.items():
        at, order = float(sizes[name]), sorted(measured)
        for number, (low, high) in enumerate(pairwise(order)):
            if low < at < high:
                near = order[max(number - 1, 0) : number + 3]
                return _law(measured, near, low, high, at), (low, high), name
    return None


def _law(
    measured: Mapping[float, Times], near: Sequence[float], low: float, high: float, at: float
) -> Times:
    def along(one: float, other: float, end: int) -> float:
        left, right = measured[one][end], measured[other][end]
        slope = math.log(right / left) / math.log(other / one)
        return left * math.exp(slope * math.log(at / one))

    least, mid, most = (along(low, high, end) for end in range(3))
    bends = [along(*pair, 1) / mid for pair in pairwise(near) if pair != (low, high)]
    inside = [bend for bend in bends if measured[low][1] <= bend * mid <= measured[high][1]]
    return least * (1 - _SURE) * min([1.0, *inside]), mid, most * (1 + _SURE) * max([1.0, *inside])
