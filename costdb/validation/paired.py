"""Which of two models of the same points errs less, as far as the points can tell.

Both models predict points that no fit of theirs has seen. Points are drawn anew, with what each
launch measured there, and both models judged on every draw: only a difference of one sign in
nearly all draws is one between the models, and not between the points that happened to be taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from costdb.calibration.section import Quality

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DRAWS = 1000
_QUANTILES = (0.05, 0.95)
_SAME = 0.01
_LEAST_POINTS = 5
"""Draws of fewer say nothing of others."""


class Better(StrEnum):
    """How a model compares with the standard one."""

    SAME = "same"
    LESS = "less"
    NOISE = "within noise"
    MORE = "more"


@dataclass(frozen=True, slots=True)
class Difference:
    """What a model leaves or errs, less what the standard one does.

    Attributes
    ----------
    low, high : float
        Ends of the interval that holds nine in ten draws.
    verdict : Better
        What the interval says.
    """

    low: float
    high: float
    verdict: Better


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two models of the same points: by what they leave unexplained, and by the median error."""

    r2: Difference
    median_error: Difference

    @property
    def verdicts(self) -> tuple[Better, Better]:
        """What either figure says."""
        return self.r2.verdict, self.median_error.verdict


def compare(standard: Quality, ours: Quality) -> Comparison:
    """Return how a model compares with the standard one on the points of both.

    Parameters
    ----------
    standard, ours : Quality
        Of the same points in the same order.
    """
    return compare_all([(standard, ours)])


def compare_all(models: Sequence[tuple[Quality, Quality]]) -> Comparison:
    """Return how models of several operations compare with the standard ones of the same.

    What is left unexplained is the mean over the operations, so that those which take longest do
    not speak for all; the median error is of all points. Points are drawn within each operation.

    Parameters
    ----------
    models : sequence of (Quality, Quality)
        The standard model of each operation and ours, of the same points in the same order.
    """
    drawn = [_draw(standard, ours) for standard, ours in models]
    if all(one.same for one in drawn):
        nothing = Difference(0.0, 0.0, Better.SAME)
        return Comparison(nothing, nothing)
    left = np.mean([_left(one.times, one.ours) - _left(one.times, one.theirs) for one in drawn], 0)
    ours = np.median(np.hstack([_errors(one.times, one.ours) for one in drawn]), axis=1)
    theirs = np.median(np.hstack([_errors(one.times, one.theirs) for one in drawn]), axis=1)
    few = sum(one.points for one in drawn) < _LEAST_POINTS
    return Comparison(_difference(left, few), _difference(ours - theirs, few))


def repeats_within(models: Iterable[Quality]) -> float | None:
    """Return how far a launch is from the median of the others, at the median of all points.

    No model of one time for each point can tell a launch closer. None where launches were not
    kept, or there was but one.
    """
    found = []
    for model in models:
        for launches in model.launches_us:
            for number, taken in enumerate(launches):
                others = launches[:number] + launches[number + 1 :]
                if others:
                    found.append(abs(taken / float(np.median(others)) - 1))
    return float(np.median(found)) if found else None


@dataclass(frozen=True, slots=True)
class _Draws:
    """Times of drawn points and what both models predict of them, shape (draws, points)."""

    times: NDArray[Any]
    theirs: NDArray[Any]
    ours: NDArray[Any]
    points: int
    same: bool


def _draw(standard: Quality, ours: Quality) -> _Draws:
    measured = np.array([taken for taken, _ in ours.pairs])
    theirs, own = (np.array([fitted for _, fitted in one.pairs]) for one in (standard, ours))
    same = bool(np.all(np.abs(theirs - own) <= _SAME * np.maximum(theirs, own)))
    random = np.random.default_rng(len(measured))
    chosen = random.integers(0, len(measured), (_DRAWS, len(measured)))
    times = _drawn(measured, ours.launches_us, chosen, random)
    return _Draws(times, theirs[chosen], own[chosen], len(measured), same)


def _drawn(
    measured: NDArray[Any],
    launches: Sequence[Sequence[float]],
    chosen: NDArray[Any],
    random: np.random.Generator,
) -> NDArray[Any]:
    """Return times of the chosen points, of launches drawn anew where as many of all are known."""
    count = len(launches[0]) if launches else 0
    if count == 0 or any(len(of_point) != count for of_point in launches):
        taken: NDArray[Any] = measured[chosen]
        return taken
    drawn = random.integers(0, count, (*chosen.shape, count))
    found: NDArray[Any] = np.median(np.array(launches)[chosen[..., np.newaxis], drawn], axis=-1)
    return found


def _left(times: NDArray[Any], predicted: NDArray[Any]) -> NDArray[Any]:
    """Return what is left unexplained in each draw, shape (draws,)."""
    spread = ((times - times.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    left: NDArray[Any] = ((times - predicted) ** 2).sum(axis=1) / np.where(spread > 0, spread, 1.0)
    return left


def _errors(times: NDArray[Any], predicted: NDArray[Any]) -> NDArray[Any]:
    found: NDArray[Any] = np.abs(predicted - times) / times
    return found


def _difference(draws: NDArray[Any], few: bool) -> Difference:
    low, high = (float(np.quantile(draws, q)) for q in _QUANTILES)
    verdict = Better.LESS if high < 0 else Better.MORE if low > 0 else Better.NOISE
    return Difference(low, high, Better.NOISE if few else verdict)
