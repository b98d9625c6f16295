"""Fitting message costs to published run times, and intervals to published errors.

A report may print predicted run times without the message costs behind them. The formula is
linear in those costs, so they follow from the printed times by least squares. Never imported
by a prediction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from costdb.choosing import Bound, Chosen, SubjectError
from costdb.evaluate import Missing, Priced
from costdb.expr import evaluate
from costdb.expr.nodes import Value
from costdb.machines import Machine
from costdb.phases.application import Application, bind, price_words

_US_PER_S = 1e6


@dataclass(frozen=True, slots=True)
class Printed:
    """A run time that somebody printed.

    Attributes
    ----------
    choices : mapping
        Every parameter of the application.
    seconds : float
        The printed time.
    half_width_s : float
        Half a unit of the last printed digit: how far the time may be from what was rounded.
    """

    choices: Mapping[str, Chosen]
    seconds: float
    half_width_s: float


@dataclass(frozen=True, slots=True)
class CostFit:
    """Coefficients by symbol.

    Attributes
    ----------
    values, standard_errors : mapping of str to float
        Fitted values, and the errors that the residuals imply.
    relative_residuals : tuple of float
        ``model/printed - 1`` of each observation.
    """

    values: Mapping[str, float]
    standard_errors: Mapping[str, float]
    relative_residuals: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Spread:
    """How far coefficients must reach for an estimate to cover every measured time.

    Attributes
    ----------
    faster : float
        Largest predicted over measured time: rates may be that much higher.
    slower : float
        Largest measured over predicted time where messages hardly count.
    messages : float
        What message costs must be multiplied with so that, with the slower rates, every
        measured time is covered.
    """

    faster: float
    slower: float
    messages: float


def fit_costs(
    application: Application, machine: Machine, names: Sequence[str], printed: Sequence[Printed]
) -> CostFit:
    """Fit the coefficients `names` so that predictions come closest to the printed times.

    Weighted least squares, each observation weighted by the width that its printed digits
    leave; columns are scaled to unit norm. All other coefficients are the machine's.

    Raises
    ------
    SubjectError
        The prediction is not linear in `names`, or cannot be made.
    """
    rows, offsets, weights, times = [], [], [], []
    for observation in printed:
        priced, bound = _priced(application, machine, observation.choices)
        scope = _central(priced, bound)
        scope.update(dict.fromkeys(names, 0))
        offset = _seconds(priced, scope)
        row = [_seconds(priced, {**scope, name: 1}) - offset for name in names]
        both = _seconds(priced, {**scope, **dict.fromkeys(names, 1)})
        if abs(both - offset - sum(row)) > 1e-9 * max(1.0, abs(both)):
            raise SubjectError(f"{application.origin}: not linear in {', '.join(names)}")
        rows.append(row)
        offsets.append(offset)
        times.append(observation.seconds)
        weights.append(1 / observation.half_width_s)
    weight = np.array(weights)
    matrix = np.array(rows) * weight[:, None]
    target = (np.array(times) - np.array(offsets)) * weight
    scale = np.linalg.norm(matrix, axis=0)
    if not np.all(scale > 0):
        raise SubjectError(f"{application.origin}: some of {', '.join(names)} is never used")
    solution = np.linalg.lstsq(matrix / scale, target, rcond=None)[0]
    residual = (matrix / scale) @ solution - target
    freedom = max(1, len(times) - len(names))
    covariance = np.linalg.inv((matrix / scale).T @ (matrix / scale))
    errors = np.sqrt(np.diag(covariance) * float(residual @ residual) / freedom)
    return CostFit(
        values={name: float(v) for name, v in zip(names, solution / scale, strict=True)},
        standard_errors={name: float(v) for name, v in zip(names, errors / scale, strict=True)},
        relative_residuals=tuple(float(r) for r in residual / weight / np.array(times)),
    )


def covering_spread(
    application: Application,
    machine: Machine,
    measured: Sequence[Printed],
    message_share: float = 0.05,
) -> Spread:
    """Return the smallest spread under which every measured time lies in its estimate.

    Parameters
    ----------
    application : Application
    machine : Machine
    measured : sequence of Printed
        Measured run times.
    message_share : float
        Largest part of a predicted time that messages may have for the time to count as
        evidence about the rates.

    Raises
    ------
    SubjectError
        No time is dominated by computation, or a prediction cannot be made.
    """
    parts = []
    for observation in measured:
        priced, bound = _priced(application, machine, observation.choices)
        scope = _central(priced, bound)
        whole = _seconds(priced, scope)
        free = {name: 0 for name in priced.coefficients if name.startswith("message.")}
        parts.append((observation.seconds, _seconds(priced, {**scope, **free}), whole))
    computing = [
        (seen, whole) for seen, rest, whole in parts if whole - rest <= message_share * whole
    ]
    if not computing:
        raise SubjectError(f"{application.origin}: messages count in every measured time")
    slower = max(1.0, *(seen / whole for seen, whole in computing))
    return Spread(
        faster=max(1.0, *(whole / seen for seen, _, whole in parts)),
        slower=slower,
        messages=max(
            slower,
            *(
                (seen - slower * rest) / (whole - rest)
                for seen, rest, whole in parts
                if whole > rest
            ),
        ),
    )


def _priced(
    application: Application, machine: Machine, choices: Mapping[str, Chosen]
) -> tuple[Priced, Bound]:
    bound = bind(application, choices)
    priced = price_words(application, machine, bound.words)
    if isinstance(priced, Missing):
        raise SubjectError(f"{application.origin}: {priced.what} is missing")
    return priced, bound


def _central(priced: Priced, bound: Bound) -> dict[str, Value]:
    # Exact values keep the columns free of cancellation errors.
    scope: dict[str, Value] = dict(bound.numbers)
    scope.update({name: Fraction(q.value) for name, q in priced.coefficients.items()})
    return scope


def _seconds(priced: Priced, scope: Mapping[str, Value]) -> float:
    return float(evaluate(priced.microseconds, scope)) / _US_PER_S
