"""Messages: rows, columns and strides of arrays, between neighbours in a ring of ranks.

What is timed is what the lines model calls one message, one step of a halo exchange as programs
write it: every rank copies its region to a contiguous buffer that it keeps, sends it to the next
rank while it receives from the one before (``Sendrecv``), and copies what came to a region of the
same shape in another array. A region that is one run is sent and received as it lies. Times are
those of the steady state: buffers are touched before, and what fits a cache is found there.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from costdb.calibration.fitting import (
    TOO_FEW,
    Columns,
    Mask,
    Vector,
    fit_above,
    held_out,
    judged,
    part,
    predict,
    repetition,
    residual_of,
    typical_us,
)
from costdb.calibration.section import (
    Action,
    Effort,
    Feature,
    Fitted,
    Host,
    Need,
    Point,
    Quality,
    Section,
    Timing,
    World,
    communicator_of,
    repeated,
    repetitions,
)
from costdb.expr import evaluate, num
from costdb.lines.coefficients import Place, Scale, amounts, bytes_of, scale
from costdb.machines import measured
from costdb.pricing import RANKS
from costdb.work import Region

_SEED = 6
_ITEMSIZES = (4, 8)
_LARGEST_BYTES = 4 << 20
_LARGEST_SPAN_BYTES = 48 << 20
_LARGEST_PITCH_BYTES = 64 << 10
_WIDTHS = (1, 1, 1, 2, 3, 4, 8, 16, 64)
_STRIDES = (2, 3, 4, 5, 7, 8, 12, 16, 24, 33, 64, 100, 128, 250, 512, 1000)
# Of each kind, for either effort: rows, columns, strides.
_COUNTS = {Effort.QUICK: (30, 50, 30), Effort.FULL: (70, 150, 80)}


def _points(effort: Effort, processors: int, host: Host) -> Sequence[Point]:
    """Return shapes drawn once and for all: bytes, runs, pitch and stride independently."""
    draw = random.Random(_SEED)
    rows, columns, strides = _COUNTS[effort]
    made = [
        *_some(rows, lambda share: _row(draw, share)),
        *_some(columns, lambda share: _column(draw)),
        *_some(strides, lambda share: _stride(draw)),
    ]
    # every other one, after shuffling, so that both halves cover all sizes
    draw.shuffle(made)
    return [
        Point(operation, {**features, "ranks": processors}, held_out=number % 2 == 1)
        for number, (operation, features) in enumerate(made)
    ]


def _action(point: Point, world: World) -> Action:
    """Return one halo step with the point's region, repeated."""
    runs, width, _, item = _shape(point)
    guess_us = 2.0 + runs * 0.005 + runs * width * item * 3e-5
    return repeated(_step(point, communicator_of(world)), repetitions(guess_us))


def _shape(point: Point) -> tuple[int, ...]:
    """Return runs, elements of a run, pitch in bytes, and bytes of an element."""
    names = ("runs", "run_elements", "pitch_bytes", "itemsize_bytes")
    return tuple(int(point.features[name]) for name in names)


_Shape = tuple[str, dict[str, Feature]]


def _some(count: int, make: Callable[[float], _Shape | None]) -> Iterator[_Shape]:
    made = 0
    while made < count:
        shape = make((made + 0.5) / count)
        if shape is not None:
            made += 1
            yield shape


def _row(draw: random.Random, share: float) -> _Shape:
    item = draw.choice(_ITEMSIZES)
    size = math.exp(math.log(8) + share * math.log(_LARGEST_BYTES / 8))
    count = max(1, round(size / item))
    return "message.row", _features(1, count, count * item, item)


def _column(draw: random.Random) -> _Shape | None:
    item, width = draw.choice(_ITEMSIZES), draw.choice(_WIDTHS)
    rows = _log_uniform(draw, 2, 16_384)
    pitch = _log_uniform(draw, max(16, width + 1) * item, _LARGEST_PITCH_BYTES) // item * item
    if draw.random() < 0.3:
        pitch = 1 << round(math.log2(pitch))
    fits = width * item < pitch and rows * pitch <= _LARGEST_SPAN_BYTES
    if not fits or rows * width * item > _LARGEST_BYTES:
        return None
    return "message.column", _features(rows, width, pitch, item)


def _stride(draw: random.Random) -> _Shape | None:
    item, stride = draw.choice(_ITEMSIZES), draw.choice(_STRIDES)
    count = _log_uniform(draw, 2, 200_000)
    if count * stride * item > _LARGEST_SPAN_BYTES:
        return None
    return "message.stride", _features(count, 1, stride * item, item)


def _features(runs: int, width: int, pitch: int, item: int) -> dict[str, Feature]:
    return {"runs": runs, "run_elements": width, "pitch_bytes": pitch, "itemsize_bytes": item}


def _log_uniform(draw: random.Random, low: float, high: float) -> int:
    return round(math.exp(draw.uniform(math.log(low), math.log(high))))


def _step(point: Point, communicator: Any) -> Callable[[], object]:
    rank, size = communicator.Get_rank(), communicator.Get_size()
    after, before = (rank + 1) % size, (rank - 1) % size
    source, target = _view(point, 0), _view(point, 1)
    if point.features["runs"] == 1:
        return lambda: communicator.Sendrecv(source, after, 0, target, before, 0)
    going, coming = np.ones(source.shape, source.dtype), np.ones(source.shape, source.dtype)

    def staged() -> None:
        np.copyto(going, source)
        communicator.Sendrecv(going, after, 0, coming, before, 0)
        np.copyto(target, coming)

    return staged


def _view(point: Point, which: int) -> NDArray[Any]:
    runs, width, pitch, item = _shape(point)
    memory = _memory(which)[: runs * pitch].view(f"f{item}")
    return memory.reshape(runs, pitch // item)[:, :width]


@lru_cache(maxsize=2)
def _memory(which: int) -> NDArray[np.uint8]:
    # One for all points: fresh memory would be timed for its page faults.
    return np.ones(_LARGEST_SPAN_BYTES + _LARGEST_PITCH_BYTES, np.uint8)


# The model by grades, fitted to measured messages.

KIB, MIB = 1 << 10, 1 << 20

# Protocols of MPI libraries switch near these sizes; the step itself is looked for.
PROTOCOL_BYTES = (8 * KIB, 64 * KIB, MIB)
_STEPS_BYTES = tuple(KIB << power for power in range(11))
# Grades of lines: in a first-level cache, in a second-level one, in a shared one, in memory.
_LINE_LIMITS = ((64 * KIB, 256 * KIB, MIB), (32 * KIB, 512 * KIB, 4 * MIB))

# Where lines are of another size, the coefficients for each take it up.
LINE_BYTES = 64


def _fitted(timings: Sequence[Timing], host: Host) -> Fitted:
    """Fit the message model on half of the points, and say how it does on the other half."""
    regions = [region_of(timing.point) for timing in timings]
    times, kept = typical_us(timings), held_out(timings)
    given = ~kept
    line = LINE_BYTES
    by = _best_scale(regions, times, given, line)
    graded = columns_of(regions, by)
    coefficients = fit_above(part(graded, given), times[given])
    predicted = predict(graded, coefficients)
    stated = document(by, coefficients)
    tested = [timing for timing in timings if timing.point.held_out]
    stated["residual"] = residual_of(tested, predicted[kept])
    sizes = _bytes(regions)
    parts: dict[str, Any] = {
        "lines": {
            "message": stated,
            "range": {"message_bytes": [float(sizes.min()), float(sizes.max())]},
        },
    }
    parts |= repetition(RANKS, tested)
    return Fitted(parts, tuple(_qualities(timings, times, kept, predicted)), _notes(by))


def region_of(point: Point) -> Region:
    """Return the region that a point's messages carry."""
    runs, width, pitch, item = _shape(point)
    return Region(item, (num(runs), num(width)), (num(pitch), num(item)))


def columns_of(regions: Sequence[Region], by: Scale) -> Columns:
    """Return the units of each coefficient in each message, by the name of its place."""
    rows = [
        {name_of(amount.place): float(evaluate(amount.units, {})) for amount in amounts(region, by)}
        for region in regions
    ]
    if not rows:
        raise ValueError(TOO_FEW)
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def name_of(place: Place) -> str:
    """Return a place in a profile as one word."""
    return ".".join(map(str, place))


def document(by: Scale, coefficients: dict[str, float]) -> dict[str, Any]:
    """Return ``lines.message`` with these coefficients."""

    def stated(place: str, unit: str = "us") -> dict[str, Any]:
        return {place.rpartition(".")[2]: measured(coefficients[place], unit)}

    return {
        **stated("alpha_us"),
        "protocols": [
            {"above_bytes": above, **stated(f"protocols.{number}.extra_us")}
            for number, above in enumerate(by.protocols)
        ],
        "bytes": [
            {"max_bytes": grade.limit, **stated(f"bytes.{number}.beta_us_per_byte", "us/byte")}
            for number, grade in enumerate(by.bytes)
        ],
        "staging": {
            **stated("staging.call_us"),
            **stated("staging.loop_us"),
            **stated("staging.element_us"),
            **stated("staging.copy_us_per_byte", "us/byte"),
            "lines": [
                {
                    "max_bytes": grade.limit,
                    **stated(f"staging.lines.{number}.gamma_us_per_line", "us/line"),
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
            columns_of(rows, scale(line, (above,), PROTOCOL_BYTES, ())), times[whole]
        ),
    )
    used = [region for region, is_given in zip(regions, given, strict=True) if is_given]
    scales = [scale(line, (step,), PROTOCOL_BYTES, limits) for limits in _LINE_LIMITS]
    return min(scales, key=lambda by: _left(columns_of(used, by), times[given]))


def _left(columns: Columns, times: Vector) -> float:
    errors = predict(columns, fit_above(columns, times)) / times - 1
    return float(np.mean(errors**2))


def _bytes(regions: Sequence[Region]) -> Vector:
    return np.array([float(evaluate(bytes_of(region), {})) for region in regions])


def _qualities(
    timings: Sequence[Timing], times: Vector, kept: Mask, predicted: Vector
) -> Iterator[Quality]:
    operations = [timing.point.operation for timing in timings]
    for operation in ("message", *sorted(set(operations))):
        inside = kept & np.array([name.startswith(operation) for name in operations])
        if inside.any():
            yield judged(operation, times[inside], predicted[inside])


def _notes(by: Scale) -> tuple[str, ...]:
    return (
        "One message is a step of a halo exchange: the region is copied to a buffer, sent while "
        "another is received, and that is copied to its region. Contiguous regions are not copied.",
        "Buffers were touched before: a region that fits a cache was found there.",
        f"The message protocol's step was found above {by.protocols[0]:g} bytes.",
    )


SECTION = Section(
    "messages",
    "messages: rows, columns and strides",
    frozenset((Need.MPI,)),
    _points,
    _action,
    _fitted,
)
