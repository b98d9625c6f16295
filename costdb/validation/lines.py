"""The lines paper's regressions, on the samples that a calibration stored.

R2 is the paper's: the residual sum of squares over that around the mean, 0 perfect. Models are
fitted as printed, by ordinary least squares to one half of the points, and judged on the other.
Beside them stands the model that predictions use, and the standard one given the same pieces.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from costdb.calibration.array_calls.point_calls import call_of
from costdb.calibration.fitting import Mask, Vector, held_out, part, typical_us
from costdb.calibration.ranks.message_fit import LINE_BYTES, region_of
from costdb.calibration.section import Timing
from costdb.expr import evaluate, num
from costdb.lines.regions import bytes_of
from costdb.lines.regression import (
    MESSAGE_MODELS,
    SCAN_MODELS,
    STATEMENT_MODELS,
    FitError,
    Model,
    Samples,
    fit,
    unexplained,
)
from costdb.lines.steps import doubling_steps
from costdb.lines.symbolic import region_line_bounds
from costdb.published import (
    LINES,
    SCAN_RATIO,
    TRAINING_POINTS,
    message_ratios,
)
from costdb.validation.pieces import CLASS, NOTES, Pair, in_pieces, pieces_row, pooled_rows
from costdb.validation.results import CannotValidateError, Row, Section, Verdict
from costdb.validation.stored import stored_timings
from costdb.work import Region

NAME = "lines"
TITLE = "lines: regressions over bytes alone, and over bytes and cache lines touched"
_MODEL = "lines"
_SCANS = ("scan.along", "scan.across")
_SECTIONS = ("messages", "collectives", "arrays")
_SAME = 0.01
_NOTES = (
    "S1 to M3, scans and statements in one piece: ordinary least squares to half of the points, "
    "R2 on the other half, as the paper does. Its R2 survive only up to a power of ten for each "
    "platform, so ratios are what can be compared.",
    *NOTES,
)

Columns = Mapping[str, Vector]


def validate_lines(connection: sqlite3.Connection, machine: str) -> Section:
    """Return the section; what of the calibration is not stored is left out and told."""
    rows: list[Row] = []
    skipped: list[str] = []
    pieces: dict[str, Pair] = {}
    for name in _SECTIONS:
        try:
            timings = stored_timings(connection, machine, name).timings
            rows += _ROWS[name](timings)
            pieces.update(in_pieces(name, timings))
        except CannotValidateError as problem:
            skipped.append(str(problem))
    rows += (pieces_row(operation, [pair], CLASS) for operation, pair in pieces.items())
    rows += pooled_rows(pieces)
    return Section(NAME, TITLE, tuple(rows), _NOTES, "; ".join(skipped))


def message_rows(timings: Sequence[Timing]) -> Iterator[Row]:
    """Yield the six regressions for rows, columns and strides, apart and together."""
    regions = [region_of(timing.point) for timing in timings]
    columns = {
        "messages": np.ones(len(timings)),
        "bytes": np.array([float(evaluate(bytes_of(region), {})) for region in regions]),
        "lines": _lines(regions),
    }
    for operation, inside in _by_operation(timings, "message"):
        found = _left(columns, timings, inside, MESSAGE_MODELS)
        if isinstance(found, str):
            yield _unfitted(operation, "R2 of S1 to M3", found)
            continue
        least = min(found, key=lambda name: found[name])
        for name, left in found.items():
            low, high = message_ratios(name)
            ratio = left / found["M1"]
            same = f"{ratio:.2f} of M1"
            verdict = Verdict.UNJUDGED
            if name == "S1" and abs(ratio - 1) > _SAME:
                verdict = Verdict.of(ratio > 1)
            if name == "M3":
                verdict = Verdict.of(least == name)
            yield Row(
                _MODEL,
                operation,
                f"R2 of {name}",
                "1" if name == "M1" else f"{low:.2f} .. {high:.2f} of M1",
                LINES,
                f"{left:.3g}" if name == "M1" else f"{left:.3g}, {same}",
                verdict,
                {"r2": left, "r2_over_m1": ratio},
                _few(inside, timings, verdict)
                + (f"{least} is best here" if name == "M3" and least != name else ""),
            )


def scan_rows(timings: Sequence[Timing]) -> Iterator[Row]:
    """Yield the standard and the lines model of scans over ranks, in either direction."""
    points = [timing for timing in timings if timing.point.operation in _SCANS]
    if not points:
        raise CannotValidateError("no scans are stored")
    columns = _scan_columns(points)
    for operation, inside in _by_operation(points, "scan"):
        found = _left(columns, points, inside, SCAN_MODELS)
        row = _ratio_row(operation, found, f"over {SCAN_RATIO:.0f} on the T3E", LINES)
        yield replace(row, remark=row.remark + _few(inside, points, row.verdict))


def statement_rows(timings: Sequence[Timing]) -> Iterator[Row]:
    """Yield both models of array statements, by class and element type."""
    points = [timing for timing in timings if "form" in timing.point.features]
    calls = [call_of(timing.point) for timing in points]
    columns = {
        "operations": np.array([float(evaluate(call.elements, {})) for call in calls]),
        "accesses": np.array([sum(_accesses(v.region) for v in call.visits) for call in calls]),
        "lines": np.array([_lines([v.region for v in call.visits]).sum() for call in calls]),
    }
    operations = sorted({timing.point.operation for timing in points})
    for operation in operations:
        inside = np.array([timing.point.operation == operation for timing in points])
        found = _left(columns, points, inside, STATEMENT_MODELS)
        yield _ratio_row(f"statement {operation}", found, "", "")


_ROWS = {"messages": message_rows, "collectives": scan_rows, "arrays": statement_rows}


def _ratio_row(operation: str, found: Mapping[str, float] | str, paper: str, source: str) -> Row:
    figure = "R2, standard over lines model"
    if isinstance(found, str):
        return _unfitted(operation, figure, found)
    standard, lines = found["standard"], found["lines"]
    ours = f"{standard / lines:.2f} ({standard:.3g} over {lines:.3g})"
    values = {"r2_standard": standard, "r2_lines": lines}
    same = abs(standard - lines) <= _SAME * lines
    verdict = Verdict.UNJUDGED if same else Verdict.of(standard > lines)
    return Row(_MODEL, operation, figure, paper, source, ours, verdict, values)


def _unfitted(operation: str, figure: str, why: str) -> Row:
    return Row(_MODEL, operation, figure, "", "", "not fitted", Verdict.UNJUDGED, remark=why)


def _by_operation(timings: Sequence[Timing], whole: str) -> Iterator[tuple[str, Mask]]:
    operations = [timing.point.operation for timing in timings]
    yield whole, np.ones(len(timings), dtype=bool)
    for operation in sorted(set(operations)):
        yield operation, np.array([one == operation for one in operations])


def _left(
    columns: Columns, timings: Sequence[Timing], inside: Mask, models: Mapping[str, Model]
) -> dict[str, float] | str:
    """Return what each model leaves unexplained on points kept from its fit, or why none can."""
    times, kept = typical_us(timings), held_out(timings)
    given, tested = inside & ~kept, inside & kept
    if np.count_nonzero(tested) < 2:
        return "too few points were kept from the fit to judge it"
    found = {}
    for name, model in models.items():
        try:
            fitted = fit(Samples(part(columns, given), times[given]), model)
        except FitError as error:
            return f"{name}: {error}"
        found[name] = unexplained(times[tested], fitted.predict(part(columns, tested)))
    return found


def _few(inside: Mask, timings: Sequence[Timing], verdict: Verdict) -> str:
    """Return what must be said of a miss where fewer points were fitted than the paper asks for."""
    fitted = np.count_nonzero(inside & ~held_out(timings))
    if verdict is not Verdict.MISSES or fitted >= TRAINING_POINTS:
        return ""
    return f"fitted to {fitted} points, where the paper has {TRAINING_POINTS}. "


def _lines(regions: Sequence[Region]) -> Vector:
    bounds = (region_line_bounds(region, LINE_BYTES) for region in regions)
    return np.array([float(evaluate(lower + upper, {})) / 2 for lower, upper in bounds])


def _accesses(region: Region) -> float:
    return float(np.prod([float(evaluate(count, {})) for count in region.counts]))


def _scan_columns(points: Sequence[Timing]) -> Columns:
    """Return messages, bytes, lines and operations: steps over ranks, and two passes at home."""
    rows, columns, item, ranks = (
        [int(timing.point.features[name]) for timing in points]
        for name in ("rows", "columns", "itemsize_bytes", "ranks")
    )
    along = [timing.point.operation == "scan.along" for timing in points]
    blocks = [_block(r, c, i, c * i) for r, c, i in zip(rows, columns, item, strict=True)]
    edges = [
        _block(r, 1, i, c * i) if is_along else _block(1, c, i, c * i)
        for r, c, i, is_along in zip(rows, columns, item, along, strict=True)
    ]
    steps = np.array([float(evaluate(doubling_steps(num(count)), {})) for count in ranks])
    sent = np.array([_accesses(edge) for edge in edges])
    return {
        "messages": steps,
        "bytes": steps * sent * np.array(item, dtype=np.float64),
        "lines": steps * _lines(edges) + 2 * _lines(blocks),
        "operations": steps * sent + 2 * np.array(rows) * np.array(columns),
    }


def _block(rows: int, columns: int, item: int, pitch: int) -> Region:
    return Region(item, (num(rows), num(columns)), (num(pitch), num(item)))
