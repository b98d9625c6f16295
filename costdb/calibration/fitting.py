"""Fits and their statistics, as all sections make them: relative, not negative, held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from costdb.calibration.section import Quality, Timing
from costdb.graded import grades_of
from costdb.lines.regression import unexplained
from costdb.machines.documents import Json, measured
from costdb.repetition import SECTION
from costdb.typical import typical

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]
Columns = Mapping[str, Vector]

# No memory or network moves a byte faster than a terabyte a second: a fit that finds less has
# explained the bytes by something else.
LEAST_US_PER_BYTE = 1e-6

TOO_FEW = "too few points were measured for a fit: give it more time"
_QUANTILES = (0.04, 0.96)
_LAUNCHES_HELD = 0.9


def fit_above(
    columns: Columns,
    times_us: Vector,
    floors: Mapping[str, float] | None = None,
    known_us: Vector | float = 0.0,
) -> dict[str, float]:
    """Return the coefficients, none below its floor, with the least relative squared errors.

    Parameters
    ----------
    columns : mapping of str to array, shape (n,)
        Units of each coefficient in each sample; a column of zeros gets its floor.
    times_us : array, shape (n,)
        Above zero.
    floors : mapping of str to float, optional
        0 where none is given.
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

    names = list(columns)
    matrix = np.stack([columns[name] for name in names], axis=-1) / times_us[:, np.newaxis]
    least = np.array([(floors or {}).get(name, 0.0) for name in names])
    norms = np.linalg.norm(matrix, axis=0)
    norms[norms == 0] = 1.0
    scaled, _ = nnls(matrix / norms, 1.0 - known_us / times_us - matrix @ least)
    return dict(zip(names, (scaled / norms + least).tolist(), strict=True))


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


def held_out(timings: Sequence[Timing]) -> Mask:
    """Return which points were kept from the fit, shape (n,)."""
    return np.array([timing.point.held_out for timing in timings], dtype=bool)


def quality(
    operation: str, model: str, times_us: Vector, predicted_us: Vector, *, chosen: bool
) -> Quality:
    """Return how well a model predicts points that were kept from its fit.

    Raises
    ------
    ValueError
        None was kept.
    """
    if not times_us.size:
        raise ValueError(TOO_FEW)
    errors = np.abs(predicted_us - times_us) / times_us
    spread = times_us.size > 1 and bool(np.ptp(times_us) > 0)
    r2 = unexplained(times_us, predicted_us) if spread else 0.0
    pairs = tuple(zip(times_us.tolist(), predicted_us.tolist(), strict=True))
    return Quality(operation, model, r2, float(np.median(errors)), times_us.size, chosen, pairs)


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
    ratios = np.array(
        [
            launch / predicted
            for timing, predicted in zip(timings, predicted_us.tolist(), strict=True)
            for launch in timing.each_launch_us
        ]
    )
    # "lower" and "higher" take times that were seen, so that few of them do not narrow it
    low = float(np.quantile(ratios, _QUANTILES[0], method="lower"))
    high = float(np.quantile(ratios, _QUANTILES[1], method="higher"))
    note = "holds nine in ten launches' times of the points that were kept from the fit"
    return measured(1.0, "1", min(low, 1.0), max(high, 1.0), note)


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
    return {} if stated is None else {SECTION: {kind: stated}}


def graded_columns(sizes: Vector, limits: Sequence[float]) -> Columns:
    """Return one call, and the part of each size that lies in each grade."""
    columns = {"call_us": np.ones(sizes.size)}
    for number, grade in enumerate(grades_of(limits)):
        most = sizes if grade.limit is None else np.minimum(sizes, grade.limit)
        columns[f"pieces.{number}"] = np.maximum(most - grade.above, 0.0)
    return columns


def fit_graded(
    sizes: Vector,
    times_us: Vector,
    limits: Sequence[float],
    *,
    times: Vector | float = 1.0,
    known_us: Vector | float = 0.0,
) -> dict[str, float]:
    """Fit `times` repetitions of a step that takes so long a call and a byte, by grade."""
    columns = {name: column * times for name, column in graded_columns(sizes, limits).items()}
    floors = {name: LEAST_US_PER_BYTE for name in columns if name != "call_us"}
    return fit_above(columns, times_us, floors, known_us)


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
