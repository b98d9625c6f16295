"""The steps of pickled messages, fitted; and what composing them leaves of whole calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from costdb.calibration.fitting import (
    TOO_FEW,
    Mask,
    Vector,
    fit_graded,
    graded_columns,
    graded_document,
    held_out,
    predict,
    quality,
    residual_of,
    typical_us,
)
from costdb.calibration.section import Fitted, Quality, Timing
from costdb.expr import evaluate, num
from costdb.machines.stated import measured
from costdb.pickled import pickled_steps
from costdb.work import PICKLED_KINDS, CollectiveKind

# Where allocators and caches change their ways: small blocks, first and second level, memory that
# goes back to the system and comes anew.
LIMITS = (8 << 10, 64 << 10, 200_000, 400_000)
# A composed price that is nearer than this is left as it is.
_WORTH_CORRECTING = 0.15

_Steps = dict[str, dict[str, float]]


def fit_pickled(timings: Sequence[Timing]) -> Fitted:
    """Fit the section ``pickle`` of a profile."""
    found: _Steps = {}
    for name in ("dump", "load", "combine"):
        sizes, times, given = _of(timings, f"pickle.{name}")
        found[name] = fit_graded(sizes[given], times[given], LIMITS)
    sizes, times, given = _of(timings, "pickle.message")
    both = _step(found, "dump", sizes) + _step(found, "load", sizes)
    found["transfer"] = fit_graded(
        sizes[given], times[given], LIMITS, known_us=np.minimum(both, times)[given]
    )
    factors = dict(_factors(timings, found))
    tested = [timing for timing in timings if timing.point.held_out and _is_call(timing)]
    predicted = np.array([_composed(timing, found, factors) for timing in tested])
    section: dict[str, Any] = {name: graded_document(step, LIMITS) for name, step in found.items()}
    section["object_us"] = measured(_each_item(timings, found), "us")
    section["collectives"] = {
        kind: measured(factor, "1", note="measured over composed time")
        for kind, factor in factors.items()
    }
    section["residual"] = residual_of(tested, predicted)
    section["range"] = {"bytes": [float(sizes.min()), float(sizes.max())]}
    return Fitted(
        {"pickle": section},
        tuple(_qualities(timings, found, factors)),
        (
            "Pickled arrays are of doubles in one run, again and again, in a program that has none "
            "larger: from some hundred kB on their memory goes back to the system between calls.",
        ),
    )


def _of(timings: Sequence[Timing], operation: str) -> tuple[Vector, Vector, Mask]:
    chosen = [timing for timing in timings if timing.point.operation == operation]
    sizes = np.array([float(timing.point.features["bytes"]) for timing in chosen])
    return sizes, typical_us(chosen), ~held_out(chosen)


def _is_call(timing: Timing) -> bool:
    name = timing.point.operation.removeprefix("pickle.")
    return name == "message" or name in PICKLED_KINDS


def _step(found: _Steps, name: str, sizes: Vector) -> Vector:
    return predict(graded_columns(sizes, LIMITS), found[name])


def _composed(timing: Timing, found: _Steps, factors: dict[str, float]) -> float:
    """Return the time of a message or collective as the model composes it."""
    features = timing.point.features
    size, none = np.array([float(features["bytes"])]), np.zeros(1)
    name = timing.point.operation.removeprefix("pickle.")
    if name == "message":
        return float(sum(_step(found, step, size)[0] for step in ("dump", "transfer", "load")))
    steps = pickled_steps(CollectiveKind(name), num(int(features["ranks"])))
    total = sum(
        float(evaluate(times, {})) * float(_step(found, step, amount)[0])
        for step, times, amount in (
            ("dump", steps.dump, size),
            ("transfer", steps.transfer, size),
            ("transfer", steps.sizes, none),
            ("load", steps.load, size),
            ("combine", steps.combine, size),
        )
    )
    return total * factors.get(name, 1.0)


def _factors(timings: Sequence[Timing], found: _Steps) -> Iterator[tuple[str, float]]:
    for kind in PICKLED_KINDS:
        given = [
            timing
            for timing in timings
            if timing.point.operation == f"pickle.{kind}" and not timing.point.held_out
        ]
        if not given:
            continue
        ratios = typical_us(given) / np.array([_composed(timing, found, {}) for timing in given])
        if float(np.median(np.abs(ratios - 1))) > _WORTH_CORRECTING:
            yield kind.value, float(np.median(ratios))


def _each_item(timings: Sequence[Timing], found: _Steps) -> float:
    """Return what an item of a list costs above the bytes of an array as large."""
    sizes, times, given = _of(timings, "pickle.items")
    array = sum(_step(found, step, sizes) for step in ("dump", "transfer", "load"))
    extra = np.maximum(times - array, 0.0)[given] / (sizes[given] / 8)
    if not given.any():
        raise ValueError(TOO_FEW)
    large = sizes[given] >= np.median(sizes[given])
    return float(np.median(extra[large]))


def _qualities(
    timings: Sequence[Timing], found: _Steps, factors: dict[str, float]
) -> Iterator[Quality]:
    for operation in dict.fromkeys(timing.point.operation for timing in timings):
        sizes, times, given = _of(timings, operation)
        kept = ~given
        if operation == "pickle.items" or not kept.any():
            continue
        # the standard model: one start-up and one rate, whatever the call is made of
        line = fit_graded(sizes[given], times[given], ())
        straight = predict(graded_columns(sizes, ()), line)
        name = operation.removeprefix("pickle.")
        if name in found:
            ours, label = _step(found, name, sizes), "by grades"
        else:
            chosen = [timing for timing in timings if timing.point.operation == operation]
            ours = np.array([_composed(timing, found, factors) for timing in chosen])
            label = "composed"
            pieces = fit_graded(sizes[given], times[given], LIMITS)
            graded = predict(graded_columns(sizes, LIMITS), pieces)
            yield quality(operation, "by grades alone", times[kept], graded[kept], chosen=False)
        yield quality(operation, "standard", times[kept], straight[kept], chosen=False)
        yield quality(operation, label, times[kept], ours[kept], chosen=True)
