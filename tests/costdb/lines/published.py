"""The published bounds on lines of rows and columns, that the general count is held to."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence


def row_bounds(run_bytes: int, line_bytes: int) -> tuple[int, int]:
    """Return the published bounds for whole rows: a contiguous run with an unknown start."""
    fewest = -(-run_bytes // line_bytes)
    return fewest, fewest + 1


def lines_per_period(pitch_bytes: int, width_bytes: int, line_bytes: int) -> tuple[int, int]:
    """Return the period `q` of rows and the lines that one period of a column touches.

    Rows `pitch_bytes` apart start at offsets within a line that repeat every
    ``q = L / gcd(pitch, L)`` rows; from a start on a line boundary, `q` rows of `width_bytes`
    each touch ``q + ceil(width / gcd(pitch, L)) - 1`` lines.
    """
    common = math.gcd(pitch_bytes, line_bytes)
    period = line_bytes // common
    return period, period + -(-width_bytes // common) - 1


def column_bounds(
    rows: int, pitch_bytes: int, width_bytes: int, line_bytes: int
) -> tuple[int, int]:
    """Return the published bounds for columns, `width_bytes` of each of `rows` rows.

    They hold where neighbouring rows share no line, so for a pitch of at least
    ``width_bytes + line_bytes - 1``.
    """
    period, lines = lines_per_period(pitch_bytes, width_bytes, line_bytes)
    return rows // period * lines, -(-rows // period) * (lines + 1)


def enumerate_lines(
    itemsize: int, counts: Sequence[int], pitches: Sequence[int], start: int, line: int
) -> int:
    """Return how many distinct lines a strided block touches, every byte of it looked at."""
    touched = {start}
    for count, pitch in zip(counts, pitches, strict=True):
        touched = {first + i * pitch for first, i in itertools.product(touched, range(count))}
    return len({at // line for one in touched for at in range(one, one + itemsize)})
