"""The six regressions of the lines model and the one by grades, fitted to measured messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from costdb.calibration.fitting import (
    LEAST_US_PER_BYTE,
    Columns,
    Mask,
    Vector,
    fit_above,
    held_out,
    part,
    predict,
    quality,
    repetition,
    residual_of,
    typical_us,
)
from costdb.calibration.section import Fitted, Point, Quality, Timing
from costdb.expr import evaluate, num
from costdb.lines.graded import Place, Scale, amounts, scale
from costdb.lines.regions import bytes_of
from costdb.lines.regression import MESSAGE_MODELS, Samples, fit
from costdb.lines.symbolic import region_line_bounds
from costdb.machines.stated import measured
from costdb.repetition import RANKS
from costdb.work import Region

KIB, MIB = 1 << 10, 1 << 20

# Protocols of MPI libraries switch near these sizes; the step itself is looked for.
PROTOCOL_BYTES = (8 * KIB, 64 * KIB, MIB)
_STEPS_BYTES = tuple(KIB << power for power in range(11))
# Grades of lines: in a first-level cache, in a second-level one, in a shared one, in memory.
_LINE_LIMITS = ((64 * KIB, 256 * KIB, MIB, 8 * MIB), (32 * KIB, 512 * KIB, 4 * MIB))
_WAY_BYTES = (4 * KIB, 64 * KIB)

# Where lines are of another size, the coefficients for each take it up.
LINE_BYTES = 64

# Fewer determine no six coefficients, whatever their sizes.
_LEAST_IN_PIECE = 8

CHOSEN, STANDARD = "lines by grades", "bytes by grades"


def fit_messages(timings: Sequence[Timing]) -> Fitted:
    """Fit every message model on half of the points, and say how each does on the other half."""
    regions = [region_of(timing.point) for timing in timings]
    times, kept = typical_us(timings), held_out(timings)
    given = ~kept
    line = LINE_BYTES
    by = _best_scale(regions, times, given, line)
    graded = columns_of(regions, by)
    coefficients = _fit(part(graded, given), times[given])
    standard = {name: column for name, column in graded.items() if not name.startswith("staging")}
    predictions = dict(_regressions(regions, line, times, given))
    predictions[STANDARD] = predict(standard, _fit(part(standard, given), times[given]))
    predictions[CHOSEN] = predict(graded, coefficients)
    stated = document(by, coefficients)
    tested = [timing for timing in timings if timing.point.held_out]
    stated["residual"] = residual_of(tested, predictions[CHOSEN][kept])
    sizes = _bytes(regions)
    parts: dict[str, Any] = {
        "lines": {
            "message": stated,
            "range": {"message_bytes": [float(sizes.min()), float(sizes.max())]},
        },
    }
    parts |= repetition(RANKS, tested)
    return Fitted(parts, tuple(_qualities(timings, times, kept, predictions)), _notes(by))


def region_of(point: Point) -> Region:
    """Return the region that a point's messages carry."""
    runs, width, pitch, item = (
        num(int(point.features[name]))
        for name in ("runs", "run_elements", "pitch_bytes", "itemsize_bytes")
    )
    size = int(point.features["itemsize_bytes"])
    return Region(size, (runs, width), (pitch, item))


def columns_of(regions: Sequence[Region], by: Scale) -> Columns:
    """Return the units of each coefficient in each message, by the name of its place."""
    rows = [
        {name_of(amount.place): float(evaluate(amount.units, {})) for amount in amounts(region, by)}
        for region in regions
    ]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def name_of(place: Place) -> str:
    """Return a place in a profile as one word."""
    return ".".join(map(str, place))


def document(by: Scale, coefficients: dict[str, float]) -> dict[str, Any]:
    """Return ``lines.message`` with these coefficients."""
    return {
        "alpha_us": measured(coefficients["alpha_us"], "us"),
        "protocols": [
            {
                "above_bytes": above,
                "extra_us": measured(coefficients[f"protocols.{number}.extra_us"], "us"),
            }
            for number, above in enumerate(by.protocols)
        ],
        "bytes": [
            {
                "max_bytes": grade.limit,
                "beta_us_per_byte": measured(
                    coefficients[f"bytes.{number}.beta_us_per_byte"], "us/byte"
                ),
            }
            for number, grade in enumerate(by.bytes)
        ],
        "staging": {
            "call_us": measured(coefficients["staging.call_us"], "us"),
            "loop_us": measured(coefficients["staging.loop_us"], "us"),
            "element_us": measured(coefficients["staging.element_us"], "us"),
            "copy_us_per_byte": measured(coefficients["staging.copy_us_per_byte"], "us/byte"),
            "way_bytes": measured(by.way_bytes, "byte"),
            "lines": [
                {
                    "max_bytes": grade.limit,
                    "gamma_us_per_line": measured(
                        coefficients[f"staging.lines.{number}.gamma_us_per_line"], "us/line"
                    ),
                }
                for number, grade in enumerate(by.lines)
            ],
        },
    }


def _best_scale(regions: Sequence[Region], times: Vector, given: Mask, line: int) -> Scale:
    """Return the scale that leaves least on the points to fit, its protocol step looked for."""
    whole = given & np.array([region.counts[0] == num(1) for region in regions])
    rows = [region for region, is_row in zip(regions, whole, strict=True) if is_row]
    step = min(
        _STEPS_BYTES,
        key=lambda above: _left(
            columns_of(rows, scale(line, KIB, (above,), PROTOCOL_BYTES, ())), times[whole]
        ),
    )
    used = [region for region, is_given in zip(regions, given, strict=True) if is_given]
    scales = [
        scale(line, way, (step,), PROTOCOL_BYTES, limits)
        for way, limits in product(_WAY_BYTES, _LINE_LIMITS)
    ]
    return min(scales, key=lambda by: _left(columns_of(used, by), times[given]))


def _left(columns: Columns, times: Vector) -> float:
    errors = predict(columns, _fit(columns, times)) / times - 1
    return float(np.mean(errors**2))


def _fit(columns: Columns, times: Vector) -> dict[str, float]:
    floors = {name: LEAST_US_PER_BYTE for name in columns if name.endswith("us_per_byte")}
    return fit_above(columns, times, floors)


def _regressions(
    regions: Sequence[Region], line: int, times: Vector, given: Mask
) -> Iterator[tuple[str, Vector]]:
    """Yield the predictions of S1 to M3, plain and with coefficients of their own by protocol."""
    columns = {
        "messages": np.ones(times.size),
        "bytes": _bytes(regions),
        "lines": _lines(regions, line),
    }
    limits = _limits(columns["bytes"][given])
    piece = np.searchsorted(limits, columns["bytes"], side="left")
    for name, model in MESSAGE_MODELS.items():
        for label, group in ((name, np.zeros(times.size)), (f"{name} in pieces", piece)):
            predicted = np.zeros(times.size)
            for number in np.unique(group):
                inside = group == number
                samples = Samples(part(columns, inside & given), times[inside & given])
                found = fit(samples, model, nonnegative=True, relative=True)
                predicted[inside] = found.predict(part(columns, inside))
            yield label, predicted


def _limits(sizes: Vector) -> list[int]:
    """Return the protocols' limits that leave enough points in each piece for its own fit."""
    limits: list[int] = []
    for limit in PROTOCOL_BYTES:
        low = limits[-1] if limits else 0
        inside = np.count_nonzero((sizes > low) & (sizes <= limit))
        if min(inside, np.count_nonzero(sizes > limit)) >= _LEAST_IN_PIECE:
            limits.append(limit)
    return limits


def _bytes(regions: Sequence[Region]) -> Vector:
    return np.array([float(evaluate(bytes_of(region), {})) for region in regions])


def _lines(regions: Sequence[Region], line: int) -> Vector:
    bounds = (region_line_bounds(region, line) for region in regions)
    return np.array([float(evaluate(lower + upper, {})) / 2 for lower, upper in bounds])


def _qualities(
    timings: Sequence[Timing], times: Vector, kept: Mask, predictions: dict[str, Vector]
) -> Iterator[Quality]:
    operations = [timing.point.operation for timing in timings]
    for operation in ("message", *sorted(set(operations))):
        inside = kept & np.array([name.startswith(operation) for name in operations])
        if not inside.any():
            continue
        for model, predicted in predictions.items():
            yield quality(
                operation, model, times[inside], predicted[inside], chosen=model == CHOSEN
            )


def _notes(by: Scale) -> tuple[str, ...]:
    return (
        "One message is a step of a halo exchange: the region is copied to a buffer, sent while "
        "another is received, and that is copied to its region. Contiguous regions are not copied.",
        "Buffers were touched before: a region that fits a cache was found there.",
        f"The message protocol's step was found above {by.protocols[0]:g} bytes.",
    )
