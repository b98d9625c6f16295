"""Fits the array model: what a call takes is known, what each part of it costs is found.

Coefficients are not negative and errors are relative. A class and element type is fitted by
itself; the model without line terms beside it has the same pieces for its elements, so that the
two differ by what the lines say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from costdb.arrays.amounts import (
    APART_ELEMENT,
    APART_LINE,
    CALL,
    CONFLICT_LINE,
    ELEMENT,
    FRESH,
    LINE,
    NEAR,
    PAGE,
    ROWS_ELEMENT,
    amounts,
    piece_keys,
    rate_key,
    residual_key,
    working_set,
)
from costdb.calibration.array_point_calls import call_of
from costdb.calibration.array_points import FRESH_SIZES
from costdb.calibration.section import Quality, Timing
from costdb.expr import evaluate
from costdb.machines import RESIDUAL
from costdb.machines.documents import Json
from costdb.work import ArrayCall

if TYPE_CHECKING:
    from numpy.typing import NDArray

Place = tuple[str, ...]
_QUANTILES = (0.05, 0.95)
_FOLDS = 10
_LEAST_TESTED = 6
_ELEMENTS = (ELEMENT, ROWS_ELEMENT, APART_ELEMENT)
_UNITS = {CALL: "us", "run_us": "us", PAGE: "us/page", **dict.fromkeys(_ELEMENTS, "us/element")}


@dataclass(frozen=True, slots=True)
class FittedClass:
    """One class and element type.

    Attributes
    ----------
    key, dtype : str
    coefficients : mapping of place to float
    residuals : mapping of str to (float, float)
        Low and high quantile of measured over predicted at points that were left out of the fit,
        by how their elements lie.
    """

    key: str
    dtype: str
    coefficients: Mapping[Place, float]
    residuals: Mapping[str, tuple[float, float]]

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
    timings: Sequence[Timing], levels: Sequence[int], line_bytes: int
) -> tuple[list[FittedClass], list[Quality], dict[str, Json]]:
    """Return the coefficients of every class, how well they do, and what fresh lines take."""
    groups: dict[tuple[str, str], list[tuple[ArrayCall, Timing]]] = {}
    for timing in timings:
        if timing.launches_us and "fresh" not in timing.point.features:
            call = call_of(timing.point)
            groups.setdefault((rate_key(call), call.dtype), []).append((call, timing))
    fresh = fresh_lines(timings, line_bytes)
    fitted: list[FittedClass] = []
    qualities: list[Quality] = []
    for (key, dtype), group in sorted(groups.items()):
        found, judged = fit_calls(key, dtype, group, levels, line_bytes)
        fitted.append(found)
        qualities += judged
    return fitted, qualities, fresh


def fresh_lines(timings: Sequence[Timing], line_bytes: int) -> dict[str, Json]:
    """Return what a line takes on top where the system gives its memory, by kind of memory."""
    import numpy as np

    by_kind: dict[str, dict[str, Timing]] = {}
    for timing in timings:
        kind = timing.point.features.get("fresh")
        if kind is not None and timing.launches_us:
            by_kind.setdefault(str(kind), {})[str(timing.point.features["given"])] = timing
    found: dict[str, Json] = {}
    for kind, both in by_kind.items():
        elements, count = FRESH_SIZES[kind]
        if len(both) == 2:
            lines = 8 * elements * count / line_bytes
            kept = both["kept"].median_us
            anew = [sample for launch in both["anew"].launches_us for sample in launch]
            low, high = (max(0.0, float(np.quantile(anew, q)) - kept) / lines for q in _QUANTILES)
            middle = max(0.0, both["anew"].median_us - kept) / lines
            found[kind] = measured(middle, "us/line", min(low, middle), max(high, middle))
    return found


def fit_calls(
    key: str,
    dtype: str,
    group: Sequence[tuple[ArrayCall, Timing]],
    levels: Sequence[int],
    line_bytes: int,
) -> tuple[FittedClass, list[Quality]]:
    """Return the coefficients of calls of one class, and how well they do on points held out."""
    import numpy as np

    times = np.array([timing.median_us for _, timing in group])
    held = np.array([timing.point.held_out for _, timing in group])
    if (~held).sum() == 0:
        held[:] = False
    by_lines = [_row(call, levels, line_bytes) for call, _ in group]
    by_elements = [_standard_row(call, levels, line_bytes) for call, _ in group]
    qualities: list[Quality] = []
    coefficients: dict[Place, float] = {}
    for rows, model in ((by_elements, "call + elements in pieces"), (by_lines, "lines in pieces")):
        places, matrix = _matrix(rows)
        solved = _solve(matrix[~held], times[~held], _growing(places, levels))
        coefficients = dict(zip(places, solved, strict=True))
        predicted = matrix @ np.array(list(coefficients.values()))
        if held.any():
            qualities.append(
                _quality(f"{key} {dtype}", model, predicted[held], times[held], model[0] == "l")
            )
    places, matrix = _matrix(by_lines)
    # what is published is fitted to all points; the held-out ones have said how good it is
    growing = _growing(places, levels)
    known = _solve(matrix, times, growing)
    kinds = [residual_key(row) for row in by_lines]
    elements = [float(evaluate(call.elements, {})) for call, _ in group]
    left_out = _left_out(matrix, times, growing, kinds, elements)
    residuals = _residuals(left_out, kinds, [timing for _, timing in group])
    kept = {p: float(v) for p, v in zip(places, known, strict=True) if v > 0 or p == (CALL,)}
    return FittedClass(key, dtype, _reaching_far(kept, levels), residuals), qualities


def _reaching_far(found: Mapping[Place, float], levels: Sequence[int]) -> dict[Place, float]:
    """Return coefficients of lines for all levels beyond the nearest known one.

    Where nothing was measured, lines cost what those from the level before do, not nothing.
    """
    reaching = dict(found)
    for name in (LINE, APART_LINE, CONFLICT_LINE):
        known = 0.0
        for key in piece_keys(levels):
            known = reaching.get((name, key), known)
            if known > 0:
                reaching[name, key] = known
    return reaching


def _row(call: ArrayCall, levels: Sequence[int], line_bytes: int) -> dict[Place, float]:
    row: dict[Place, float] = {}
    for amount in amounts(call, levels, line_bytes):
        row[amount.place] = row.get(amount.place, 0.0) + float(evaluate(amount.amount, {}))
    return row


def _standard_row(call: ArrayCall, levels: Sequence[int], line_bytes: int) -> dict[Place, float]:
    """Return the amounts of the model that knows calls and elements only, in the same pieces."""
    row = _row(call, levels, line_bytes)
    lines = (LINE, APART_LINE, CONFLICT_LINE)
    without = (*lines, PAGE, "run_us")
    kept = {place: value for place, value in row.items() if place[0] not in without}
    elements = float(evaluate(call.elements, {}))
    size = float(evaluate(working_set(call, line_bytes), {})) if call.visits else 0.0
    near = levels[0]
    for level, key in zip((*levels[1:], float("inf")), piece_keys(levels), strict=True):
        if near < size <= level:
            kept[("piece", key)] = elements
        near = int(level) if level != float("inf") else near
    return kept


def _matrix(rows: Iterable[Mapping[Place, float]]) -> tuple[list[Place], NDArray[Any]]:
    import numpy as np

    found = list(rows)
    places = sorted({p for row in found for p in row if row[p] and p[0] != FRESH})
    return places, np.array([[row.get(place, 0.0) for place in places] for row in found])


def _left_out(
    matrix: NDArray[Any],
    times: NDArray[Any],
    growing: NDArray[Any],
    kinds: Sequence[str],
    elements: Sequence[float],
) -> dict[int, float]:
    """Return what fits without them predict of points, by their number.

    Of each kind the least and the greatest stay in, as does what alone determines a coefficient:
    the others say nothing of what lies beyond them, and a prediction there says so itself.
    """
    import numpy as np

    sizes, support = np.array(elements), (matrix > 0).sum(axis=0)
    tested = []
    for place, kind in enumerate(kinds):
        alike = sizes[np.array([other == kind for other in kinds])]
        inside = alike.min() < sizes[place] < alike.max()
        if inside and support[matrix[place] > 0].min() > 1:
            tested.append(place)
    found: dict[int, float] = {}
    for fold in range(_FOLDS):
        out = tested[fold::_FOLDS]
        if not out:
            continue
        known = np.ones(len(times), dtype=bool)
        known[out] = False
        predicted = matrix[out] @ _solve(matrix[known], times[known], growing)
        found |= {place: float(us) for place, us in zip(out, predicted, strict=True) if us > 0}
    return found


def _residuals(
    left_out: Mapping[int, float], kinds: Sequence[str], timings: Sequence[Timing]
) -> dict[str, tuple[float, float]]:
    """Return the ends of measured over predicted time, by how elements lie, and of all.

    Every launch counts by itself, so that what differs from launch to launch is in it. The ends
    of a kind with too few points are those of all.
    """
    import numpy as np

    ratios: dict[str, list[float]] = {RESIDUAL: []}
    counts = Counter(kinds[place] for place in left_out)
    for place, predicted in left_out.items():
        kind = kinds[place] if counts[kinds[place]] >= _LEAST_TESTED else RESIDUAL
        launches = timings[place].launches_us
        ratios.setdefault(kind, []).extend(median(launch) / predicted for launch in launches)
    if not left_out:
        # nothing but its own launches says how sure a single point is
        ratios[RESIDUAL] = [
            median(launch) / timing.median_us for timing in timings for launch in timing.launches_us
        ]
    if not ratios[RESIDUAL]:
        ratios[RESIDUAL] = [ratio for kind in ratios.values() for ratio in kind]
    return {
        kind: (float(np.quantile(given, _QUANTILES[0])), float(np.quantile(given, _QUANTILES[1])))
        for kind, given in ratios.items()
    }


def _growing(places: Sequence[Place], levels: Sequence[int]) -> NDArray[Any]:
    """Return what makes coefficients of steps from level to level: shape (places, steps).

    Lines from farther away cost what nearer ones do and a step more, never less, so that a price
    grows with the bytes; a level that few points tell of is no cheaper than the one before.
    """
    import numpy as np

    order = {key: number for number, key in enumerate((NEAR, *piece_keys(levels)))}
    steps = np.eye(len(places))
    for row, place in enumerate(places):
        for column, nearer in enumerate(places):
            if len(place) == len(nearer) == 2 and place[0] == nearer[0]:
                steps[row, column] = float(order[nearer[1]] <= order[place[1]])
    return steps


def _solve(matrix: NDArray[Any], times: NDArray[Any], growing: NDArray[Any]) -> NDArray[Any]:
    """Return coefficients with least squared relative errors, none of their steps negative."""
    import numpy as np
    from scipy.optimize import nnls

    weighted = matrix @ growing / times[:, None]
    scale = np.linalg.norm(weighted, axis=0)
    scale[scale == 0] = 1.0
    target = np.ones(len(times))
    weight = np.ones(len(times))
    solution = np.zeros(growing.shape[1])
    for _ in range(8):
        # the median matters, so what lies far off counts less each time
        solution, _ = nnls(weighted / scale * weight[:, None], target * weight, maxiter=10_000)
        error = np.abs(weighted / scale @ solution - target)
        weight = 1 / np.sqrt(np.maximum(error, 0.02) / 0.02)
    found: NDArray[Any] = growing @ (solution / scale)
    return found


def _quality(
    operation: str, model: str, predicted: NDArray[Any], times: NDArray[Any], chosen: bool
) -> Quality:
    import numpy as np

    spread = float(((times - times.mean()) ** 2).sum())
    r2 = float(((times - predicted) ** 2).sum()) / spread if spread else 0.0
    error = float(np.median(np.abs(predicted - times) / times))
    pairs = tuple(zip(times.tolist(), predicted.tolist(), strict=True))
    return Quality(operation, model, r2, error, len(times), chosen, pairs)
