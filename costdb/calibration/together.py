"""Ranks that compute at the same time: what their lines cost more than those of one alone.

Processors share what lies beyond their own caches: the last cache and the memory. The same copies
and sums are timed by one rank while the others wait, and by all at once, each on arrays of its
own. What a processor does within its own caches takes no longer in company.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from costdb.arrays.amounts import Hierarchy
from costdb.calibration.fitting import cache_levels, caches, caches_document, judged
from costdb.calibration.hardware import Host
from costdb.calibration.section import (
    Action,
    Effort,
    Fitted,
    Need,
    Point,
    Section,
    Timing,
    World,
    repeated,
    repetitions,
    spread_sizes,
)
from costdb.machines import Json, measured
from costdb.records import dataclass

_LARGEST_BYTES = 128 << 20
_COUNTS = {Effort.QUICK: 8, Effort.FULL: 16}
_ITEM_BYTES = 8
_BYTES_PER_US = 20_000.0


def _points(effort: Effort, processors: int, host: Host) -> Sequence[Point]:
    """Return working sets from half the processor's own cache on, alone and in company."""
    if processors < 2:
        return ()
    levels = cache_levels(host)
    largest = max(2 * levels[1], min(2 * levels[-1], _LARGEST_BYTES))
    sizes = spread_sizes(levels[1] // 2, largest, _COUNTS[effort], _ITEM_BYTES)
    return [
        Point(
            f"together.{operation}",
            {"bytes": size, "who": who, "ranks": processors},
            held_out=(number + turn) % 2 == 1,
        )
        for turn, operation in enumerate(ARRAYS_OF)
        for number, size in enumerate(sizes)
        for who in (ONE, ALL)
    ]


def _action(point: Point, world: World) -> Action:
    """Return a call on whole arrays; where one computes alone, the others only wait for it."""
    size = int(point.features["bytes"])
    operation = point.operation.removeprefix("together.")
    x, y, z = (_memory(which)[: size // ARRAYS_OF[operation] // _ITEM_BYTES] for which in range(3))
    step = partial(np.copyto, y, x) if operation == "copy" else partial(np.add, x, y, out=z)
    times = repetitions(size / _BYTES_PER_US)
    if point.features["who"] == ONE and world.rank > 0:
        return Action(lambda: None, times)
    return repeated(step, times)


@lru_cache(maxsize=3)
def _memory(which: int) -> NDArray[np.float64]:
    # half of the largest working set is the largest array of any operation
    return np.ones(_LARGEST_BYTES // 2 // _ITEM_BYTES)


# How many times longer a cache line takes when all ranks compute, by the level it comes from.
#
# Of a call on a working set beyond a processor's own caches, the part that grows in company is what
# is left when the time of as many elements within these caches is taken off.

ARRAYS_OF: Mapping[str, int] = {"copy": 2, "add": 3}
"""The operations, and how many arrays share the working set of each."""

ONE, ALL = "one", "all"
_LEAST_PART = 0.25
"""Of a call's time: a smaller part of lines says little about how far their factor scatters."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """Times of the same call by one rank and by all.

    Attributes
    ----------
    piece : str
        The level that its working set comes from.
    held_out : bool
    alone, together, own : float
        Microseconds by one, by all, and what of them is not of shared lines.
    """

    piece: str
    held_out: bool
    alone: float
    together: float
    own: float


def fit_together(timings: Sequence[Timing], memory: Hierarchy) -> Fitted:
    """Fit the section ``arrays.together`` of a profile.

    Parameters
    ----------
    timings : sequence of Timing
    memory : Hierarchy
        Whose first two levels are a processor's own.
    """
    pairs = list(_pairs(timings, memory))
    factors: dict[str, float] = {}
    stated: dict[str, Json] = {}
    last: tuple[float, float, float] | None = None
    for key in memory.keys[1:]:
        last = _factor([pair for pair in pairs if pair.piece == key]) or last
        if last is not None:
            # what is farther than anything measured is shared as much as the farthest that was
            stated[key] = measured(last[0], "1", *last[1:])
            factors[key] = last[0]
    if not stated:
        return Fitted({}, (), ("Ranks together: no working set was measured in the time given.",))
    ranks = int(timings[0].point.features["ranks"])
    arrays: Json = {
        **caches_document(memory),
        "together": {f"p{ranks}": {"line_factor": stated}},
    }
    kept = [pair for pair in pairs if pair.held_out and pair.piece in factors]
    if not kept:
        return Fitted({"arrays": arrays})
    models = {
        "as one alone": np.array([one.alone for one in kept]),
        "shared lines": np.array(
            [one.own + factors[one.piece] * (one.alone - one.own) for one in kept]
        ),
    }
    times = np.array([one.together for one in kept])
    every = np.ones(times.size, dtype=bool)
    return Fitted(
        {"arrays": arrays}, tuple(judged("together", times, every, models, "shared lines"))
    )


def _pairs(timings: Sequence[Timing], memory: Hierarchy) -> Iterator[_Pair]:
    """Yield the calls that both were timed, where what one takes within its caches is known."""
    times: dict[tuple[str, int], dict[str, Timing]] = {}
    for timing in timings:
        if timing.launches_us:
            key = timing.point.operation, int(timing.point.features["bytes"])
            times.setdefault(key, {})[str(timing.point.features["who"])] = timing
    each_us: dict[str, float] = {}
    for (operation, size), both in times.items():
        if size <= memory.levels[1] and ONE in both:
            us = both[ONE].typical_us / size
            each_us[operation] = min(us, each_us.get(operation, us))
    for (operation, size), both in times.items():
        if operation in each_us and len(both) == 2:
            farther = zip(memory.levels[1:], memory.keys, strict=False)
            piece = next((key for level, key in farther if size <= level), memory.keys[-1])
            alone = both[ONE].typical_us
            own = min(each_us[operation] * size, alone)
            yield _Pair(piece, both[ALL].point.held_out, alone, both[ALL].typical_us, own)


def _factor(pairs: Sequence[_Pair]) -> tuple[float, float, float] | None:
    """Return the factor of lines from a level, by relative least squares, and its ends.

    The ends are those of the single calls that consist of such lines to a good part. None
    where no call has any; a factor below 1 is a disturbed measurement.
    """
    given = [pair for pair in pairs if not pair.held_out]
    norm = sum(((one.alone - one.own) / one.together) ** 2 for one in given)
    if not norm:
        return None
    grown = sum((one.alone - one.own) * (one.together - one.own) / one.together**2 for one in given)
    seen = [
        (one.together - one.own) / (one.alone - one.own)
        for one in given
        if one.alone - one.own >= _LEAST_PART * one.alone
    ]
    fitted = grown / norm
    return max(1.0, fitted), max(1.0, min([fitted, *seen])), max(1.0, max([fitted, *seen]))


SECTION = Section(
    "together",
    "arrays of ranks that compute at the same time",
    frozenset((Need.MPI,)),
    _points,
    _action,
    lambda timings, host: fit_together(timings, caches(host)),
)
