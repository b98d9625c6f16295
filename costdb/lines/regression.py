"""Least-squares fits of the lines model, and the six message regressions.

Import this only to calibrate or validate; it needs numpy (and scipy for non-negative fits).

A model is a list of monomials over the columns of its samples. The standard family S1 to S3
knows bytes only, the lines family M1 to M3 adds the lines touched while marshalling. S1, M1 and
the squares of M3 are certain; S2, S3 and M2 are reconstructed from a damaged description.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]
Monomial = tuple[str, ...]
Model = tuple[Monomial, ...]

_S1: Model = (("messages",), ("bytes",))
_M1: Model = (*_S1, ("lines",))
_M2: Model = (*_M1, ("bytes", "lines"))

MESSAGE_MODELS: Mapping[str, Model] = MappingProxyType(
    {
        "S1": _S1,
        "S2": (*_S1, ("bytes", "bytes")),
        "S3": (*_S1, ("bytes", "bytes"), ("bytes", "bytes", "bytes")),
        "M1": _M1,
        "M2": _M2,
        "M3": (*_M2, ("bytes", "bytes"), ("lines", "lines")),
    }
)
"""Time of one message; ``messages`` is 1 (or the number of equal messages, for S1 and M1)."""


class FitError(ValueError):
    """Samples that cannot be fitted; the message says why in one line."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Measured times with what is known of each.

    Attributes
    ----------
    columns : mapping of str to array, shape (n,)
        Bytes, lines, operations and so on, whatever the model's monomials name.
    microseconds : array, shape (n,)
        The time of each sample.
    """

    columns: Mapping[str, Vector]
    microseconds: Vector


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted model.

    Attributes
    ----------
    model : tuple of monomials
        What was fitted.
    coefficients : tuple of float
        Microseconds for each unit of the monomial in the same place.
    """

    model: Model
    coefficients: tuple[float, ...]

    def __getitem__(self, monomial: str) -> float:
        """Return the coefficient of a monomial named like ``"bytes"`` or ``"bytes*lines"``."""
        names = ["*".join(monomial) for monomial in self.model]
        return self.coefficients[names.index(monomial)]

    def predict(self, columns: Mapping[str, ArrayLike]) -> Vector:
        """Return predicted microseconds, shape (n,)."""
        predicted: Vector = features(columns, self.model) @ np.array(self.coefficients)
        return predicted


def samples(microseconds: ArrayLike, **columns: ArrayLike) -> Samples:
    """Build :class:`Samples`; a column may be a scalar that holds for every sample.

    Raises
    ------
    FitError
        When lengths differ or a number is not finite.
    """
    times = np.atleast_1d(np.asarray(microseconds, dtype=np.float64))
    given: dict[str, Vector] = {}
    for name, column in columns.items():
        values = np.asarray(column, dtype=np.float64)
        if values.shape not in ((), times.shape):
            raise FitError(f"{times.size} times, but {values.size} values of {name}")
        given[name] = np.broadcast_to(values, times.shape)
    for name, values in (("microseconds", times), *given.items()):
        if not np.isfinite(values).all():
            raise FitError(f"{name} holds a value that is not a finite number")
    return Samples(given, times)


def features(columns: Mapping[str, ArrayLike], model: Model) -> Vector:
    """Return the value of every monomial for every sample, shape (n, len(model)).

    Raises
    ------
    FitError
        When the model names a column that is not there.
    """
    absent = sorted({name for monomial in model for name in monomial} - columns.keys())
    if absent:
        raise FitError(f"the samples have no {', '.join(absent)}")
    given = {name: np.asarray(column, dtype=np.float64) for name, column in columns.items()}
    products = [
        np.prod(np.stack(np.broadcast_arrays(*(given[name] for name in monomial))), axis=0)
        for monomial in model
    ]
    matrix: Vector = np.stack(np.broadcast_arrays(*map(np.atleast_1d, products)), axis=-1)
    return matrix


def fit(
    measured: Samples, model: Model, *, nonnegative: bool = False, relative: bool = False
) -> Fit:
    """Fit a model by least squares, its columns scaled to unit norm.

    Parameters
    ----------
    measured : Samples
        At least as many as the model has monomials.
    model : tuple of monomials
        For example ``MESSAGE_MODELS["M1"]``.
    nonnegative : bool
        Allow no negative coefficient, as physics wants for first-order terms.
    relative : bool
        Minimise relative errors (weights ``1/t``) and not microseconds.

    Raises
    ------
    FitError
        For too few samples, or relative errors of times that are not positive.
    """
    target = measured.microseconds
    matrix = features(measured.columns, model)
    if target.size < len(model):
        raise FitError(f"{target.size} samples cannot determine {len(model)} coefficients")
    if relative:
        if not (target > 0).all():
            raise FitError("relative errors need times above zero")
        matrix = matrix / target[:, np.newaxis]
        target = np.ones_like(target)
    norms = np.linalg.norm(matrix, axis=0)
    norms[norms == 0] = 1.0
    if nonnegative:
        # scipy.optimize takes a third of a second to import.
        from scipy.optimize import nnls

        scaled, _ = nnls(matrix / norms, target)
    else:
        scaled, *_ = np.linalg.lstsq(matrix / norms, target, rcond=None)
    return Fit(model, tuple((scaled / norms).tolist()))


def unexplained(microseconds: ArrayLike, predicted: ArrayLike) -> float:
    """Return the published error statistic: 0 is perfect, 1 no better than the mean.

    It is the residual sum of squares over that around the mean, so one minus the usual
    coefficient of determination; the source calls it R2 and accepts a model below 0.01.
    """
    times = np.asarray(microseconds, dtype=np.float64)
    residual = np.sum((times - np.asarray(predicted, dtype=np.float64)) ** 2)
    return float(residual / np.sum((times - times.mean()) ** 2))
