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

from costdb.calibration.host.hardware import Host
from costdb.calibration.ranks.message_fit import fit_messages
from costdb.calibration.section import (
    Action,
    Effort,
    Feature,
    Fitted,
    Need,
    Point,
    Timing,
    World,
)
from costdb.calibration.sizes import repetitions

_SEED = 6
_ITEMSIZES = (4, 8)
_LARGEST_BYTES = 4 << 20
_LARGEST_SPAN_BYTES = 48 << 20
_LARGEST_PITCH_BYTES = 64 << 10
_WIDTHS = (1, 1, 1, 2, 3, 4, 8, 16, 64)
_STRIDES = (2, 3, 4, 5, 7, 8, 12, 16, 24, 33, 64, 100, 128, 250, 512, 1000)
# Of each kind, for either effort: rows, columns, strides.
_COUNTS = {Effort.QUICK: (30, 50, 30), Effort.FULL: (70, 150, 80)}


class Messages:
    """The section that measures and fits ``lines.message``."""

    name = "messages"
    title = "messages: rows, columns and strides"
    needs = frozenset((Need.MPI,))

    def points(self, effort: Effort, processors: int, host: Host) -> Sequence[Point]:
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

    def action(self, point: Point, world: World) -> Action:
        """Return one halo step with the point's region, repeated."""
        communicator = world.communicator
        assert communicator is not None
        step = _step(point, communicator)
        count = _repetitions(point)

        def run() -> None:
            for _ in range(count):
                step()

        return Action(run, count)

    def fit(self, timings: Sequence[Timing], host: Host) -> Fitted:
        """Fit all message models; the one by grades goes into the profile."""
        return fit_messages(timings)


SECTION = Messages()

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
    runs, width, pitch, item = (
        int(point.features[name])
        for name in ("runs", "run_elements", "pitch_bytes", "itemsize_bytes")
    )
    memory = _memory(which)[: runs * pitch].view(f"f{item}")
    return memory.reshape(runs, pitch // item)[:, :width]


@lru_cache(maxsize=2)
def _memory(which: int) -> NDArray[np.uint8]:
    # One for all points: fresh memory would be timed for its page faults.
    return np.ones(_LARGEST_SPAN_BYTES + _LARGEST_PITCH_BYTES, np.uint8)


def _repetitions(point: Point) -> int:
    features = point.features
    runs, width = int(features["runs"]), int(features["run_elements"])
    guess_us = 2.0 + runs * 0.005 + runs * width * int(features["itemsize_bytes"]) * 3e-5
    return repetitions(guess_us)
