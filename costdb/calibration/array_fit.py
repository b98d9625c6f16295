"""Fits the array model: what a call takes is known, what each part of it costs is found.

A class and element type is fitted by itself, to least relative errors of which far ones count less,
with no coefficient negative and no line from farther away cheaper than a nearer one. What a class
leaves unexplained is told by points that were left out of the fit that predicts them, in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from costdb.arrays.amounts import CALL, FAULT, LINES, amounts, rate_key, residual_key
from costdb.arrays.memory import Hierarchy
from costdb.calibration.fitting import Vector, judged
from costdb.calibration.hardware import Host
from costdb.calibration.section import Quality, Timing
from costdb.expr import evaluate
from costdb.machines.documents import Json, measured
from costdb.work import ArrayCall

Place = tuple[str, ...]

_FOLDS = 10
_ROUNDS = 8
_NEAR_ERROR = 0.05
"""Relative errors below it count by their squares, larger ones by their size."""
_QUANTILES = (0.05, 0.95)
_FEW, _UNSURE = 6, (0.5, 2.0)
"""So few points may agree by chance: these ends count with theirs."""
_UNITS = {
    "call_us": "us",
    "run_us": "us",
    "element_us": "us/element",
    "apart_element_us": "us/element",
}
MODEL = "lines by level"


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
    groups: dict[tuple[str, str], list[tuple[ArrayCall, Timing]]] = {}
    for call, timing in timings:
        if timing.launches_us:
            groups.setdefault((rate_key(call), call.dtype), []).append((call, timing))
    rates: dict[str, Json] = {}
    qualities: list[Quality] = []
    for (key, dtype), group in sorted(groups.items()):
        document, qualities_of = _fitted(f"{key} {dtype}", group, memory)
        by_type = rates.setdefault(key, {})
        assert isinstance(by_type, dict)
        by_type[dtype] = document
        qualities += qualities_of
    return rates, qualities


def _fitted(
    name: str, group: Sequence[tuple[ArrayCall, Timing]], memory: Hierarchy
) -> tuple[dict[str, Json], list[Quality]]:
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
    qualities: list[Quality] = []
    if tested:
        every = np.ones(len(tested), dtype=bool)
        qualities = judged(name, times[tested], every, {MODEL: predicted}, MODEL)
    else:
        # of points that differ in nothing that ends a range, the fit itself says what it misses
        tested, predicted = list(range(len(times))), matrix @ found
    few = len(tested) < _FEW
    ratios: dict[str, list[float]] = {}
    for number, us in zip(tested, predicted.tolist(), strict=True):
        if us > 0:
            kind = residual_key(rows[number])
            ratios.setdefault(kind, []).extend(t / us for t in timings[number].each_launch_us)
    document: dict[str, Json] = {}
    for place, value in zip(places, found.tolist(), strict=True):
        inner = document
        if len(place) > 1:
            held = document.setdefault(place[0], {})
            assert isinstance(held, dict)
            inner = held
        inner[place[-1]] = measured(value, _UNITS.get(place[0], "us/line"))
    for kind, seen in ratios.items():
        document[kind] = quantity_of_ratios(1.0, "1", [*seen, *_UNSURE] if few else seen)
    return document, qualities


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

    scaled = matrix @ growing / times_us[:, None]
    scale = np.linalg.norm(scaled, axis=0)
    told = scale > 0
    scale[~told] = 1.0
    scaled = scaled / scale
    weight, solution = np.ones(len(scaled)), np.zeros(len(scale))
    for _ in range(_ROUNDS):
        solution, _ = nnls(scaled * weight[:, None], weight, maxiter=10_000)
        error = np.abs(scaled @ solution - 1)
        weight = 1 / np.sqrt(np.maximum(error, _NEAR_ERROR) / _NEAR_ERROR)
    found: Vector = growing @ (solution * told / scale)
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


def quantity_of_ratios(value: float, unit: str, ratios: Sequence[float]) -> Json:
    """Return a coefficient whose ends hold nine in ten of measured over predicted."""
    low, high = _ends(ratios)
    return measured(value, unit, value * min(low, 1.0), value * max(high, 1.0))


def ends_of(timing: Timing) -> tuple[float, float, float]:
    """Return what a point takes, between the ends of nine in ten samples."""
    low, high = _ends(timing.samples_us)
    return low, min(max(timing.typical_us, low), high), high


def _ends(values: Sequence[float]) -> tuple[float, float]:
    low, high = (float(np.quantile(values, q)) for q in _QUANTILES)
    return low, high
