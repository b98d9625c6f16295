"""Closed-form bounds on the distinct cache lines of a strided block of memory.

Dimensions are sorted by pitch. One whose neighbours leave less than a line between them touches
every line from first to last, so that it is one contiguous run; one that goes on where the one
inside it ends joins it. Where a comparison of two symbolic sizes decides (does a row pitch leave a
whole line free?), the closed form holds both answers in a conditional; where the structure of the
sizes settles it, only the right one.

With ``L`` the line, ``g = gcd(pitch, L)`` and ``q = L/g``, runs of `w` bytes a `pitch` apart
each touch ``ceil(w/L)`` lines, and one more when they straddle a boundary. Of `q` consecutive
runs, which start at all residues congruent modulo `g`, exactly ``((w-1) mod L + r) div g``
straddle one, where ``r = start mod g``: for ``r = 0`` this is the published count
``q + ceil(w/g) - 1`` for `q` rows. The two bounds follow from the extremes of `r`, which
alignment limits to ``g - alignment``.

Symbols stand for whole numbers that are not negative."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from costdb.expr import (
    ONE,
    ZERO,
    Expr,
    ceil_div,
    conditional,
    floor_div,
    free_symbols,
    gcd,
    less,
    less_equal,
    maximum,
    minimum,
    num,
)
from costdb.expr.functions import Gcd, Max, Min
from costdb.expr.nodes import Add, CeilDiv, FloorDiv, Mod, Mul, Num, Pow, Sym, split_coefficient
from costdb.records import dataclass
from costdb.work import Region

Bounds = tuple[Expr, Expr]
_Dimensions = list[tuple[Expr, Expr]]


@lru_cache(maxsize=1024)
def region_line_bounds(region: Region, line_bytes: int) -> Bounds:
    """Return lower and upper bounds on the distinct lines that a region touches.

    Both hold for every start that the element's size allows; of one run, and of equally spaced
    runs, some start attains each.

    Parameters
    ----------
    region : Region
    line_bytes : int
        Size of a cache line.
    """
    # a slice that begins behind its end holds nothing
    if any(less_equal(count, 0) == ONE for count in region.counts):
        return ZERO, ZERO
    aligned = gcd(region.itemsize_bytes, line_bytes)
    dimensions: _Dimensions = []
    for count, pitch in zip(region.counts, region.pitches_bytes, strict=True):
        if count == ONE or pitch == ZERO:
            continue
        # Offsets along any dimension keep the addresses aligned to its pitch at best.
        aligned = _common_divisor(pitch, aligned)
        dimensions.append((count, magnitude(pitch)))
    block = _Block(num(line_bytes), aligned)
    lower, upper = block.bounds(num(region.itemsize_bytes), by_pitch(dimensions))
    unknown = [count for count in dict.fromkeys(region.counts) if not isinstance(count, Num)]
    if unknown:
        filled = less(0, minimum(*unknown))
        return conditional(filled, lower, 0), conditional(filled, upper, 0)
    return lower, upper


@dataclass(frozen=True, slots=True)
class _Block:
    """Bounds for blocks in memory with the same line and alignment."""

    line: Expr
    aligned: Expr

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
        farthest = self.line - self.aligned
        return ceil_div(run, self.line), floor_div(farthest + run - 1, self.line) + 1

    def _nested(self, run: Expr, dimensions: _Dimensions) -> Bounds:
        """Bound runs that leave at least a line between them, in outer dimensions too."""
        (count, pitch), *outer = _join_continued(dimensions)
        lower, upper = self._runs(run, count, pitch)
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

    def _runs(self, run: Expr, count: Expr, pitch: Expr) -> Bounds:
        """Bound equally spaced runs that share no line."""
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
        least = floor_div(beyond, common)
        most = floor_div(beyond + common - self.aligned, common)
        lower = fewest + groups * least + maximum(0, left + least - period)
        upper = fewest + groups * most + minimum(left, most)
        return lower, upper


def _repeated(run: Expr, count: Expr, pitch: Expr) -> Expr:
    """Return the bytes from first to last of `count` runs."""
    return count * run if pitch == run else run + (count - 1) * pitch


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
