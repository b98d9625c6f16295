"""Exact numbers of distinct cache lines touched by a strided block of memory.

The count falls apart into three steps.

1. Dimensions are normalised: a negative pitch is walked from its other end, a pitch of zero or
   a count of one visits nothing new, and the rest is sorted by pitch.
2. A dimension whose neighbours leave less than one line between them touches every line from
   first to last, whatever the start, so it is replaced by one contiguous run. Dimensions that
   continue (or overlap) the progression of the one inside them join it.
3. What remains is usually *nested*: each dimension steps past everything inside it. Runs then
   share lines only with their direct neighbours, and both the lines of a run and that sharing
   depend on nothing but the address modulo the line size, which repeats along a dimension every
   ``q = L / gcd(pitch, L)`` steps. Counting addresses by residue costs ``O(d * L * q)`` integer
   operations for ``d`` dimensions, at most ``O(d * L**2)``, however large the counts are.

A view whose dimensions interleave (``numpy.lib.stride_tricks`` can make one) gets no such form:
its lines are marked in a bit set, each dimension by doubling, at
``O(d * L * q * span / (64 * L) * log(count))`` word operations for a block that spans `span`
bytes. Dimensions outside the interleaved ones still go by residue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd

Residues = dict[int, int]


@dataclass(frozen=True, slots=True)
class _Dimension:
    count: int
    pitch: int


@dataclass(frozen=True, slots=True)
class _Shape:
    """A normalised block: a contiguous run, repeated along dimensions of growing pitch."""

    shift: int
    run: int
    dimensions: tuple[_Dimension, ...]


def count_lines(
    itemsize_bytes: int,
    counts: Sequence[int],
    pitches_bytes: Sequence[int],
    start_bytes: int,
    line_bytes: int,
) -> int:
    """Count the distinct cache lines that a strided block touches.

    Parameters
    ----------
    itemsize_bytes : int
        Size of one element; every byte of it is touched.
    counts, pitches_bytes : sequence of int
        Elements along each dimension and the distance in memory between neighbours, which may
        be negative, zero, or smaller than an element. No dimension at all is one element.
    start_bytes : int
        Address of the element with index zero in every dimension.
    line_bytes : int
        Size of a cache line; lines begin at its multiples.

    Returns
    -------
    int
        Zero when any count is zero.

    Raises
    ------
    ValueError
        On sizes that are not positive, a negative count, or lengths that differ.
    """
    shape = _normalise(itemsize_bytes, counts, pitches_bytes, line_bytes)
    if shape is None:
        return 0
    return _counter(shape, line_bytes)((start_bytes + shape.shift) % line_bytes)


def line_bounds(
    itemsize_bytes: int,
    counts: Sequence[int],
    pitches_bytes: Sequence[int],
    line_bytes: int,
    alignment_bytes: int | None = None,
) -> tuple[int, int]:
    """Return the fewest and the most lines touched over all starts that alignment allows.

    Parameters
    ----------
    itemsize_bytes, counts, pitches_bytes, line_bytes
        As for :func:`count_lines`.
    alignment_bytes : int, optional
        Starts are its multiples; by default those of the element's size.
    """
    shape = _normalise(itemsize_bytes, counts, pitches_bytes, line_bytes)
    alignment = itemsize_bytes if alignment_bytes is None else alignment_bytes
    if alignment < 1:
        raise ValueError(f"an alignment must be at least 1 byte, got {alignment}")
    if shape is None:
        return 0, 0
    lines = _counter(shape, line_bytes)
    step = gcd(alignment, line_bytes)
    found = [lines((start + shape.shift) % line_bytes) for start in range(0, line_bytes, step)]
    return min(found), max(found)


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
    common = gcd(pitch_bytes, line_bytes)
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


def _normalise(
    itemsize: int, counts: Sequence[int], pitches: Sequence[int], line: int
) -> _Shape | None:
    if itemsize < 1 or line < 1:
        raise ValueError(
            f"an element and a cache line need at least 1 byte, got {itemsize} and {line}"
        )
    if len(counts) != len(pitches):
        raise ValueError(f"{len(counts)} counts need as many pitches, got {len(pitches)}")
    if any(count < 0 for count in counts):
        raise ValueError(f"a count of elements cannot be negative: {min(counts)}")
    if 0 in counts:
        return None
    shift = sum(
        (count - 1) * pitch for count, pitch in zip(counts, pitches, strict=True) if pitch < 0
    )
    walked = sorted(
        (abs(pitch), count)
        for count, pitch in zip(counts, pitches, strict=True)
        if pitch != 0 and count > 1
    )
    run = itemsize
    kept: list[_Dimension] = []
    for pitch, count in walked:
        inner = kept[-1] if kept else None
        if inner is None and pitch < run + line:
            run += (count - 1) * pitch
        elif inner is not None and pitch % inner.pitch == 0 and pitch // inner.pitch <= inner.count:
            joined = (count - 1) * (pitch // inner.pitch) + inner.count
            kept[-1] = _Dimension(joined, inner.pitch)
        else:
            kept.append(_Dimension(count, pitch))
    return _Shape(shift, run, tuple(kept))


def _counter(shape: _Shape, line: int) -> Callable[[int], int]:
    """Return the number of lines as a function of the start's residue."""
    spans = _spans(shape)
    nested_from = 0
    for depth, dimension in enumerate(shape.dimensions):
        if dimension.pitch < spans[depth]:
            nested_from = depth + 1
    core = _Shape(0, shape.run, shape.dimensions[:nested_from])
    marked: dict[tuple[int, int], int] = {}

    def lines_of_core(residue: int) -> int:
        if not core.dimensions:
            return (residue + core.run - 1) // line + 1
        return _mark(core, nested_from, residue, line, marked).bit_count()

    # Addresses relative to the start, by residue; outermost dimension first.
    starts: Residues = {0: 1}
    shared: list[tuple[Residues, int, int]] = []
    for depth in range(len(shape.dimensions) - 1, nested_from - 1, -1):
        dimension, span = shape.dimensions[depth], spans[depth]
        if dimension.pitch < span + line - 1:
            neighbours = _Dimension(dimension.count - 1, dimension.pitch)
            shared.append((_spread(starts, neighbours, line), span, dimension.pitch))
        starts = _spread(starts, dimension, line)

    def lines_from(residue: int) -> int:
        total = sum(
            times * lines_of_core((residue + offset) % line) for offset, times in starts.items()
        )
        for pairs, span, pitch in shared:
            for offset, times in pairs.items():
                first = (residue + offset) % line
                if (first + span - 1) // line == (first + pitch) // line:
                    total -= times
        return total

    return lines_from


def _spans(shape: _Shape) -> list[int]:
    """Return the bytes from first to last of what lies inside each dimension."""
    spans = [shape.run]
    for dimension in shape.dimensions:
        spans.append(spans[-1] + (dimension.count - 1) * dimension.pitch)
    return spans


def _steps(dimension: _Dimension, line: int) -> Iterator[tuple[int, int]]:
    """Yield the distinct offsets of a dimension's first period, and how often each comes back."""
    period = line // gcd(dimension.pitch, line)
    for index in range(min(period, dimension.count)):
        yield index * dimension.pitch, -(-(dimension.count - index) // period)


def _spread(starts: Residues, dimension: _Dimension, line: int) -> Residues:
    spread: Residues = {}
    for offset, times in _steps(dimension, line):
        for start, weight in starts.items():
            residue = (start + offset) % line
            spread[residue] = spread.get(residue, 0) + weight * times
    return spread


def _mark(
    shape: _Shape, depth: int, residue: int, line: int, marked: dict[tuple[int, int], int]
) -> int:
    """Return the touched lines as bits, bit 0 being the line of the start."""
    if depth == 0:
        return (1 << ((residue + shape.run - 1) // line + 1)) - 1
    known = marked.get((depth, residue))
    if known is not None:
        return known
    dimension = shape.dimensions[depth - 1]
    # After one period the same pattern returns, a whole number of lines further on.
    stride = dimension.pitch // gcd(dimension.pitch, line)
    bits = 0
    for offset, times in _steps(dimension, line):
        first = residue + offset
        pattern = _mark(shape, depth - 1, first % line, line, marked)
        bits |= _repeat(pattern, times, stride) << (first // line)
    marked[depth, residue] = bits
    return bits


def _repeat(pattern: int, times: int, stride: int) -> int:
    """Return the union of `times` copies of `pattern`, each `stride` bits above the last."""
    union, done = pattern, 1
    while done < times:
        step = min(done, times - done)
        union |= union << (step * stride)
        done += step
    return union
