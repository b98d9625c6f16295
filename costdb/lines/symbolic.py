"""Closed-form bounds on the cache lines of a region whose sizes are symbols.

The steps are those of :mod:`costdb.lines.symbolic`, over expressions. Where a comparison of two
symbolic sizes decides (does a row pitch leave a whole line free?), the closed form holds both
answers in a conditional; where the structure of the sizes settles it, only the right one.

With ``L`` the line, ``g = gcd(pitch, L)`` and ``q = L/g``, runs of `w` bytes a `pitch` apart
each touch ``ceil(w/L)`` lines, and one more when they straddle a boundary. Of `q` consecutive
runs, which start at all residues congruent modulo `g`, exactly ``((w-1) mod L + r) div g``
straddle one, where ``r = start mod g``: for ``r = 0`` this is the published count
``q + ceil(w/g) - 1`` for `q` rows. The two bounds follow from the extremes of `r`, which
alignment limits to ``g - alignment``.

Symbols stand for whole numbers that are not negative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from costdb.expr import (
    ONE,
    ZERO,
    Expr,
    ceil_div,
    conditional,
    evaluate,
    floor_div,
    free_symbols,
    gcd,
    less,
    less_equal,
    maximum,
    minimum,
    num,
    summation,
)
from costdb.expr.functions import Gcd, Max, Min
from costdb.expr.nodes import Add, CeilDiv, FloorDiv, Mod, Mul, Num, Pow, Sym, split_coefficient
from costdb.records import dataclass
from costdb.work import Region

# Exact numbers of distinct cache lines touched by a strided block of memory.
#
# The count falls apart into three steps.
#
# 1. Dimensions are normalised: a negative pitch is walked from its other end, a pitch of zero or
# a count of one visits nothing new, and the rest is sorted by pitch.
# 2. A dimension whose neighbours leave less than one line between them touches every line from
# first to last, whatever the start, so it is replaced by one contiguous run. Dimensions that
# continue (or overlap) the progression of the one inside them join it.
# 3. What remains is usually *nested*: each dimension steps past everything inside it. Runs then
# share lines only with their direct neighbours, and both the lines of a run and that sharing
# depend on nothing but the address modulo the line size, which repeats along a dimension every
# ``q = L / gcd(pitch, L)`` steps. Counting addresses by residue costs ``O(d * L * q)`` integer
# operations for ``d`` dimensions, at most ``O(d * L**2)``, however large the counts are.
#
# A view whose dimensions interleave (``numpy.lib.stride_tricks`` can make one) gets no such form:
# its bytes are marked in a bit set, each dimension by doubling, at
# ``O(d * span / 64 * log(count))`` word operations for a block that spans `span` bytes. Dimensions
# outside the interleaved ones still go by residue.

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
    step = math.gcd(alignment, line_bytes)
    found = [lines((start + shape.shift) % line_bytes) for start in range(0, line_bytes, step)]
    return min(found), max(found)


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

    def lines_of_core(residue: int) -> int:
        if not core.dimensions:
            return (residue + core.run - 1) // line + 1
        return _marked(core, residue, line)

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
    period = line // math.gcd(dimension.pitch, line)
    for index in range(min(period, dimension.count)):
        yield index * dimension.pitch, -(-(dimension.count - index) // period)


def _spread(starts: Residues, dimension: _Dimension, line: int) -> Residues:
    spread: Residues = {}
    for offset, times in _steps(dimension, line):
        for start, weight in starts.items():
            residue = (start + offset) % line
            spread[residue] = spread.get(residue, 0) + weight * times
    return spread


def _marked(shape: _Shape, residue: int, line: int) -> int:
    """Count the lines of a block that interleaves, every byte of it being marked in a bit set."""
    bits = ((1 << shape.run) - 1) << residue
    for dimension in shape.dimensions:
        bits = _repeat(bits, dimension.count, dimension.pitch)
    covered = 1
    while covered < line:
        # a bit stands for the bytes from its own place on
        step = min(covered, line - covered)
        bits |= bits >> step
        covered += step
    lines = bits.bit_length() // line + 1
    first_of_each = ((1 << line * lines) - 1) // ((1 << line) - 1)
    return (bits & first_of_each).bit_count()


def _repeat(pattern: int, times: int, stride: int) -> int:
    """Return the union of `times` copies of `pattern`, each `stride` bits above the last."""
    union, done = pattern, 1
    while done < times:
        step = min(done, times - done)
        union |= union << (step * stride)
        done += step
    return union


Bounds = tuple[Expr, Expr]
_Dimensions = list[tuple[Expr, Expr]]


@lru_cache(maxsize=1024)
def region_line_bounds(
    region: Region, line_bytes: int, alignment_bytes: int | None = None
) -> Bounds:
    """Return lower and upper bounds on the distinct lines that a region touches.

    Parameters
    ----------
    region : Region
        Where its start is unknown, the bounds hold for every start that alignment allows.
    line_bytes : int
        Size of a cache line.
    alignment_bytes : int, optional
        What every start is a multiple of; by default the element's size.

    Returns
    -------
    tuple of Expr
        Equal, and exact, when everything is a constant and the start is known, and for one run
        or equally spaced runs with a known start; otherwise they bracket the exact count.
    """
    alignment = region.itemsize_bytes if alignment_bytes is None else alignment_bytes
    constant = _constant_bounds(region, line_bytes, alignment)
    if constant is not None:
        return constant
    if ZERO in region.counts:
        return ZERO, ZERO
    start = region.start_bytes
    aligned = gcd(alignment, line_bytes)
    dimensions: _Dimensions = []
    for count, pitch in zip(region.counts, region.pitches_bytes, strict=True):
        if count == ONE or pitch == ZERO:
            continue
        # Offsets along any dimension keep the addresses aligned to its pitch at best.
        aligned = _common_divisor(pitch, aligned)
        size = magnitude(pitch)
        if start is not None and size != pitch:
            start = start + (count - 1) * minimum(pitch, 0)
        dimensions.append((count, size))
    if start is not None:
        aligned = _common_divisor(start, aligned)
    block = _Block(num(line_bytes), aligned, start)
    lower, upper = block.bounds(num(region.itemsize_bytes), by_pitch(dimensions))
    unknown = [count for count in dict.fromkeys(region.counts) if not isinstance(count, Num)]
    if unknown:
        filled = less(0, minimum(*unknown))
        return conditional(filled, lower, 0), conditional(filled, upper, 0)
    return lower, upper


class _Block:
    """Bounds for blocks in memory with the same line, alignment and start."""

    __slots__ = ("aligned", "line", "start")

    def __init__(self, line: Expr, aligned: Expr, start: Expr | None) -> None:
        self.line = line
        self.aligned = aligned
        self.start = start

    def bounds(self, run: Expr, dimensions: _Dimensions) -> Bounds:
        """Bound the lines of a run repeated along dimensions of growing pitch."""
        if not dimensions:
            return self._one_run(run)
        (count, pitch), outer = dimensions[0], dimensions[1:]
        # Less than a line lies between neighbours: every line from first to last is touched.
        dense = less(pitch, run + self.line)
        if dense == ONE:
            return self.bounds(_repeated(run, count, pitch), outer)
        sparse = self._nested(run, dimensions)
        if dense == ZERO:
            return sparse
        merged = self.bounds(_repeated(run, count, pitch), outer)
        return conditional(dense, merged[0], sparse[0]), conditional(dense, merged[1], sparse[1])

    def _one_run(self, run: Expr) -> Bounds:
        if self.start is not None:
            last = floor_div(self.start % self.line + run - 1, self.line)
            return last + 1, last + 1
        farthest = self.line - self.aligned
        return ceil_div(run, self.line), floor_div(farthest + run - 1, self.line) + 1

    def _nested(self, run: Expr, dimensions: _Dimensions) -> Bounds:
        """Bound runs that leave at least a line between them, in outer dimensions too."""
        joined = _join_continued(dimensions)
        lower, upper = self._runs(run, *joined[0], exact=len(joined) == 1)
        (count, pitch), outer = joined[0], joined[1:]
        span = _repeated(run, count, pitch)
        for times, stride in outer:
            apart = less_equal(count * pitch, stride)
            if apart == ONE:
                lower, upper = times * lower, times * upper
            else:
                clear = less_equal(span + self.line - 1, stride)
                ordered = less_equal(span, stride)
                # Neighbours may share one line where they come close, any where they interleave.
                close = conditional(ordered, times * (lower - 1) + 1, lower)
                lower = conditional(apart, times * lower, conditional(clear, times * lower, close))
                whole = self._one_run(_repeated(span, times, stride))[1]
                upper = conditional(apart, times * upper, minimum(times * upper, whole))
            span = _repeated(span, times, stride)
            count, pitch = times, stride
        return lower, upper

    def _runs(self, run: Expr, count: Expr, pitch: Expr, *, exact: bool) -> Bounds:
        """Bound (or, given the start, count) equally spaced runs that share no line."""
        line = self.line
        if less_equal(run, self.aligned) == ONE:
            # Within one aligned unit, a run cannot straddle a boundary.
            return count, count
        common = _common_divisor(pitch, line)
        period = line / common if isinstance(common, Num) else floor_div(line, common)
        beyond = _remainder(run - 1, line)
        fewest = count * ceil_div(run, line)
        groups = count if period == ONE else floor_div(count, period)
        left = ZERO if period == ONE else count % period
        if self.start is not None and exact:
            start = self.start
            straddling = floor_div(beyond + start % common, common)
            index = _unused_name(run, count, pitch, start)
            position = start + Sym(index) * pitch
            rest = summation(index, 0, left - 1, floor_div(position % line + beyond, line))
            total = fewest + groups * straddling + rest
            return total, total
        least = floor_div(beyond, common)
        most = floor_div(beyond + common - self.aligned, common)
        lower = fewest + groups * least + maximum(0, left + least - period)
        upper = fewest + groups * most + minimum(left, most)
        return lower, upper


def _repeated(run: Expr, count: Expr, pitch: Expr) -> Expr:
    """Return the bytes from first to last of `count` runs."""
    return count * run if pitch == run else run + (count - 1) * pitch


def _constant_bounds(region: Region, line_bytes: int, alignment: int) -> Bounds | None:
    sizes = (*region.counts, *region.pitches_bytes)
    if not all(isinstance(size, Num) for size in sizes):
        return None
    # a slice that begins behind its end holds nothing
    counts = [max(0, int(evaluate(count, {}))) for count in region.counts]
    pitches = [int(evaluate(pitch, {})) for pitch in region.pitches_bytes]
    if region.start_bytes is None:
        lower, upper = line_bounds(region.itemsize_bytes, counts, pitches, line_bytes, alignment)
        return num(lower), num(upper)
    if isinstance(region.start_bytes, Num):
        start = int(evaluate(region.start_bytes, {}))
        exact = num(count_lines(region.itemsize_bytes, counts, pitches, start, line_bytes))
        return exact, exact
    return None


def by_pitch(dimensions: _Dimensions) -> _Dimensions:
    """Sort by pitch; where only sizes can tell, exchange neighbours by conditionals."""
    ordered = list(dimensions)
    for end in range(len(ordered) - 1, 0, -1):
        for i in range(end):
            (count_a, pitch_a), (count_b, pitch_b) = ordered[i], ordered[i + 1]
            if _certainly_at_most(pitch_a, pitch_b):
                continue
            if _certainly_at_most(pitch_b, pitch_a):
                ordered[i], ordered[i + 1] = ordered[i + 1], ordered[i]
                continue
            sorted_already = less_equal(pitch_a, pitch_b)
            ordered[i] = (
                conditional(sorted_already, count_a, count_b),
                minimum(pitch_a, pitch_b),
            )
            ordered[i + 1] = (
                conditional(sorted_already, count_b, count_a),
                maximum(pitch_a, pitch_b),
            )
    return ordered


def _join_continued(dimensions: _Dimensions) -> _Dimensions:
    """Join dimensions that go on exactly where the one inside them ends."""
    joined = dimensions[:1]
    for count, pitch in dimensions[1:]:
        inner_count, inner_pitch = joined[-1]
        if pitch == inner_count * inner_pitch:
            joined[-1] = (count * inner_count, inner_pitch)
        else:
            joined.append((count, pitch))
    return joined


def _is_multiple(size: Expr, unit: Expr) -> bool:
    ratio = size / unit
    return ratio.is_whole(free_symbols(ratio))


def _certainly_at_most(small: Expr, large: Expr) -> bool:
    return less_equal(small, large) == ONE or (
        # A multiple that is zero visits nothing new, so its place in the order is free.
        _is_multiple(large, small) and _is_nonnegative(large / small)
    )


def _common_divisor(size: Expr, unit: Expr) -> Expr:
    if isinstance(unit, Num) and _is_multiple(size, unit):
        return unit
    return gcd(size, unit)


def _remainder(size: Expr, unit: Expr) -> Expr:
    return ZERO if _is_multiple(size, unit) else size % unit


def magnitude(pitch: Expr) -> Expr:
    """Return the absolute value of a pitch, without a maximum where its sign is known."""
    coefficient, rest = split_coefficient(pitch)
    if isinstance(pitch, Num):
        return pitch if pitch.value >= 0 else -pitch
    if _is_nonnegative(rest):
        return -pitch if coefficient < 0 else pitch
    return maximum(pitch, -pitch)


def _is_nonnegative(size: Expr) -> bool:
    """Tell whether a size cannot be negative, from its structure."""
    match size:
        case Num(value):
            return value >= 0
        case Sym():
            return True
        case Add(terms, constant):
            return constant >= 0 and _all_nonnegative(terms)
        case Mul(factors, coefficient):
            return coefficient >= 0 and _all_nonnegative(factors)
        case Min(args):
            return _all_nonnegative(args)
        case Max(args):
            return any(map(_is_nonnegative, args))
        case Gcd():
            return True
        case Pow(base, _):
            return _is_nonnegative(base)
        case FloorDiv(dividend, divisor) | CeilDiv(dividend, divisor):
            return _is_nonnegative(dividend) and _is_nonnegative(divisor)
        case Mod(_, divisor):
            return _is_nonnegative(divisor)
        case _:
            return False


def _all_nonnegative(sizes: Sequence[Expr]) -> bool:
    return all(map(_is_nonnegative, sizes))


def _unused_name(*sizes: Expr) -> str:
    used = frozenset[str]().union(*map(free_symbols, sizes))
    name = "row"
    while name in used:
        name += "_"
    return name
