"""Fits the array model: what a call takes is known, what each part of it costs is found.

A class and element type is fitted by itself (:mod:`costdb.calibration.array_calls.fit`); the
model without line terms beside it has the same pieces for its elements, so that the two differ by
what the lines say. Both are judged on the same points, each left out of the fit that predicts it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from random import Random
from typing import TYPE_CHECKING, Any

from costdb.arrays.amounts import (
    ALONE,
    APART_ELEMENT,
    APART_STORED,
    CALL,
    CONFLICT_LINE,
    CONFLICT_STORED,
    CROWDED,
    CROWDED_STORED,
    ELEMENT,
    FACTOR,
    FRESH,
    FRESH_CALL,
    INDEX,
    KEPT_CALL,
    LINES,
    MOVED,
    NEAR_PAGE,
    NETWORK,
    PAGE,
    PARTED,
    PLAN,
    PRODUCT,
    PUT_BACK,
    ROWS_LOADED,
    ROWS_STORED,
    RUN,
    SEVERAL,
    SHORT_WALK,
    SLICE,
    SMALL_FACTOR,
    SMALL_PRODUCT,
    STEP,
    UNFORESEEN,
    amounts,
    by_rows,
    rate_key,
    residual_key,
    working_set,
)
from costdb.arrays.hierarchy import NEAR, SPREADS, Hierarchy
from costdb.arrays.rates import LEARNED, PAGES, SPREAD
from costdb.calibration.array_calls.point_actions import call_of
from costdb.calibration.array_calls.view_points import fresh_lines
from costdb.calibration.section import Quality, Timing
from costdb.expr import evaluate
from costdb.machines import RESIDUAL
from costdb.machines.documents import Json
from costdb.work import ArrayCall

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Least squares for the array model: relative errors, no coefficient negative, and left-out points.
#
# What lies far off counts less, as in a fit of least absolute errors. Lines from farther away cost
# no less than nearer ones. A level that few of the points' lines come from says little of its own
# cost: a faint pull towards the level before it keeps such a cost from explaining noise.

Place = tuple[str, ...]
PIECE = "piece"
"""Elements by where they come from, in the model without lines."""

_FOLDS = 10
_ROUNDS = 8
_NEAR_ERROR = 0.05
"""Relative errors below it count by their squares, larger ones by their size."""
_STEP_US, _PULL = 0.005, 0.05
"""A line's cost that grows by so much from one level to the next counts as such an error..."""
_TOLD = 0.5
"""...where so large a cost would be less than this of a point's time, over all points."""


@dataclass(frozen=True, slots=True)
class System:
    """The equations of one class: amounts of each coefficient, and times.

    Attributes
    ----------
    places : tuple of Place
    matrix : array, shape (points, places)
    times_us : array, shape (points,)
    growing : array, shape (places, places)
        Makes coefficients of steps from level to level.
    pull : array, shape (places,)
        Relative error that a step of one microsecond counts as.
    """

    places: tuple[Place, ...]
    matrix: NDArray[Any]
    times_us: NDArray[Any]
    growing: NDArray[Any]
    pull: NDArray[Any]

    def solve(self, known: NDArray[Any]) -> NDArray[Any]:
        """Return the coefficients that fit the points `known`, shape (points,) of bool."""
        import numpy as np
        from scipy.optimize import nnls

        weighted = self.matrix[known] @ self.growing / self.times_us[known, None]
        scale = np.linalg.norm(weighted, axis=0)
        told = scale > 0
        scale[~told] = 1.0
        scaled = weighted / scale
        # what points tell more of needs no help
        faint = (self.pull > 0) & (scale * _PULL < self.pull * _TOLD)
        pulled = np.diag(self.pull / scale)[faint]
        target, nothing = np.ones(len(scaled)), np.zeros(len(pulled))
        weight = np.ones(len(scaled))
        solution = np.zeros(len(scale))
        for _ in range(_ROUNDS):
            solution, _ = nnls(
                np.vstack([scaled * weight[:, None], pulled]),
                np.concatenate([target * weight, nothing]),
                maxiter=10_000,
            )
            error = np.abs(scaled @ solution - target)
            weight = 1 / np.sqrt(np.maximum(error, _NEAR_ERROR) / _NEAR_ERROR)
        found: NDArray[Any] = self.growing @ (solution * told / scale)
        return found

    def missed(self, known: NDArray[Any], solution: NDArray[Any]) -> float:
        """Return by how much coefficients miss the points `known`, by factors, of e at most."""
        import numpy as np

        taken = self.times_us[known]
        # what is far off for another reason is so with any number
        predicted = np.maximum(self.matrix[known] @ solution, taken / np.e)
        return float(np.minimum(np.abs(np.log(predicted / taken)), 1.0).sum())


@dataclass(frozen=True, slots=True)
class Fit:
    """The equations that fit best of several, and their coefficients."""

    system: System
    coefficients: NDArray[Any]


def best_fit(systems: Sequence[System], known: NDArray[Any]) -> Fit:
    """Return which equations fit the points `known` best, the first of equals.

    Parameters
    ----------
    systems : sequence of System
        Of the same points; they differ in what is no coefficient, such as how sets are chosen.
    known : array, shape (points,) of bool
    """
    fits = [Fit(system, system.solve(known)) for system in systems]
    if len(fits) == 1:
        return fits[0]
    return min(fits, key=lambda fit: fit.system.missed(known, fit.coefficients))


def left_out(systems: Sequence[System], tested: Sequence[int], seed: str) -> NDArray[Any]:
    """Return what fits without them predict of the points `tested`, in their order.

    Which equations fit best is found without them, too.
    """
    import numpy as np

    order = Random(seed).sample(range(len(tested)), len(tested))
    predicted = np.zeros(len(tested))
    for fold in range(_FOLDS):
        chosen = order[fold::_FOLDS]
        if chosen:
            out = [tested[number] for number in chosen]
            known = np.ones(len(systems[0].times_us), dtype=bool)
            known[out] = False
            best = best_fit(systems, known)
            predicted[chosen] = best.system.matrix[out] @ best.coefficients
    return predicted


def system_of(
    rows: Iterable[Mapping[Place, float]],
    times_us: Sequence[float],
    memory: Hierarchy,
    elements_of_a_line: float = 1.0,
) -> System:
    """Return the equations of points that take so much of each coefficient.

    Parameters
    ----------
    rows : iterable of mapping of place to float
    times_us : sequence of float
    memory : Hierarchy
    elements_of_a_line : float, optional
        So many elements by where they come from count as a line does, in the model without lines.
    """
    import numpy as np

    found = list(rows)
    places = tuple(sorted({p for row in found for p in row if row[p] and p[0] != FRESH}))
    matrix = np.array([[row.get(place, 0.0) for place in places] for row in found])
    return System(
        places,
        matrix,
        np.array(times_us),
        _growing(places, memory),
        _pull(places, elements_of_a_line),
    )


def _growing(places: Sequence[Place], memory: Hierarchy) -> NDArray[Any]:
    """Return what makes coefficients of steps from level to level: shape (places, steps).

    Lines from farther away cost what nearer ones do and a step more, never less, so that a price
    grows with the bytes; a level that few points tell of is no cheaper than the one before.
    """
    import numpy as np

    order = {key: number for number, key in enumerate((NEAR, *memory.keys))}
    steps = np.eye(len(places))
    for row, place in enumerate(places):
        for column, nearer in enumerate(places):
            if len(place) == len(nearer) == 2 and place[0] == nearer[0]:
                steps[row, column] = float(order[nearer[1]] <= order[place[1]])
    return steps


def _pull(places: Sequence[Place], elements_of_a_line: float) -> NDArray[Any]:
    import numpy as np

    def of(place: Place) -> float:
        if place[0] == PIECE:
            return _PULL / _STEP_US * elements_of_a_line
        return _PULL / _STEP_US if place[0] in LINES and place[1] != NEAR else 0.0

    return np.array([of(place) for place in places])


_QUANTILES = (0.05, 0.95)
_LEAST_TESTED = 6
PAGES_OF_PROCESSORS = 1536, 2048, 3072
"""Entries of the second buffers of pages of processors of the last ten years."""
STEPS_OF_PROCESSORS = 32, 64, 128
"""After about so many steps processors hand on what a step stores, if they learn it at all."""
_UNITS = {
    **dict.fromkeys(
        (CALL, RUN, KEPT_CALL, FRESH_CALL, STEP, INDEX, SLICE, SEVERAL, PUT_BACK), "us"
    ),
    **dict.fromkeys((ELEMENT, ROWS_LOADED, APART_ELEMENT, ROWS_STORED), "us/element"),
    **dict.fromkeys((SHORT_WALK, UNFORESEEN, PARTED, MOVED), "us/element"),
    PLAN: "us/root",
    NETWORK: "us/comparison",
    **dict.fromkeys((FACTOR, PRODUCT, SMALL_FACTOR, SMALL_PRODUCT), "us/element"),
    **dict.fromkeys((PAGE, NEAR_PAGE), "us/page"),
}
CROWDING = CONFLICT_LINE, CONFLICT_STORED, CROWDED, CROWDED_STORED
LINES_MODEL, ELEMENTS_MODEL = "lines in pieces", "call + elements in pieces"


@dataclass(frozen=True, slots=True)
class FittedClass:
    """One class and element type.

    Attributes
    ----------
    key, dtype : str
    coefficients : mapping of place to float
    spread : int or None
        Over how many times as many sets lines spread as their pitch says; None where no point
        tells.
    pages : int or None
        Of how many pages the processor soon knows the place; None where no point tells.
    learned : int or None
        After how many steps of a walk it hands on what one stores; None where no point tells.
    residuals : mapping of str to (float, float)
        Low and high quantile of measured over predicted at points that were left out of the fit,
        by how their elements lie.
    """

    key: str
    dtype: str
    coefficients: Mapping[Place, float]
    residuals: Mapping[str, tuple[float, float]]
    spread: int | None = None
    pages: int | None = None
    learned: int | None = None

    def document(self) -> dict[str, Json]:
        """Return the class as the profile has it."""
        made: dict[str, Json] = {}
        for place, value in self.coefficients.items():
            inner = made
            for key in place[:-1]:
                following = inner.setdefault(key, {})
                assert isinstance(following, dict)
                inner = following
            inner[place[-1]] = measured(value, _UNITS.get(place[0], "us/line"))
        for name, found in ((SPREAD, self.spread), (PAGES, self.pages), (LEARNED, self.learned)):
            if found is not None:
                made[name] = measured(found, "1")
        for key, (low, high) in self.residuals.items():
            made[key] = measured(1.0, "1", min(low, 1.0), max(high, 1.0))
        return made


def measured(value: float, unit: str, low: float | None = None, high: float | None = None) -> Json:
    """Return a quantity that this calibration measured."""
    made: dict[str, Json] = {
        "value": _short(value),
        "unit": unit,
        "provenance": "measured",
        "source": "calibration",
    }
    if low is not None and high is not None:
        made |= {"low": _short(low), "high": _short(high)}
    return made


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def fit_classes(
    timings: Sequence[Timing], memory: Hierarchy
) -> tuple[list[FittedClass], list[Quality], dict[str, Json]]:
    """Return the coefficients of every class, how well they do, and what fresh lines take."""
    groups: dict[tuple[str, str], list[tuple[ArrayCall, Timing]]] = {}
    for timing in timings:
        if timing.launches_us and "fresh" not in timing.point.features:
            call = call_of(timing.point)
            groups.setdefault((rate_key(call), call.dtype), []).append((call, timing))
    fresh = fresh_lines(timings, memory.line_bytes)
    fitted: list[FittedClass] = []
    qualities: list[Quality] = []
    for (key, dtype), group in sorted(groups.items()):
        found, judged = fit_calls(key, dtype, group, memory)
        fitted.append(found)
        qualities += judged
    return fitted, qualities, fresh


def fit_calls(
    key: str, dtype: str, group: Sequence[tuple[ArrayCall, Timing]], memory: Hierarchy
) -> tuple[FittedClass, list[Quality]]:
    """Return the coefficients of calls of one class, and how well they do on points left out."""
    import numpy as np

    from costdb.calibration.fitting import quality

    calls, timings = [call for call, _ in group], [timing for _, timing in group]
    times = [timing.typical_us for timing in timings]
    rows = [_row(call, memory) for call in calls]
    ways = _ways(calls, rows, memory)
    by_lines = [system_of(some, times, memory) for some in ways.values()]
    standard_rows = [
        _standard_row(call, row, memory) for call, row in zip(calls, rows, strict=True)
    ]
    by_elements = system_of(standard_rows, times, memory, _elements_of_a_line(rows, standard_rows))
    kinds = [residual_key(row) for row in rows]
    tested = _tested(by_lines[0], kinds, [float(evaluate(call.elements, {})) for call in calls])
    name = f"{key} {dtype}"
    predicted = left_out(by_lines, tested, name)
    qualities: list[Quality] = []
    if tested:
        standard = left_out([by_elements], tested, name)
        judged = np.array([times[number] for number in tested])
        qualities = [
            quality(name, ELEMENTS_MODEL, judged, standard, chosen=False),
            quality(name, LINES_MODEL, judged, predicted, chosen=True),
        ]
    foretold = {n: us for n, us in zip(tested, predicted.tolist(), strict=True) if us > 0}
    # what is published is fitted to all points; those left out in turn have said how good it is
    best = best_fit(by_lines, np.ones(len(times), dtype=bool))
    way = next(way for way, one in zip(ways, by_lines, strict=True) if one is best.system)
    known = best.coefficients.tolist()
    found = dict(zip(best.system.places, known, strict=True))
    # a line that was measured to cost nothing is known; of other parts there is nothing to say
    kept = {p: us for p, us in found.items() if us > 0 or p == (CALL,) or p[0] in LINES}
    if not tested and len(times) > len(known):
        # of points that differ in nothing that ends a range, the fit itself says what it misses
        foretold = dict(enumerate((best.system.matrix @ best.coefficients).tolist()))
    residuals = _residuals(foretold, kinds, timings)
    fitted = FittedClass(
        key,
        dtype,
        _reaching_far(kept, memory),
        residuals,
        spread=way.spread if len({one.spread for one in ways}) > 1 else None,
        pages=way.pages if len({one.pages for one in ways}) > 1 else None,
        learned=way.learned if (SHORT_WALK,) in kept else None,
    )
    return fitted, qualities


def _ways(
    calls: Sequence[ArrayCall], rows: Sequence[Mapping[Place, float]], memory: Hierarchy
) -> dict[Hierarchy, Sequence[Mapping[Place, float]]]:
    """Return the amounts of calls by what no system tells of its processor, the usual way first.

    That is how lines spread over sets, of how many pages the processor soon knows the place, and
    in how many steps it learns to hand on what was stored. Where too few calls have lines that
    crowd, or come to pages, or walk so far, there is one way.
    """
    crowded, paged, walking = (
        [any(place[0] in names for place in row) for row in rows]
        for names in (CROWDING, (PAGE,), (SHORT_WALK,))
    )
    spreads = dict.fromkeys((memory.spread, *(SPREADS if any(crowded) else ())))
    many, walks = (sum(those) >= _LEAST_TESTED for those in (paged, walking))
    pages = dict.fromkeys((memory.pages, *(PAGES_OF_PROCESSORS if many else ())))
    steps = dict.fromkeys((memory.learned, *(STEPS_OF_PROCESSORS if walks else ())))
    told = [any(one) for one in zip(crowded, paged, walking, strict=True)]
    found = {memory: rows}
    for spread, at_hand, learned in product(spreads, pages, steps):
        way = replace(memory, spread=spread, pages=at_hand, learned=learned)
        if way not in found:
            found[way] = [
                _row(call, way) if tells else row
                for call, row, tells in zip(calls, rows, told, strict=True)
            ]
    return found


def _reaching_far(found: Mapping[Place, float], memory: Hierarchy) -> dict[Place, float]:
    """Return coefficients of lines for all levels beyond the nearest known one.

    Where nothing was measured, lines cost what those from the level before do, not nothing.
    """
    reaching = dict(found)
    for name in LINES:
        known = 0.0
        for key in memory.keys:
            known = reaching.get((name, key), known)
            if known > 0:
                reaching[name, key] = known
    return reaching


def _row(call: ArrayCall, memory: Hierarchy) -> dict[Place, float]:
    row: dict[Place, float] = {}
    for amount in amounts(call, memory):
        row[amount.place] = row.get(amount.place, 0.0) + float(evaluate(amount.amount, {}))
    return row


def _standard_row(
    call: ArrayCall, row: Mapping[Place, float], memory: Hierarchy
) -> dict[Place, float]:
    """Return the amounts of the model that knows calls and elements only, in the same pieces.

    A row that is sorted, transformed or summed is a call of its own within one: their number says
    nothing of how elements lie, as that of the runs of elementwise calls does.
    """
    without = {*LINES, ALONE, CROWDED, CROWDED_STORED, APART_STORED, PAGE, NEAR_PAGE, RUN}
    if by_rows(call):
        without.remove(RUN)
    kept = {p: amount for p, amount in row.items() if p[0] not in without}
    if call.visits:
        own = working_set(call, memory.line_bytes)
        for key, here in memory.shares(own):
            kept[PIECE, key] = float(evaluate(call.elements * here, {}))
    return kept


def _elements_of_a_line(
    rows: Sequence[Mapping[Place, float]], standard_rows: Sequence[Mapping[Place, float]]
) -> float:
    """Return how many elements come with a line from beyond the first level, over all points.

    What pulls the cost of a line towards the level before pulls that of so many elements: models
    whose lines are so many elements each find the same.
    """
    lines = sum(us for row in rows for p, us in row.items() if p[0] in LINES and p[1] != NEAR)
    elements = sum(us for row in standard_rows for p, us in row.items() if p[0] == PIECE)
    return elements / lines if lines and elements else 1.0


def _tested(system: System, kinds: Sequence[str], elements: Sequence[float]) -> list[int]:
    """Return the points, by their number, that are left out in turn.

    Of each kind the least and the greatest stay in, as does what alone determines a coefficient:
    the others say nothing of what lies beyond them, and a prediction there says so itself.
    """
    import numpy as np

    sizes, support = np.array(elements), (system.matrix > 0).sum(axis=0)
    tested = []
    for number, kind in enumerate(kinds):
        alike = sizes[np.array([other == kind for other in kinds])]
        inside = alike.min() < sizes[number] < alike.max()
        if inside and support[system.matrix[number] > 0].min() > 1:
            tested.append(number)
    return tested


def _residuals(
    foretold: Mapping[int, float], kinds: Sequence[str], timings: Sequence[Timing]
) -> dict[str, tuple[float, float]]:
    """Return the ends of measured over predicted time, by how elements lie, and of all.

    Every launch counts by itself, so that what differs from launch to launch is in it. The ends
    of a kind with too few points are those of all.
    """
    import numpy as np

    ratios: dict[str, list[float]] = {RESIDUAL: []}
    counts = Counter(kinds[place] for place in foretold)
    for place, predicted in foretold.items():
        kind = kinds[place] if counts[kinds[place]] >= _LEAST_TESTED else RESIDUAL
        launches = timings[place].each_launch_us
        ratios.setdefault(kind, []).extend(launch / predicted for launch in launches)
    if not foretold:
        # nothing but its own launches says how sure a single point is
        ratios[RESIDUAL] = [
            launch / timing.typical_us for timing in timings for launch in timing.each_launch_us
        ]
    if not ratios[RESIDUAL]:
        ratios[RESIDUAL] = [ratio for kind in ratios.values() for ratio in kind]
    return {
        kind: (float(np.quantile(given, _QUANTILES[0])), float(np.quantile(given, _QUANTILES[1])))
        for kind, given in ratios.items()
    }
