"""Steps of collectives beside the messages they are composed of, and the passes of scans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from costdb.calibration.fitting import (
    LEAST_US_PER_BYTE,
    TOO_FEW,
    Columns,
    Vector,
    fit_above,
    fit_graded,
    graded_columns,
    graded_document,
    held_out,
    part,
    predict,
    quality,
    residual_of,
    typical_us,
)
from costdb.calibration.section import Fitted, Quality, Timing
from costdb.expr import evaluate, num
from costdb.lines.derived import DERIVED_KINDS
from costdb.lines.steps import collective_steps, pieces_in_a_step
from costdb.machines.stated import measured
from costdb.work import COMBINING, CollectiveKind

KIB, MIB = 1 << 10, 1 << 20
# Just above the sizes where short messages end there are steps, which steep grades take up.
LIMITS = (8 * KIB, 12 * KIB, 16 * KIB, 20 * KIB, 64 * KIB, 512 * KIB)
_BLOCK_LIMITS = (32 * KIB, 256 * KIB, MIB)
_DIRECTIONS = ("along", "across")

_Coefficients = dict[str, float]


def fit_collectives(timings: Sequence[Timing]) -> Fitted:
    """Fit ``collectives`` and ``lines.scan`` of a profile."""
    named = {kind: _named(timings, f"collective.{kind}") for kind in ("message", *CollectiveKind)}
    # an earlier version measured fewer kinds
    kinds = {kind: points for kind, points in named.items() if points}
    if not {"message", CollectiveKind.PREFIX} <= kinds.keys():
        raise ValueError(TOO_FEW)
    ranks = int(timings[0].point.features["ranks"])
    each = {kind: _fit_steps(points, kind, ranks) for kind, points in kinds.items()}
    stated: dict[str, Any] = {}
    qualities: list[Quality] = []
    tested: list[tuple[Timing, float]] = []
    for kind, points in kinds.items():
        if kind == "message":
            continue
        composed = _predicted(points, each["message"], kind, ranks)
        own = _predicted(points, each[kind], kind, ranks)
        line = _fit_line(points)
        times, kept = typical_us(points), held_out(points)
        if not kept.any():
            raise ValueError(TOO_FEW)
        errors = [_error(predicted[kept], times[kept]) for predicted in (composed, own)]
        # what is combined at each step is no part of a message; and where nothing is stated,
        # another kind stands in for some
        use_own = errors[1] < errors[0] or kind in COMBINING or kind in DERIVED_KINDS
        for model, predicted, chosen in (
            ("standard", line, False),
            ("messages", composed, not use_own),
            ("own steps", own, use_own),
        ):
            name = f"collective.{kind}"
            qualities.append(quality(name, model, times[kept], predicted[kept], chosen=chosen))
        if use_own:
            stated[kind] = graded_document(each[kind], LIMITS)
            tested += _pairs(points, own)
    sizes = _sizes(kinds["message"])
    section: dict[str, Any] = {
        "steps": stated,
        "residual": residual_of([timing for timing, _ in tested], np.array([p for _, p in tested])),
        "range": {"bytes": [float(sizes.min()), float(sizes.max())]},
    }
    scan, of_scans, elements = _fit_scans(timings, each["prefix"], ranks)
    parts: dict[str, Any] = {
        "collectives": section,
        "lines": {"scan": scan, "range": {"scan_elements": elements}},
    }
    return Fitted(parts, (*qualities, *of_scans))


def _error(predicted: Vector, times: Vector) -> float:
    return float(np.median(np.abs(predicted - times) / times))


def _named(timings: Sequence[Timing], operation: str) -> list[Timing]:
    return [timing for timing in timings if timing.point.operation == operation]


def _sizes(points: Sequence[Timing]) -> Vector:
    return np.array([float(timing.point.features["bytes"]) for timing in points])


def _steps(kind: str, ranks: int) -> float:
    if kind == "message":
        return 1.0
    return float(evaluate(collective_steps(CollectiveKind(kind), num(ranks)), {}))


def _carried(points: Sequence[Timing], kind: str, ranks: int) -> Vector:
    """Return the bytes of one step of each point."""
    sizes = _sizes(points)
    if kind == "message":
        return sizes
    return sizes * float(evaluate(pieces_in_a_step(CollectiveKind(kind), num(ranks)), {}))


def _fit_steps(points: Sequence[Timing], kind: str, ranks: int) -> _Coefficients:
    given, sizes = ~held_out(points), _carried(points, kind, ranks)
    steps = _steps(kind, ranks)
    return fit_graded(sizes[given], typical_us(points)[given], LIMITS, times=steps)


def _fit_line(points: Sequence[Timing]) -> Vector:
    """Return what one start-up and one rate for the whole collective predict."""
    given, sizes = ~held_out(points), _sizes(points)
    found = fit_graded(sizes[given], typical_us(points)[given], ())
    return predict(graded_columns(sizes, ()), found)


def _predicted(points: Sequence[Timing], step: _Coefficients, kind: str, ranks: int) -> Vector:
    columns = graded_columns(_carried(points, kind, ranks), LIMITS)
    return _steps(kind, ranks) * predict(columns, step)


def _pairs(points: Sequence[Timing], predicted: Vector) -> Iterator[tuple[Timing, float]]:
    for timing, each in zip(points, predicted.tolist(), strict=True):
        if timing.point.held_out:
            yield timing, each


def _fit_scans(
    timings: Sequence[Timing], prefix: _Coefficients, ranks: int
) -> tuple[dict[str, Any], list[Quality], list[float]]:
    """Return ``lines.scan``, how well it does, and the range of elements."""
    section: dict[str, Any] = {}
    qualities: list[Quality] = []
    tested: list[tuple[Timing, float]] = []
    counts: list[float] = []
    for direction in _DIRECTIONS:
        section[direction] = {}
        for name, suffix in (("alone", "_alone"), ("spread", "")):
            points = _named(timings, f"scan.{direction}{suffix}")
            times, kept = typical_us(points), held_out(points)
            columns = _pass_columns(points)
            counts += columns["element_us"].tolist()
            known = np.zeros(times.size)
            if name == "spread":
                edges = graded_columns(_edge_bytes(points, direction), LIMITS)
                known = _steps("prefix", ranks) * predict(edges, prefix)
            found = _fit_pass(part(columns, ~kept), times[~kept], np.minimum(known, times)[~kept])
            predicted = predict(columns, found) + known
            bytes_only = {
                key: columns[key] for key in columns if key not in ("loop_us", "element_us")
            }
            same = _fit_pass(part(bytes_only, ~kept), times[~kept], np.zeros(int((~kept).sum())))
            section[direction][name] = _pass_document(found)
            tested += _pairs(points, predicted)
            operation = points[0].point.operation
            standard = predict(bytes_only, same)
            qualities += [
                quality(operation, "bytes by grades", times[kept], standard[kept], chosen=False),
                quality(operation, "loops by grades", times[kept], predicted[kept], chosen=True),
            ]
    section["residual"] = residual_of([t for t, _ in tested], np.array([p for _, p in tested]))
    return section, qualities, [min(counts), max(counts)]


def _pass_columns(points: Sequence[Timing]) -> Columns:
    rows, columns, item = (
        np.array([float(timing.point.features[name]) for timing in points])
        for name in ("rows", "columns", "itemsize_bytes")
    )
    graded = graded_columns(rows * columns * item, _BLOCK_LIMITS)
    return {**graded, "loop_us": rows, "element_us": rows * columns}


def _edge_bytes(points: Sequence[Timing], direction: str) -> Vector:
    across = "rows" if direction == "along" else "columns"
    return np.array(
        [
            float(timing.point.features[across]) * float(timing.point.features["itemsize_bytes"])
            for timing in points
        ]
    )


def _fit_pass(columns: Columns, times: Vector, known: Vector) -> _Coefficients:
    floors = {name: LEAST_US_PER_BYTE for name in columns if name.startswith("pieces")}
    return fit_above(columns, times, floors, known)


def _pass_document(found: _Coefficients) -> dict[str, Any]:
    return {
        **graded_document(found, _BLOCK_LIMITS),
        "loop_us": measured(found["loop_us"], "us"),
        "element_us": measured(found["element_us"], "us"),
    }
