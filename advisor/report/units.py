"""Times and ratios as people read them: three significant digits in the unit that fits."""

from __future__ import annotations

import math
from dataclasses import dataclass

_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))
_SIZES = dict(_UNITS)


def significant(value: float) -> str:
    """Return `value` with three significant digits, without an exponent where it can be read.

    >>> significant(3.1416), significant(31.416), significant(31416.0)
    ('3.14', '31.4', '31416')
    """
    if not math.isfinite(value):
        return "unbounded" if value > 0 else "unknown"
    if value == 0:
        return "0"
    # read off the text: the rounded value may be larger than any number
    size = int(f"{value:.2e}".partition("e")[2])
    if not -4 < size < 9:
        return f"{value:.2e}"
    return f"{value:.{max(0, 2 - size)}f}"


def unit_of(seconds: float) -> str:
    """Return the largest unit in which `seconds` shows at least one."""
    if not math.isfinite(seconds) or seconds == 0:
        return "s"
    rounded = abs(float(f"{seconds:.2e}"))
    # A hair of slack: 1e-3 / 1e-3 need not be 1 in binary.
    return next((unit for unit, size in _UNITS if rounded >= size * (1 - 1e-9)), "ns")


def duration(seconds: float) -> str:
    """Return a time with its unit, such as ``3.12 ms``."""
    unit = unit_of(seconds)
    return f"{significant(seconds / _SIZES[unit])} {unit}"


def change(before: float, after: float) -> str:
    """Return two times, such as ``25.3 -> 20.1 ms``; in units of their own where these differ."""
    first, last = duration(before), duration(after)
    unit = last.partition(" ")[2]
    first = "0" if before == 0 else first.removesuffix(f" {unit}")
    return f"{first} -> {'0' if after == 0 else last}"


@dataclass(frozen=True, slots=True)
class Column:
    """One unit and one number of decimals for all the times of a table."""

    unit: str
    decimals: int

    def number(self, seconds: float) -> str:
        """Return the number of units in `seconds`; one too small to show as ``<0.01``."""
        value = seconds / _SIZES[self.unit]
        if not math.isfinite(value):
            return significant(value)
        text = f"{value:.{self.decimals}f}"
        if value > 0 and float(text) == 0:
            return f"<{10.0**-self.decimals:.{self.decimals}f}"
        return text


def column_for(*seconds: float) -> Column:
    """Return a column that shows the largest time well and the smallest with three digits.

    Times far apart cost the small ones digits: there are at most four decimals.
    """
    finite = [time for time in seconds if math.isfinite(time) and time > 0]
    if not finite:
        return Column("s", 2)
    unit = unit_of(max(finite))
    smallest = float(f"{min(finite) / _SIZES[unit]:.2e}")
    return Column(unit, min(max(2 - math.floor(math.log10(smallest)), 0), 4))


def ratio(value: float) -> str:
    """Return a speed-up such as ``1.25x``."""
    if not math.isfinite(value):
        return significant(value)
    if value >= 1e9:
        return f"{significant(value)}x"
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f}x"


def percent(share: float) -> str:
    """Return a share such as ``20 %``, and a small one as ``0.04 %``."""
    return f"{100 * share:.0f} %" if share >= 0.0095 or share <= 0 else f"{100 * share:.1g} %"
