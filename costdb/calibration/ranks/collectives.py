"""Collectives and scans: MPI's own on contiguous buffers, and cumulative sums over a mesh axis.

A scan is timed as programs write it: each rank accumulates its block in place along the axis,
sends its last slice through ``Exscan``, and adds what comes in to the whole block. Along the
contiguous axis that slice is a column, copied to a buffer first. The accumulation is timed alone
too: it is what a scan on one rank takes.
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
from costdb.calibration.host.hardware import Host
from costdb.calibration.section import (
    Action,
    Effort,
    Fitted,
    Need,
    Point,
    Quality,
    Timing,
    World,
    repetitions,
    spread_sizes,
)
from costdb.expr import evaluate, num
from costdb.lines.model import DERIVED_KINDS, collective_steps, pieces_in_a_step
from costdb.machines.documents import measured
from costdb.work import COMBINING, CollectiveKind

# From a mebibyte on, libraries take memory from the system for each call, and page faults decide.
_LARGEST_BYTES = (1 << 20) - (1 << 16)
_BLOCK_BYTES = (256, 8 << 20)
# Points of each kind of collective, and of each way to scan.
_COUNTS = {Effort.QUICK: (14, 16), Effort.FULL: (36, 44)}
_SEED = 4
SCANS = ("scan.along", "scan.across", "scan.along_alone", "scan.across_alone")


class Collectives:
    """The section that measures and fits ``collectives`` and ``lines.scan``."""

    name = "collectives"
    title = "collectives and scans over ranks"
    needs = frozenset((Need.MPI,))

    def points(self, effort: Effort, processors: int, host: Host) -> Sequence[Point]:
        """Return buffers of log-spaced sizes, and blocks of random shapes."""
        sizes, blocks = _COUNTS[effort]
        made = [
            Point(f"collective.{kind}", {"bytes": size, "ranks": processors}, number % 2 == 1)
            for kind in ("message", *CollectiveKind)
            for number, size in enumerate(spread_sizes(8, _LARGEST_BYTES, sizes))
        ]
        draw = random.Random(_SEED)
        for operation in SCANS:
            for number in range(blocks):
                item = draw.choice((4, 8))
                elements = math.exp(draw.uniform(*map(math.log, _BLOCK_BYTES))) / item
                # from flat to tall, but never a single row or column
                rows = math.exp(draw.uniform(math.log(2), math.log(max(2.1, elements / 2))))
                features = {
                    "rows": round(rows),
                    "columns": max(2, round(elements / rows)),
                    "itemsize_bytes": item,
                    "ranks": processors,
                }
                made.append(Point(operation, features, number % 2 == 1))
        return made

    def action(self, point: Point, world: World) -> Action:
        """Return a call or a scan, repeated."""
        communicator = world.communicator
        assert communicator is not None
        if point.operation in SCANS:
            step = _scan(point, communicator)
            elements = int(point.features["rows"]) * int(point.features["columns"])
            guess_us = 5.0 + elements * 2e-3
        else:
            size = int(point.features["bytes"])
            step = _call(point.operation.removeprefix("collective."), size // 8, communicator)
            guess_us = 5.0 + size * 1e-4
        count = repetitions(guess_us)

        def run() -> None:
            for _ in range(count):
                step()

        return Action(run, count)

    def fit(self, timings: Sequence[Timing], host: Host) -> Fitted:
        """Fit each kind's steps where messages do not compose to them, and the scans."""
        return fit_collectives(timings)


SECTION = Collectives()


@lru_cache(maxsize=2)
def _memory(which: int, bytes_needed: int) -> NDArray[np.uint8]:
    # zeros that were touched: sums of them stay zero however often they are accumulated
    memory = np.ones(bytes_needed, np.uint8)
    memory[:] = 0
    return memory


def _doubles(which: int, count: int, ranks: int) -> NDArray[np.float64]:
    memory = _memory(which, _LARGEST_BYTES * ranks + _BLOCK_BYTES[1] * 2)
    return memory[: 8 * count].view(np.float64)


def _call(kind: str, count: int, communicator: Any) -> Callable[[], object]:
    from mpi4py import MPI

    rank, size = communicator.Get_rank(), communicator.Get_size()
    one, other = _doubles(0, count, size), _doubles(1, count, size)
    many, more = _doubles(0, count * size, size), _doubles(1, count * size, size)
    lengths = [count] * size
    after, before, root = (rank + 1) % size, (rank - 1) % size, rank == 0
    calls: dict[str, Callable[[], object]] = {
        "message": lambda: communicator.Sendrecv(one, after, 0, other, before, 0),
        CollectiveKind.PREFIX: lambda: communicator.Exscan(one, other, op=MPI.SUM),
        CollectiveKind.BROADCAST: lambda: communicator.Bcast(one),
        CollectiveKind.REDUCE: lambda: communicator.Reduce(one, other if root else None),
        CollectiveKind.ALLREDUCE: lambda: communicator.Allreduce(one, other),
        CollectiveKind.GATHER: lambda: communicator.Gather(one, more if root else None),
        CollectiveKind.SCATTER: lambda: communicator.Scatter(many if root else None, other),
        CollectiveKind.ALLGATHER: lambda: communicator.Allgather(one, more),
        CollectiveKind.ALLGATHERV: lambda: communicator.Allgatherv(one, [more, lengths]),
        CollectiveKind.ALLTOALL: lambda: communicator.Alltoall(many, more),
        CollectiveKind.ALLTOALLV: lambda: communicator.Alltoallv([many, lengths], [more, lengths]),
        CollectiveKind.REDUCE_SCATTER: lambda: communicator.Reduce_scatter_block(many, other),
    }
    return calls[kind]


def _scan(point: Point, communicator: Any) -> Callable[[], object]:
    from mpi4py import MPI

    rows, columns = int(point.features["rows"]), int(point.features["columns"])
    item = int(point.features["itemsize_bytes"])
    memory = _memory(0, _LARGEST_BYTES * communicator.Get_size() + _BLOCK_BYTES[1] * 2)
    block = memory[: rows * columns * item].view(f"f{item}").reshape(rows, columns)
    name = point.operation.removeprefix("scan.")
    axis = 1 if name.startswith("along") else 0
    if name.endswith("alone"):
        return lambda: np.cumsum(block, axis=axis, out=block)
    last = block[:, -1] if axis == 1 else block[-1]
    coming = np.zeros(last.shape, last.dtype)
    spread = coming[:, np.newaxis] if axis == 1 else coming

    def scan() -> None:
        np.cumsum(block, axis=axis, out=block)
        communicator.Exscan(np.ascontiguousarray(last), coming, op=MPI.SUM)
        np.add(block, spread, out=block)

    return scan


# Steps of collectives beside the messages they are composed of, and the passes of scans.

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
