"""Good and Bad supersteps with real threads: the three suites of the SMP interval model.

A superstep copies in, then copies out, with a barrier between, so that the processor that reads
most and the one that writes most need not be the same. In the Good family a processor reads and
writes consecutive elements of its own, again and again; in the Bad family every access is on
another line, far from the last one in memory beyond all caches, which another processor used last.

Good is fitted to suite 1 and Bad to suite 2; what is published of a form is its error on the two
other suites. No coefficient is negative, so that a prediction never falls with the accesses.
Predictions use a form that is continuous: the published ``HrHwM``, or one of two by cache level.
One of these leaves ``M`` out: with two processors, one of them busy, suite 1 makes ``M = 2 h`` in
every plan, so that a fit to it cannot tell the accesses of all from those of the busiest, and the
other suites pay for what it guesses. The published Good form with a step at the cache's capacity
is fitted and judged beside them, and not stated.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from enum import IntEnum, StrEnum

import numpy as np

from costdb.calibration.fitting import (
    Columns,
    Mask,
    Vector,
    cache_levels,
    fit_above,
    held_out,
    judged,
    part,
    predict,
    repetition,
    residual_of,
    typical_us,
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
from costdb.records import dataclass

# Plans of supersteps.
#
# Three kinds of superstep over the accesses `h` of a busy processor and the number `x` of busy
# processors. What each of the published kinds does to the other processors is reconstructed from
# its name and from what the cost functions must tell apart:
#
# - *like gather*: `x` processors read `h` elements each, which all have written alike;
# - *like scatter*: `x` processors write `h` elements each, which all read alike;
# - *vary*: `x` processors read and write `h` elements each, the others none.
#
# Suite 1 makes exactly these plans. Suite 2 draws each processor's reads and writes at random
# below the same maxima, suite 3 divides the same totals at random. The Good functions are fitted
# to suite 1, the Bad ones to suite 2; the other two suites validate each.

ELEMENT_BYTES = 8
LEAST_H = 5_000
GREATEST_H = 1_900_000


class Kind(StrEnum):
    """Who reads and who writes."""

    LIKE_GATHER = "like-gather"
    LIKE_SCATTER = "like-scatter"
    VARY = "vary"


class Suite(IntEnum):
    """How closely a plan keeps to its kind."""

    EXACT = 1
    SAME_MAXIMA = 2
    SAME_TOTALS = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """A superstep to perform.

    Attributes
    ----------
    reads, writes : tuple of int
        Elements that each processor reads and writes, one entry for each processor.
    """

    reads: tuple[int, ...]
    writes: tuple[int, ...]

    @property
    def hr(self) -> int:
        """Most reads by one processor."""
        return max(self.reads)

    @property
    def hw(self) -> int:
        """Most writes by one processor."""
        return max(self.writes)

    @property
    def total(self) -> int:
        """Reads and writes of all processors."""
        return sum(self.reads) + sum(self.writes)


def heights(count: int, high: int = GREATEST_H) -> tuple[int, ...]:
    """Return `count` whole numbers up to `high`, evenly spaced by ratio."""
    return tuple(np.geomspace(LEAST_H, high, count).round().astype(int).tolist())


def make_plan(
    suite: Suite, kind: Kind, h: int, x: int, processors: int, source: random.Random
) -> Plan:
    """Return one plan.

    Parameters
    ----------
    h : int
        Accesses of each busy processor, at least 1.
    x : int
        Busy processors, at least 1 and fewer than `processors`.
    source : random.Random
        Where suites 2 and 3 draw from; suite 1 draws nothing.
    """
    busy = (h,) * x + (0,) * (processors - x)
    match kind:
        case Kind.LIKE_GATHER:
            reads, writes = busy, _evenly(x * h, processors)
        case Kind.LIKE_SCATTER:
            reads, writes = _evenly(x * h, processors), busy
        case Kind.VARY:
            reads, writes = busy, busy
    match suite:
        case Suite.EXACT:
            pass
        case Suite.SAME_MAXIMA:
            reads, writes = _below(reads, source), _below(writes, source)
        case Suite.SAME_TOTALS:
            reads, writes = _divided(reads, source), _divided(writes, source)
    return Plan(reads, writes)


def _evenly(total: int, processors: int) -> tuple[int, ...]:
    share, rest = divmod(total, processors)
    return (share + 1,) * rest + (share,) * (processors - rest)


def _below(counts: tuple[int, ...], source: random.Random) -> tuple[int, ...]:
    most = max(counts)
    drawn = [source.randint(0, most) for _ in counts]
    drawn[source.randrange(len(counts))] = most
    return tuple(drawn)


def _divided(counts: tuple[int, ...], source: random.Random) -> tuple[int, ...]:
    total = sum(counts)
    cuts = sorted(source.randint(0, total) for _ in counts[1:])
    return tuple(b - a for a, b in zip((0, *cuts), (*cuts, total), strict=True))


GOOD, BAD = "good", "bad"
_FITTED_SUITE = {GOOD: Suite.EXACT, BAD: Suite.SAME_MAXIMA}
_HEIGHTS = {Effort.FULL: heights(12), Effort.QUICK: heights(6, 600_000)}


def _points(effort: Effort, processors: int, host: Host) -> Sequence[Point]:
    """Return the plans of all suites; none where there are no two cores."""
    return [
        _point(family, suite, kind, h, x, threads)
        for threads in sorted({2, processors})
        if 2 <= threads <= processors
        for family in (GOOD, BAD)
        for suite in Suite
        for kind in Kind
        for h in _HEIGHTS[effort]
        for x in sorted({1, threads // 2, threads - 1})
    ]


def _point(family: str, suite: Suite, kind: Kind, h: int, x: int, processors: int) -> Point:
    plan = _plan(suite, kind, h, x, processors)
    features: Mapping[str, int | str] = {
        "family": family,
        "suite": int(suite),
        "kind": kind.value,
        "h": h,
        "x": x,
        "processors": processors,
        "hr": plan.hr,
        "hw": plan.hw,
        "accesses": plan.total,
        "dtype": "i8",
    }
    return Point(_operation(family, processors), features, suite is not _FITTED_SUITE[family])


def _operation(family: str, processors: int) -> str:
    return f"superstep.{family}.p{processors}"


def _plan(suite: Suite, kind: Kind, h: int, x: int, processors: int) -> Plan:
    # The same everywhere: rank, launch and resumed run must time the same plan.
    source = random.Random(f"{int(suite)} {kind.value} {h} {x} {processors}")
    return make_plan(suite, kind, h, x, processors, source)


def _action(point: Point, world: World) -> Action:
    """Return the superstep; its first run, a warm-up, compiles or loads it."""
    from costdb.calibration.superstep_kernels import Far, Near

    given = point.features
    h, x, processors = (int(given[name]) for name in ("h", "x", "processors"))
    plan = _plan(Suite(int(given["suite"])), Kind(str(given["kind"])), h, x, processors)
    if given["family"] == GOOD:
        return Action(Near(plan.reads, plan.writes))
    far = Far(plan.reads, plan.writes, cache_levels(world.host)[-1])
    return Action(far, before=far.move)


Coefficients = Mapping[str, float]

PLAIN, BY_LEVEL, BUSIEST_BY_LEVEL = "HrHwM", "HrHwM by cache level", "HrHw by cache level"
CACHED = "HrHwM-c"
_LEAST_SAMPLES = 6


@dataclass(frozen=True, slots=True)
class _FamilyFit:
    """What came of one family with one number of processors.

    Attributes
    ----------
    levels : mapping of str to float
        Coefficients of the chosen form by cache level.
    limits : tuple of int
        Accesses of one processor up to which each level but the last reaches.
    predicted_us : array, shape (n,)
        Of the chosen form, for the points that were kept from the fit.
    qualities : tuple of Quality
    errors : mapping of str to float
        Mean relative errors on the suites that were kept from the fit, by form.
    """

    levels: Coefficients
    limits: tuple[int, ...]
    predicted_us: Vector
    qualities: tuple[Quality, ...]
    errors: Mapping[str, float]


def _fit_family(
    operation: str, timings: Sequence[Timing], limits: Sequence[int], *, good: bool
) -> _FamilyFit:
    """Fit one family; `limits` are the accesses of a processor that each cache level holds."""
    given, times, kept = _counts(timings), typical_us(timings), held_out(timings)
    if (~kept).sum() < _LEAST_SAMPLES or kept.sum() < _LEAST_SAMPLES:
        raise ValueError(f"{operation}: too few supersteps were measured")
    heights = [int(timing.point.features["h"]) for timing in timings]
    # of two sides one may stay within a cache that the larger one leaves
    least = min(given["ghr"].min(), given["ghw"].min())
    reached = [limit for limit in limits if least < limit < max(heights)]
    by_level = _by_level(given, reached)
    fits: dict[str, Coefficients] = {}
    forms: dict[str, Vector] = {}
    for form, columns in {
        PLAIN: given,
        BY_LEVEL: by_level,
        BUSIEST_BY_LEVEL: {name: by_level[name] for name in by_level if name != "gM"},
    }.items():
        fits[form] = fit_above(part(columns, ~kept), times[~kept])
        forms[form] = predict(columns, fits[form])
    # a form without levels has the same coefficients at each
    fits[PLAIN] = {
        name: fits[PLAIN].get(name, fits[PLAIN].get(name.rstrip("0123456789"), 0.0))
        for name in by_level
    }
    if good:
        used = [limit for limit in limits if min(heights) < limit < max(heights)]
        forms[CACHED] = min(
            (_with_capacity(given, times, kept, limit) for limit in used or [max(heights)]),
            key=lambda values: _mean_error(times[~kept], values[~kept]),
        )
    missed = {form: _mean_error(times[kept], values[kept]) for form, values in forms.items()}
    chosen = min(fits, key=missed.__getitem__)
    qualities = tuple(judged(operation, times, kept, forms, chosen))
    return _FamilyFit(fits[chosen], tuple(reached), forms[chosen][kept], qualities, missed)


def _counts(timings: Sequence[Timing]) -> Columns:
    """Return most reads, most writes and all accesses of each superstep."""
    named = {"ghr": "hr", "ghw": "hw", "gM": "accesses"}
    columns = {
        key: np.array([float(timing.point.features[name]) for timing in timings])
        for key, name in named.items()
    }
    return {"L": np.ones(len(timings)), **columns}


def _by_level(given: Columns, limits: Sequence[int]) -> Columns:
    """Return the columns of the form by cache level: accesses that fall into each level."""
    edges = (0.0, *map(float, limits), np.inf)
    levels = {
        f"{key}{number}": np.clip(given[key] - low, 0.0, high - low)
        for key in ("ghr", "ghw")
        for number, (low, high) in enumerate(itertools.pairwise(edges))
    }
    return {"L": given["L"], "gM": given["gM"], **levels}


def _with_capacity(given: Columns, times: Vector, kept: Mask, capacity: int) -> Vector:
    """Return what the published Good form predicts, fitted with a cache of this capacity."""
    columns = {"L": given["L"], "gM": given["gM"]}
    for key in ("ghr", "ghw"):
        columns[f"{key}c"] = np.minimum(given[key], capacity)
        columns[f"{key}m"] = np.maximum(given[key] - capacity, 0.0)
    beyond = np.maximum(given["ghr"], given["ghw"]) > capacity
    predicted = np.zeros_like(times)
    for inside in (~beyond, beyond):
        # a piece that was hardly measured is like the whole; the range says how far it goes
        fitted = inside & ~kept if (inside & ~kept).sum() >= _LEAST_SAMPLES else ~kept
        piece = fit_above(part(columns, fitted), times[fitted])
        predicted[inside] = predict(columns, piece)[inside]
    return predicted


def _mean_error(times: Vector, predicted: Vector) -> float:
    return float(np.mean(np.abs(predicted - times) / times))


_NOTE = (
    "Supersteps: numba's threads, 8-byte elements; a barrier parts reads from writes, and "
    "launching the threads is part of the start-up. Bad accesses are each on another line beyond "
    "all caches that another processor used last; no two processors are at one line at once."
)


def _fitted(timings: Sequence[Timing], host: Host) -> Fitted:
    """Fit all families and processor counts and return the section.

    Raises
    ------
    ValueError
        A family was hardly measured.
    """
    counts = sorted({int(timing.point.features["processors"]) for timing in timings})
    if not counts:
        raise ValueError("supersteps need two cores")
    # Far accesses are beyond all caches, however few they are.
    limits = {GOOD: [size // ELEMENT_BYTES for size in cache_levels(host)], BAD: []}
    fits: dict[tuple[str, int], _FamilyFit] = {}
    kept: list[Timing] = []
    for family, count in itertools.product((GOOD, BAD), counts):
        name = _operation(family, count)
        ours = [timing for timing in timings if timing.point.operation == name]
        fits[family, count] = _fit_family(name, ours, limits[family], good=family == GOOD)
        kept += [timing for timing in ours if timing.point.held_out]
    predicted = np.concatenate([fit.predicted_us for fit in fits.values()])
    heights = [int(timing.point.features["h"]) for timing in timings]

    stated: dict[str, Json] = {
        "element_bytes": measured(ELEMENT_BYTES, "byte"),
        "residual": residual_of(kept, predicted),
        "range": {"h": [min(heights), max(heights)]},
        "levels": {
            family: {
                "limits": [*fits[family, counts[0]].limits],
                **{f"p{count}": _coefficients(fits[family, count].levels) for count in counts},
            }
            for family in (GOOD, BAD)
        },
        "validation": {
            f"{family}_p{count}": {
                form.replace(" ", "_"): measured(error, "1") for form, error in fit.errors.items()
            }
            for (family, count), fit in fits.items()
        },
    }
    qualities = tuple(one for fit in fits.values() for one in fit.qualities)
    return Fitted({"smp": stated, **repetition(THREADS, kept)}, qualities, (_NOTE,))


def _coefficients(found: Coefficients) -> dict[str, Json]:
    return {
        name: measured(value, "us" if name == "L" else "us/element")
        for name, value in found.items()
    }


SECTION = Section(
    "supersteps",
    "shared memory: near and far supersteps of threads",
    frozenset((Need.NUMBA,)),
    _points,
    _action,
    _fitted,
)
