"""Least squares for the array model: relative errors, no coefficient negative, and left-out points.

What lies far off counts less, as in a fit of least absolute errors. Lines from farther away cost
no less than nearer ones. A level that few of the points' lines come from says little of its own
cost: a faint pull towards the level before it keeps such a cost from explaining noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from costdb.arrays.amounts import FRESH, LINES
from costdb.arrays.hierarchy import NEAR, Hierarchy

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
