"""Rates of one-sided references by pattern, fitted to their measured times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from costdb.calibration.fitting import (
    Vector,
    fit_above,
    held_out,
    predict,
    quality,
    residual_of,
    typical_us,
)
from costdb.calibration.ranks.remote_beside_fit import Resumption
from costdb.calibration.section import Fitted, Quality, Timing
from costdb.machines.stated import measured

_PATTERNS = ("baseline", "coalesce", "vector", "local")
_OF_MANY = ("coalesce", "vector")
_KINDS = ("read", "write")
_SYNCHRONIZATION = ("fence", "lock", "flush")
# A word takes no less than this, whatever else explains the times: eight terabytes a second.
_LEAST_US_PER_WORD = 1e-6

_Coefficients = dict[str, float]


def fit_remote(timings: Sequence[Timing]) -> Fitted:
    """Fit the section ``pgas`` of a profile, and what barriers take."""
    ranks = int(timings[0].point.features["ranks"])
    found = {
        (pattern, kind): _fit(_of(timings, pattern, kind), pattern)
        for pattern in _PATTERNS
        for kind in _KINDS
    }
    tested = [
        (timing, float(predicted))
        for (pattern, kind), coefficients in found.items()
        for timing, predicted in _tested(_of(timings, pattern, kind), coefficients)
    ]
    resumed = Resumption(timings, {kind: found["baseline", kind]["word"] for kind in _KINDS})
    tested += resumed.tested()
    section: dict[str, Any] = {
        "rates": {
            pattern: {f"t{ranks}": {kind: _rate(found[pattern, kind]) for kind in _KINDS}}
            for pattern in _PATTERNS
        },
        "call_us": {
            pattern: {
                f"t{ranks}": {kind: measured(found[pattern, kind]["call"], "us") for kind in _KINDS}
            }
            for pattern in _OF_MANY
        },
        **resumed.document(),
        "synchronization": {
            f"{name}_us": measured(float(typical_us(_named(timings, name))[0]), "us")
            for name in _SYNCHRONIZATION
        },
        "optimizations": {pattern: list(_KINDS) for pattern in _OF_MANY},
        "residual": residual_of([timing for timing, _ in tested], np.array([p for _, p in tested])),
    }
    section["range"] = {"call_words": _range(timings)}
    barrier = float(typical_us(_named(timings, "barrier"))[0])
    steps = max(1, (ranks - 1).bit_length())
    parts: dict[str, Any] = {
        "pgas": section,
        "collectives": {"barrier_step_us": measured(barrier / steps, "us")},
    }
    qualities = (*_qualities(timings, found), *resumed.qualities())
    return Fitted(parts, qualities, _notes(timings, ranks))


def _named(timings: Sequence[Timing], name: str) -> list[Timing]:
    return [timing for timing in timings if timing.point.operation == f"remote.{name}"]


def _of(timings: Sequence[Timing], pattern: str, kind: str) -> list[Timing]:
    return _named(timings, f"{pattern}.{kind}")


def _range(timings: Sequence[Timing]) -> list[float]:
    """Return the fewest and the most words of a call that every pattern was measured with."""
    words = [
        [float(timing.point.features["words"]) for timing in _of(timings, pattern, "read")]
        for pattern in _OF_MANY
    ]
    return [max(map(min, words)), min(map(max, words))]


def _columns(timings: Sequence[Timing], *, calls: bool) -> dict[str, Vector]:
    words = np.array([float(timing.point.features["words"]) for timing in timings])
    return {"call": np.ones(words.size), "word": words} if calls else {"word": words}


def _fit(timings: Sequence[Timing], pattern: str) -> _Coefficients:
    given = [timing for timing in timings if not timing.point.held_out]
    columns = _columns(given, calls=pattern in _OF_MANY)
    return fit_above(columns, typical_us(given), {"word": _LEAST_US_PER_WORD})


def _tested(
    timings: Sequence[Timing], coefficients: _Coefficients
) -> Iterator[tuple[Timing, float]]:
    kept = [timing for timing in timings if timing.point.held_out]
    predicted = predict(_columns(kept, calls="call" in coefficients), coefficients)
    yield from zip(kept, predicted.tolist(), strict=True)


def _rate(coefficients: _Coefficients) -> dict[str, Any]:
    return measured(1e6 / coefficients["word"], "double words/s")


def _qualities(
    timings: Sequence[Timing], found: dict[tuple[str, str], _Coefficients]
) -> Iterator[Quality]:
    for (pattern, kind), coefficients in found.items():
        points = _of(timings, pattern, kind)
        times, kept = typical_us(points), held_out(points)
        ours = predict(_columns(points, calls="call" in coefficients), coefficients)
        operation = f"remote.{pattern}.{kind}"
        if "call" in coefficients:
            words = _columns(points, calls=False)
            given = {name: column[~kept] for name, column in words.items()}
            rate = predict(words, fit_above(given, times[~kept]))
            yield quality(operation, "rate alone", times[kept], rate[kept], chosen=False)
        label = "rate and call" if "call" in coefficients else "rate"
        yield quality(operation, label, times[kept], ours[kept], chosen=True)


def _notes(timings: Sequence[Timing], ranks: int) -> tuple[str, ...]:
    rates = []
    for kind in _KINDS:
        points = _of(timings, "pipelined", kind)
        words = np.array([float(timing.point.features["words"]) for timing in points])
        rates.append(f"{float(np.median(words / typical_us(points))):.2f} million {kind}s")
    return (
        f"Rates of remote references are those of {ranks} ranks that all reach into the next "
        "one's window at once, from Python loops.",
        f"Scalar references that are flushed together instead: {' and '.join(rates)} a second.",
    )
