"""Fits and their statistics, as all sections make them: relative, not negative, held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from random import Random

import numpy as np
from numpy.typing import NDArray

from costdb.arrays.amounts import (
    APART_ELEMENT,
    APART_LINE,
    CALL,
    ELEMENT,
    FAULT,
    LINE,
    LINES,
    Hierarchy,
    amounts,
    rate_key,
    residual_key,
)
from costdb.calibration.section import Host, Quality, Timing, typical
from costdb.expr import evaluate
from costdb.machines import Json, measured
from costdb.pricing import LAUNCHES
from costdb.profile_parts import grades_of
from costdb.records import grouped
from costdb.work import ArrayCall

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]
Columns = Mapping[str, Vector]

LEAST_US = 1e-6
"""No memory or network moves a byte faster than a terabyte a second, and nothing else is shorter: a
fit that finds less has explained it by something else."""

TOO_FEW = "too few points were measured for a fit: give it more time"
_LAUNCHES_HELD = 0.9


def fit_above(
    columns: Columns, times_us: Vector, known_us: Vector | float = 0.0
) -> dict[str, float]:
    """Return the coefficients, none below `LEAST_US`, with the least relative squared errors.

    Parameters
    ----------
    columns : mapping of str to array, shape (n,)
        Units of each coefficient in each sample.
    times_us : array, shape (n,)
        Above zero.
    known_us : array, shape (n,), optional
        What is part of the times and explained already.

    Raises
    ------
    ValueError
        There are no samples.
    """
    if not times_us.size:
        raise ValueError(TOO_FEW)
    # scipy.optimize takes a third of a second to import.
    from scipy.optimize import nnls

    matrix = np.stack([*columns.values()], axis=-1) / times_us[:, np.newaxis]
    scaled, norms = _scaled(matrix)
    found, _ = nnls(scaled, 1.0 - known_us / times_us - LEAST_US * matrix.sum(axis=1))
    return dict(zip(columns, (found / norms + LEAST_US).tolist(), strict=True))


def _scaled(matrix: Vector) -> tuple[Vector, Vector]:
    """Return a matrix with columns of one length, and what they were divided by."""
    norms = np.linalg.norm(matrix, axis=0)
    norms[norms == 0] = 1.0
    return matrix / norms, norms


def predict(columns: Columns, coefficients: Mapping[str, float]) -> Vector:
    """Return predicted microseconds, shape (n,)."""
    total: Vector = np.sum([columns[name] * each for name, each in coefficients.items()], axis=0)
    return total


def part(columns: Columns, chosen: Mask) -> Columns:
    """Return the samples that `chosen`, shape (n,), selects."""
    return {name: column[chosen] for name, column in columns.items()}


def typical_us(timings: Sequence[Timing]) -> Vector:
    """Return the time of each point, shape (n,)."""
    return np.array([timing.typical_us for timing in timings])


def named(timings: Sequence[Timing], operation: str) -> list[Timing]:
    """Return the timings of one operation."""
    return [timing for timing in timings if timing.point.operation == operation]


def feature(timings: Sequence[Timing], name: str) -> Vector:
    """Return a number among the features of each point, shape (n,)."""
    return np.array([float(timing.point.features[name]) for timing in timings])


def held_out(timings: Sequence[Timing]) -> Mask:
    """Return which points were kept from the fit, shape (n,)."""
    return np.array([timing.point.held_out for timing in timings], dtype=bool)


def judged(operation: str, times_us: Vector, predicted_us: Vector) -> Quality:
    """Return how well a model predicts points that were kept from its fit.

    Raises
    ------
    ValueError
        No point was kept.
    """
    if not times_us.size:
        raise ValueError(TOO_FEW)
    error = float(np.median(np.abs(predicted_us - times_us) / times_us))
    pairs = zip(times_us.tolist(), predicted_us.tolist(), strict=True)
    return Quality(operation, error, tuple(pairs))


def fit_and_judge(timings: Sequence[Timing], columns: Columns) -> tuple[dict[str, float], Quality]:
    """Fit one operation to its points but for those that are kept, and judge it by these."""
    times, kept = typical_us(timings), held_out(timings)
    found = fit_above(part(columns, ~kept), times[~kept])
    predicted = predict(part(columns, kept), found)
    return found, judged(timings[0].point.operation, times[kept], predicted)


def residual_of_all(timings: Sequence[Timing], qualities: Sequence[Quality]) -> Json:
    """Return `residual_of` what was kept from the fits of operations, in the order of timings."""
    predicted = [us for quality in qualities for _, us in quality.pairs]
    return residual_of([one for one in timings if one.point.held_out], np.array(predicted))


def residual_of(timings: Sequence[Timing], predicted_us: Vector) -> Json:
    """Return the factor that holds nine in ten measured times around the predicted ones.

    A measured time is what one launch says of one point; all launches count, so that what
    drifts between them is within the interval.

    Raises
    ------
    ValueError
        The fit predicts no time at all somewhere, as it may from too few points.
    """
    if not np.all(predicted_us > 0):
        raise ValueError(TOO_FEW)
    note = "holds nine in ten launches' times of the points that were kept from the fit"
    return quantity_of_ratios(1.0, "1", ratios_of(timings, predicted_us.tolist()), note)


def ratios_of(timings: Sequence[Timing], predicted_us: Sequence[float]) -> list[float]:
    """Return measured over predicted times, of each launch; none where nothing is predicted."""
    return [
        launch / us
        for timing, us in zip(timings, predicted_us, strict=True)
        if us > 0
        for launch in timing.each_launch_us
    ]


def _said_apart(timing: Timing) -> Sequence[float]:
    """Return what each launch says; of a single one, what each of its visits does."""
    launches = timing.launches_us
    return timing.each_launch_us if len(launches) > 1 else [typical([v]) for v in sum(launches, ())]


def repetition_of(timings: Sequence[Timing]) -> Json:
    """Return the factor that holds nine in ten ratios of two launches of the same point.

    Where there was one, that of its visits; None where no point was visited twice.
    """
    ratios = [
        max(one, other) / min(one, other)
        for timing in timings
        for one, other in combinations(_said_apart(timing), 2)
    ]
    if not ratios:
        return None
    # either of two may be the one that is above
    far = float(np.quantile(ratios, _LAUNCHES_HELD, method="higher"))
    note = "holds nine in ten ratios of two launches of equal work"
    return measured(1.0, "1", 1 / far, far, note)


def repetition(kind: str, timings: Sequence[Timing]) -> dict[str, Json]:
    """Return the profile's part about launches of one kind of work; none where nothing tells."""
    stated = repetition_of(timings)
    return {} if stated is None else {LAUNCHES: {kind: stated}}


def graded_columns(sizes: Vector, limits: Sequence[float], times: float = 1.0) -> Columns:
    """Return `times` a call, and the part of each size that lies in each grade."""
    columns = {"call_us": np.full(sizes.size, times)}
    for number, grade in enumerate(grades_of(limits)):
        most = sizes if grade.limit is None else np.minimum(sizes, grade.limit)
        columns[f"pieces.{number}"] = times * np.maximum(most - grade.above, 0.0)
    return columns


def graded_document(coefficients: Mapping[str, float], limits: Sequence[float]) -> dict[str, Json]:
    """Return a step with these coefficients as a profile states it."""
    pieces: list[Json] = [
        {
            "max_bytes": grade.limit,
            "us_per_byte": measured(coefficients[f"pieces.{number}"], "us/byte"),
        }
        for number, grade in enumerate(grades_of(limits))
    ]
    return {"call_us": measured(coefficients["call_us"], "us"), "pieces": pieces}


# Array calls: what a call takes is known, what each part of it costs is found.
#
# A class and element type is fitted by itself, to least relative errors of which far ones count
# less, with no coefficient negative and no line from farther away cheaper than a nearer one. What a
# class leaves unexplained is told by points that were left out of the fit that predicts them, in
# turn.

Place = tuple[str, ...]

_FOLDS = 10
_ROUNDS = 8
_NEAR_ERROR = 0.05
"""Relative errors below it count by their squares, larger ones by their size."""
_QUANTILES = (0.05, 0.95)
_FEW, _UNSURE = 6, (0.5, 2.0)
"""So few points may agree by chance: these ends count with theirs."""
_TOGETHER = {APART_ELEMENT: ELEMENT, APART_LINE: LINE}
_UNITS = {
    "call_us": "us",
    "run_us": "us",
    "element_us": "us/element",
    "apart_element_us": "us/element",
}


_LINE_BYTES = 64
_LEVELS = (32 * 2**10, 2**20, 32 * 2**20)
"""Caches of a host that says nothing of them."""
_FARTHEST_BYTES = 64 * 2**20
"""Arrays that are timed are not much larger."""


def cache_levels(host: Host) -> tuple[int, ...]:
    """Return the ends of the pieces of shared memory, whose last reaches beyond the caches."""
    first, second, last = _stated(host)
    # a large cache is shared, so that its far end is slower than its near one
    return first, second, max(last // 4, second + 1), last, 2 * last


def caches(host: Host) -> Hierarchy:
    """Return up to how many bytes data counts as being in each level of the memory."""
    first, second, last = _stated(host)
    return Hierarchy((first, second, max(min(last, _FARTHEST_BYTES), second + 1)), _LINE_BYTES)


def caches_document(memory: Hierarchy) -> dict[str, Json]:
    """Return the caches as a profile states them."""
    return {"levels": {f"b{level}": measured(level, "byte") for level in memory.levels}}


def _stated(host: Host) -> tuple[int, ...]:
    """Return the bytes of each cache; usual ones where they are not all told."""
    found = {cache.level: cache.size_bytes for cache in host.caches}
    return tuple(found[level] for level in (1, 2, 3)) if sorted(found) == [1, 2, 3] else _LEVELS


def fit_classes(
    timings: Sequence[tuple[ArrayCall, Timing]], memory: Hierarchy
) -> tuple[dict[str, Json], list[Quality]]:
    """Return the rates of every class as a profile states them, and how well they do."""
    known = (one for one in timings if one[1].launches_us)
    groups = grouped(((rate_key(one[0]), one[0].dtype), one) for one in known)
    rates: dict[str, Json] = {}
    qualities: list[Quality] = []
    for (key, dtype), group in sorted(groups.items()):
        by_type = rates.setdefault(key, {})
        assert isinstance(by_type, dict)
        by_type[dtype], quality = _fitted(f"{key} {dtype}", group, memory)
        qualities += [] if quality is None else [quality]
    return rates, qualities


def _fitted(
    name: str, group: Sequence[tuple[ArrayCall, Timing]], memory: Hierarchy
) -> tuple[dict[str, Json], Quality | None]:
    rows = [_row(call, memory) for call, _ in group]
    timings = [timing for _, timing in group]
    times = np.array([timing.typical_us for timing in timings])
    taken = {place for row in rows for place in row if row[place]}
    lines = {place[0] for place in taken} & set(LINES)
    places = sorted({p for p in taken if p[0] not in lines} | {(CALL,)})
    # all levels: where nothing was measured, lines cost what those from the level before do
    places += [(line, key) for line in sorted(lines) for key in memory.keys]
    matrix = np.array([[row.get(place, 0.0) for place in places] for row in rows])
    growing = _growing(places, memory)
    found = _solved(matrix, times, growing)
    tested, predicted = _left_out(name, matrix, times, growing, [call for call, _ in group])
    quality = None
    if tested:
        quality = judged(name, times[tested], predicted)
    else:
        # of points that differ in nothing that ends a range, the fit itself says what it misses
        tested, predicted = list(range(len(times))), matrix @ found
    few = len(tested) < _FEW
    ratios: dict[str, list[float]] = {}
    for number, us in zip(tested, predicted.tolist(), strict=True):
        seen = ratios.setdefault(residual_key(rows[number]), [])
        seen += ratios_of([timings[number]], [us])
    document: dict[str, Json] = {}
    fitted = dict(zip(places, found.tolist(), strict=True))
    for place, value in fitted.items():
        # what lies apart is never cheaper than what lies together, whatever a busy host showed
        value = max(value, fitted.get((_TOGETHER.get(place[0], ""), *place[1:]), 0.0))
        inner = document
        if len(place) > 1:
            held = document.setdefault(place[0], {})
            assert isinstance(held, dict)
            inner = held
        inner[place[-1]] = measured(value, _UNITS.get(place[0], "us/line"))
    for kind, seen in ratios.items():
        document[kind] = quantity_of_ratios(1.0, "1", [*seen, *_UNSURE] if few else seen)
    return document, quality


def _row(call: ArrayCall, memory: Hierarchy) -> dict[Place, float]:
    row: dict[Place, float] = {}
    for amount in amounts(call, memory):
        # processes that measure keep the memory they free
        if amount.place[0] != FAULT:
            row[amount.place] = row.get(amount.place, 0.0) + float(evaluate(amount.amount, {}))
    return row


def _growing(places: Sequence[Place], memory: Hierarchy) -> Vector:
    """Return the matrix that makes coefficients of steps from level to level."""
    order = {key: number for number, key in enumerate(memory.keys)}
    steps = np.eye(len(places))
    for row, place in enumerate(places):
        for column, nearer in enumerate(places):
            if len(place) == len(nearer) == 2 and place[0] == nearer[0]:
                steps[row, column] = float(order[nearer[1]] <= order[place[1]])
    return steps


def _solved(matrix: Vector, times_us: Vector, growing: Vector) -> Vector:
    """Return the coefficients that fit best, shape (places,)."""
    from scipy.optimize import nnls

    scaled, scale = _scaled(matrix @ growing / times_us[:, None])
    weight, solution = np.ones(len(scaled)), np.zeros(len(scale))
    for _ in range(_ROUNDS):
        solution, _ = nnls(scaled * weight[:, None], weight, maxiter=10_000)
        error = np.abs(scaled @ solution - 1)
        weight = 1 / np.sqrt(np.maximum(error, _NEAR_ERROR) / _NEAR_ERROR)
    found: Vector = growing @ (solution / scale)
    return found


def _left_out(
    name: str, matrix: Vector, times_us: Vector, growing: Vector, calls: Sequence[ArrayCall]
) -> tuple[list[int], Vector]:
    """Return the points that were left out in turn, and what fits without them predict of these.

    The least and the greatest stay in, as does what alone determines a coefficient: the others say
    nothing of what lies beyond them, and a prediction there says so itself.
    """
    elements = np.array([float(evaluate(call.elements, {})) for call in calls])
    support = (matrix > 0).sum(axis=0)
    tested = [
        number
        for number, count in enumerate(elements)
        if elements.min() < count < elements.max() and support[matrix[number] > 0].min() > 1
    ]
    order = Random(name).sample(range(len(tested)), len(tested))
    predicted = np.zeros(len(tested))
    for fold in range(_FOLDS):
        chosen = order[fold::_FOLDS]
        if chosen:
            out = [tested[number] for number in chosen]
            known = np.ones(len(times_us), dtype=bool)
            known[out] = False
            predicted[chosen] = matrix[out] @ _solved(matrix[known], times_us[known], growing)
    return tested, predicted


def quantity_of_ratios(
    value: float, unit: str, ratios: Sequence[float], note: str | None = None
) -> Json:
    """Return a coefficient whose ends hold nine in ten of measured over predicted."""
    low, high = _ends(ratios)
    return measured(value, unit, value * min(low, 1.0), value * max(high, 1.0), note)


def ends_of(timing: Timing) -> tuple[float, float, float]:
    """Return what a point takes, between the ends of nine in ten samples."""
    low, high = _ends(timing.samples_us)
    return low, min(max(timing.typical_us, low), high), high


def _ends(values: Sequence[float]) -> tuple[float, float]:
    # times that were seen, so that few of them do not narrow it
    low = float(np.quantile(values, _QUANTILES[0], method="lower"))
    high = float(np.quantile(values, _QUANTILES[1], method="higher"))
    return low, high
