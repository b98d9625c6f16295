"""Fits of the Good and the Bad functions to measured supersteps; needs numpy.

Least squares of relative errors, as times span three decades. The Good function is fitted apart
for supersteps within the cache's capacity (R0) and beyond it (R1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from costdb.lines.regression import FitError, features, fit, samples

Vector = NDArray[np.float64]

_CACHED = ("L", "ghrc", "ghwc", "gM")
_SPLIT = ("L", "ghrc", "ghrm", "ghwc", "ghwm", "gM")
_BAD = ("L", "ghr", "ghw", "gM")


@dataclass(frozen=True, slots=True)
class Measured:
    """One measured superstep: most reads, most writes, all accesses, microseconds."""

    hr: int
    hw: int
    total: int
    microseconds: float


@dataclass(frozen=True, slots=True)
class GoodFit:
    """Coefficients of the Good function by piece, as in a profile.

    Attributes
    ----------
    capacity : int
        Accesses of one processor that count as cached.
    r0, r1 : mapping of str to float, or None
        In microseconds; None where no superstep was measured in that piece.
    """

    capacity: int
    r0: Mapping[str, float] | None
    r1: Mapping[str, float] | None


def fit_good(measured: Sequence[Measured], capacity: int) -> GoodFit:
    """Fit ``HrHwM-c`` to supersteps of the Good kind.

    Parameters
    ----------
    capacity : int
        Elements that a processor's cache holds.

    Raises
    ------
    FitError
        No samples, too few in a piece, samples that cannot tell the coefficients apart, or a
        time that is not above zero.
    """
    if not measured:
        raise FitError("no samples to fit")
    within = [one for one in measured if max(one.hr, one.hw) <= capacity]
    beyond = [one for one in measured if max(one.hr, one.hw) > capacity]
    r0 = _fitted(within, _CACHED, capacity) if within else None
    r1 = _fitted(beyond, _SPLIT, capacity) if beyond else None
    return GoodFit(capacity, None if r0 is None else {**r0, "ghrm": 0.0, "ghwm": 0.0}, r1)


def fit_bad(measured: Sequence[Measured]) -> Mapping[str, float]:
    """Fit ``HrHwM`` to supersteps of the Bad kind; raises as :func:`fit_good`."""
    return _fitted(measured, _BAD, 0)


def predict_good(fitted: GoodFit, measured: Sequence[Measured]) -> Vector:
    """Return the Good function's microseconds, shape (n,).

    Raises
    ------
    FitError
        A superstep lies in a piece that was not fitted.
    """
    predicted = np.empty(len(measured))
    beyond = np.array([max(one.hr, one.hw) > fitted.capacity for one in measured], dtype=bool)
    for piece, inside, side in ((fitted.r0, ~beyond, "within"), (fitted.r1, beyond, "beyond")):
        if piece is not None:
            predicted[inside] = _predicted(piece, measured, fitted.capacity)[inside]
        elif inside.any():
            raise FitError(f"nothing {side} the capacity of {fitted.capacity} was measured")
    return predicted


def predict_bad(fitted: Mapping[str, float], measured: Sequence[Measured]) -> Vector:
    """Return the Bad function's microseconds, shape (n,)."""
    return _predicted(fitted, measured, 0)


def mean_relative_error(measured: Sequence[Measured], predicted: Vector) -> float:
    """Return the mean of ``|predicted - measured| / measured``, the published statistic."""
    times = np.array([one.microseconds for one in measured])
    return float(np.mean(np.abs(predicted - times) / times))


def _fitted(
    measured: Sequence[Measured], names: tuple[str, ...], capacity: int
) -> Mapping[str, float]:
    times = [one.microseconds for one in measured]
    model = tuple((name,) for name in names)
    given = samples(times, **_columns(measured, capacity))
    found = fit(given, model, relative=True)
    relative = features(given.columns, model) / given.microseconds[:, np.newaxis]
    norms = np.linalg.norm(relative, axis=0)
    if np.any(norms == 0) or np.linalg.matrix_rank(relative / norms) < len(names):
        raise FitError(f"the {len(times)} samples cannot tell {', '.join(names)} apart")
    return dict(zip(names, found.coefficients, strict=True))


def _predicted(
    coefficients: Mapping[str, float], measured: Sequence[Measured], capacity: int
) -> Vector:
    columns = _columns(measured, capacity)
    predicted = np.zeros(len(measured))
    for name, coefficient in coefficients.items():
        predicted += coefficient * columns[name]
    return predicted


def _columns(measured: Sequence[Measured], capacity: int) -> dict[str, Vector]:
    hr = np.array([one.hr for one in measured], dtype=np.float64)
    hw = np.array([one.hw for one in measured], dtype=np.float64)
    return {
        "L": np.ones(len(measured)),
        "ghr": hr,
        "ghw": hw,
        "gM": np.array([one.total for one in measured], dtype=np.float64),
        "ghrc": np.minimum(hr, capacity),
        "ghrm": np.maximum(hr - capacity, 0),
        "ghwc": np.minimum(hw, capacity),
        "ghwm": np.maximum(hw - capacity, 0),
    }
