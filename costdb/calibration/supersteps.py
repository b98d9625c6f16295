"""Good and Bad supersteps with real threads: the ends of the SMP interval model.

A superstep copies in, then copies out, with a barrier between, so that the processor that reads
most and the one that writes most need not be the same. In the Good family a processor reads and
writes consecutive elements of its own, again and again; in the Bad family every access is on
another line, far from the last one in memory beyond all caches, which another processor used last.

Predictions use the published form ``HrHwM`` made continuous: accesses count at the rate of the
cache level that they fall in. No coefficient is negative, so that a prediction never falls with
the accesses. Every other superstep is kept from the fit; the error there is what is published.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import lru_cache

import numpy as np
from numba import njit, prange, set_num_threads
from numpy.typing import NDArray

from costdb.calibration.fitting import (
    Columns,
    cache_levels,
    feature,
    fit_and_judge,
    held_out,
    named,
    repetition,
    residual_of_all,
)
from costdb.calibration.section import (
    Action,
    Effort,
    Fitted,
    Host,
    Need,
    Point,
    Quality,
    Section,
    Timing,
    World,
)
from costdb.machines import Json, measured
from costdb.pricing import THREADS

ELEMENT_BYTES = 8
LEAST_H = 5_000
GREATEST_H = 1_900_000


class Kind(StrEnum):
    """Who reads and who writes: processors as drawn, or all alike."""

    LIKE_GATHER = "like-gather"
    LIKE_SCATTER = "like-scatter"
    VARY = "vary"


Plan = tuple[tuple[int, ...], tuple[int, ...]]
"""Elements that each processor reads, and that it writes."""


def make_plan(kind: Kind, h: int, draw: int, processors: int) -> Plan:
    """Return a superstep in which the busiest processor has `h` accesses of a side.

    In draw 0 it alone is busy; in others the rest have fewer accesses, drawn the same way
    everywhere: ranks and launches must time the same.
    """
    source = random.Random(f"{kind.value} {h} {draw} {processors}")
    some = (h, *(source.randint(0, h) if draw else 0 for _ in range(processors - 1)))
    share, rest = divmod(sum(some), processors)
    every = (share + 1,) * rest + (share,) * (processors - rest)
    match kind:
        case Kind.LIKE_GATHER:
            return some, every
        case Kind.LIKE_SCATTER:
            return every, some
        case Kind.VARY:
            return some, some


GOOD, BAD = "good", "bad"
_DRAWS = 3
_HEIGHTS = {Effort.FULL: (12, GREATEST_H), Effort.QUICK: (6, 600_000)}
"""How many sizes, evenly spaced by ratio, and up to which."""


def _points(effort: Effort, processors: int, host: Host) -> Sequence[Point]:
    """Return supersteps of both families; none where there are no two cores."""
    count, most = _HEIGHTS[effort]
    heights = np.geomspace(LEAST_H, most, count).round().astype(int).tolist()
    return [
        _point(family, kind, h, draw, threads, (number + turn + draw) % 2 == 1)
        for threads in sorted({2, processors})
        if 2 <= threads <= processors
        for family in (GOOD, BAD)
        for turn, kind in enumerate(Kind)
        for number, h in enumerate(heights)
        for draw in range(_DRAWS)
    ]


def _point(family: str, kind: Kind, h: int, draw: int, processors: int, kept: bool) -> Point:
    reads, writes = make_plan(kind, h, draw, processors)
    features: Mapping[str, int | str] = {
        "family": family,
        "kind": kind.value,
        "h": h,
        "draw": draw,
        "processors": processors,
        "hr": max(reads),
        "hw": max(writes),
        "accesses": sum(reads) + sum(writes),
        "dtype": "i8",
    }
    return Point(_operation(family, processors), features, kept)


def _operation(family: str, processors: int) -> str:
    return f"superstep.{family}.p{processors}"


def _action(point: Point, world: World) -> Action:
    """Return the superstep; its first run, a warm-up, compiles or loads it."""

    given = point.features
    sizes = (int(given[name]) for name in ("h", "draw", "processors"))
    reads, writes = make_plan(Kind(str(given["kind"])), *sizes)
    if given["family"] == GOOD:
        return Action(Near(reads, writes))
    far = Far(reads, writes, cache_levels(world.host)[-1])
    return Action(far, before=far.move)


_LEAST_SAMPLES = 6
_COUNTS = {"ghr": "hr", "ghw": "hw", "gM": "accesses"}


def _columns(timings: Sequence[Timing], limits: Sequence[int]) -> Columns:
    """Return what the coefficients count in each superstep, reads and writes by cache level."""
    given = {key: feature(timings, name) for key, name in _COUNTS.items()}
    edges = (0.0, *map(float, limits), np.inf)
    levels = {
        f"{key}{number}": np.clip(given[key] - low, 0.0, high - low)
        for key in ("ghr", "ghw")
        for number, (low, high) in enumerate(itertools.pairwise(edges))
    }
    return {"L": np.ones(len(timings)), "gM": given["gM"], **levels}


def _fit(ours: Sequence[Timing], limits: Sequence[int]) -> tuple[dict[str, Json], Quality]:
    """Fit one family with one number of processors, its accesses by cache level."""
    name = ours[0].point.operation if ours else "supersteps"
    kept = held_out(ours)
    if min((~kept).sum(), kept.sum()) < _LEAST_SAMPLES:
        raise ValueError(f"{name}: too few supersteps were measured")
    found, quality = fit_and_judge(ours, _columns(ours, limits))
    document: dict[str, Json] = {
        key: measured(value, "us" if key == "L" else "us/element") for key, value in found.items()
    }
    return document, quality


_NOTE = (
    "Supersteps: numba's threads, 8-byte elements; a barrier parts reads from writes, and "
    "launching the threads is part of the start-up. Bad accesses are each on another line beyond "
    "all caches that another processor used last; no two processors are at one line at once."
)


def _fitted(timings: Sequence[Timing], host: Host) -> Fitted:
    """Fit both families for all processor counts and return the section.

    Raises
    ------
    ValueError
        A family was hardly measured.
    """
    counts = sorted({int(timing.point.features["processors"]) for timing in timings})
    if not counts:
        raise ValueError("supersteps need two cores")
    heights = [int(timing.point.features["h"]) for timing in timings]
    # of two sides one may stay within a cache that the larger one leaves
    least = min(min(feature(timings, name)) for name in ("hr", "hw"))
    ends = [size // ELEMENT_BYTES for size in cache_levels(host)]
    reached = [one for one in ends if least < one < max(heights)]
    levels: dict[str, Json] = {}
    qualities: list[Quality] = []
    tested: list[Timing] = []
    # far accesses are beyond all caches, however few they are
    for family, limits in ((GOOD, reached), (BAD, [])):
        fitted: dict[str, Json] = {"limits": [*limits]}
        for n in counts:
            ours = named(timings, _operation(family, n))
            fitted[f"p{n}"], quality = _fit(ours, limits)
            qualities.append(quality)
            tested += [timing for timing in ours if timing.point.held_out]
        levels[family] = fitted
    stated: dict[str, Json] = {
        "element_bytes": measured(ELEMENT_BYTES, "byte"),
        "residual": residual_of_all(tested, qualities),
        "range": {"h": [min(heights), max(heights)]},
        "levels": levels,
    }
    parts: dict[str, Json] = {"smp": stated, **repetition(THREADS, tested)}
    return Fitted(parts, tuple(qualities), (_NOTE,))


SECTION = Section(
    "supersteps",
    "shared memory: near and far supersteps of threads",
    frozenset((Need.NUMBA,)),
    _points,
    _action,
    _fitted,
)


# --- superstep kernels ----------------------------------------------------------------------------
# Supersteps with real threads: what each processor reads and writes, near or far; needs numba.
#
# Near accesses follow one another in memory of the processor's own, which stays in its cache from
# one superstep to the next. Far ones are what caches cannot help with: each is on another line, in
# an order that no prefetcher foresees, of memory that is several times the last cache's and that
# another processor used last. What a processor writes are other lines than it has just read: those
# are in its own cache as long as they are few, and the first writes of a superstep then took a
# third of what later ones took. Processors stay apart at any one time: those that fight for a line
# at the same moment take from once to five times as long from one run to the next, by who comes
# first, which is no function of how many accesses there are.


LINE_BYTES = 64

Numbers = NDArray[np.int64]

_INT64_BYTES = np.dtype(np.int64).itemsize
ELEMENTS_IN_LINE = LINE_BYTES // _INT64_BYTES
_GOLDEN = (math.sqrt(5) - 1) / 2
_LARGEST_ARENA_BYTES = 512 << 20


@njit(parallel=True, cache=True)  # type: ignore[untyped-decorator]
def _near(shared: Numbers, reads: Numbers, writes: Numbers, between: int, sums: Numbers) -> None:
    for processor in prange(reads.size):
        first = processor * between
        total = np.int64(0)
        for k in range(reads[processor]):
            total += shared[first + k]
        # One line for each processor, so that the sums are not fought over.
        sums[processor * ELEMENTS_IN_LINE] = total
    for processor in prange(reads.size):
        first = processor * between
        for k in range(writes[processor]):
            shared[first + k] = k


@njit(parallel=True, cache=True)  # type: ignore[untyped-decorator]
def _far(
    arena: Numbers,
    reads: Numbers,
    writes: Numbers,
    lines: int,
    hop: int,
    start: int,
    middle: int,
    turn: int,
    sums: Numbers,
) -> None:
    for processor in prange(reads.size):
        first = (processor + turn) % reads.size * lines
        line, total = start, np.int64(0)
        for _ in range(reads[processor]):
            total += arena[(first + line) * ELEMENTS_IN_LINE]
            line += hop
            if line >= lines:
                line -= lines
        sums[processor * ELEMENTS_IN_LINE] = total
    for processor in prange(reads.size):
        first = (processor + turn) % reads.size * lines
        line = middle
        for k in range(writes[processor]):
            arena[(first + line) * ELEMENTS_IN_LINE] = k
            line += hop
            if line >= lines:
                line -= lines


class Near:
    """A superstep of the Good family: all copy in, then all copy out.

    Parameters
    ----------
    reads, writes : tuple of int
        Elements of each processor.
    """

    def __init__(self, reads: tuple[int, ...], writes: tuple[int, ...]) -> None:
        most = max(*reads, *writes)
        self.threads = len(reads)
        # Whole lines between processors, so that none touches another's.
        self.between = -(-most // ELEMENTS_IN_LINE) * ELEMENTS_IN_LINE
        self.shared = _on_lines(self.between * self.threads)
        self.sums = _on_lines(self.threads * ELEMENTS_IN_LINE)
        self._reads, self._writes = np.array(reads), np.array(writes)

    def __call__(self) -> None:
        """Do all reads and writes, each processor in its own thread, and wait for all."""
        set_num_threads(self.threads)
        _near(self.shared, self._reads, self._writes, self.between, self.sums)


class Far:
    """A superstep of the Bad family.

    Parameters
    ----------
    reads, writes : tuple of int
        Elements of each processor.
    beyond_bytes : int
        What lies beyond all caches. The arena is twice as large, within reason.

    Notes
    -----
    A processor's accesses go on where the superstep before ended, in the share of the arena that
    its neighbour had then; the writes go on behind the reads.
    """

    def __init__(self, reads: tuple[int, ...], writes: tuple[int, ...], beyond_bytes: int) -> None:
        self.threads = len(reads)
        self.arena = _arena(min(2 * beyond_bytes, _LARGEST_ARENA_BYTES))
        self.lines = self.arena.size // ELEMENTS_IN_LINE // self.threads
        self.sums = _on_lines(self.threads * ELEMENTS_IN_LINE)
        # Not where the last superstep of another plan began, whose lines may still be near.
        self.start, self.turn = random.randrange(self.lines), 0
        self._hop = _hop(self.lines)
        self._most_reads, self._most_writes = max(reads), max(writes)
        self._reads, self._writes = np.array(reads), np.array(writes)

    @property
    def middle(self) -> int:
        """The line behind the last one that any processor reads: there they begin to write."""
        return (self.start + self._most_reads * self._hop) % self.lines

    def move(self) -> None:
        """Go on to lines that were not used lately, and last by another processor."""
        self.start = (self.middle + self._most_writes * self._hop) % self.lines
        self.turn = (self.turn + 1) % self.threads

    def __call__(self) -> None:
        """Do all reads and writes, each processor in its own thread, and wait for all."""
        set_num_threads(self.threads)
        _far(
            self.arena,
            self._reads,
            self._writes,
            self.lines,
            self._hop,
            self.start,
            self.middle,
            self.turn,
            self.sums,
        )


def _hop(lines: int) -> int:
    """Return a step around so many lines that comes to all of them, far from one another."""
    hop = max(1, round(lines * _GOLDEN))
    while math.gcd(hop, lines) > 1:
        hop += 1
    return hop


@lru_cache(maxsize=1)
def _arena(size_bytes: int) -> Numbers:
    # One for all points: fresh memory would be timed for its page faults.
    return _on_lines(size_bytes // _INT64_BYTES)


def _on_lines(elements: int) -> Numbers:
    raw = np.empty(elements + ELEMENTS_IN_LINE, dtype=np.int64)
    skip = (-raw.ctypes.data % LINE_BYTES) // _INT64_BYTES
    found: Numbers = raw[skip : skip + elements]
    found[:] = 1  # pages that were never written are no memory yet
    return found
