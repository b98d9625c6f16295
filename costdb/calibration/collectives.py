"""Collectives: MPI's own on contiguous buffers, with the prefix over ranks of a scan among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from costdb.calibration.fitting import (
    TOO_FEW,
    Vector,
    feature,
    fit_graded,
    graded_columns,
    graded_document,
    held_out,
    judged,
    named,
    predict,
    residual_of,
    typical_us,
)
from costdb.calibration.hardware import Host
from costdb.calibration.section import (
    Action,
    Effort,
    Fitted,
    Need,
    Point,
    Quality,
    Section,
    Timing,
    World,
    communicator_of,
    repeated,
    repetitions,
    spread_sizes,
)
from costdb.expr import evaluate, num
from costdb.lines.model import DERIVED_KINDS, collective_steps, pieces_in_a_step
from costdb.machines import Json
from costdb.work import COMBINING, CollectiveKind

# From a mebibyte on, libraries take memory from the system for each call, and page faults decide.
_LARGEST_BYTES = (1 << 20) - (1 << 16)
# Points of each kind of collective.
_COUNTS = {Effort.QUICK: 14, Effort.FULL: 36}


def _points(effort: Effort, processors: int, host: Host) -> Sequence[Point]:
    """Return buffers of log-spaced sizes."""
    return [
        Point(f"collective.{kind}", {"bytes": size, "ranks": processors}, number % 2 == 1)
        for kind in ("message", *CollectiveKind)
        for number, size in enumerate(spread_sizes(8, _LARGEST_BYTES, _COUNTS[effort]))
    ]


def _action(point: Point, world: World) -> Action:
    """Return a call, repeated."""
    size = int(point.features["bytes"])
    kind = point.operation.removeprefix("collective.")
    return repeated(_call(kind, size // 8, communicator_of(world)), repetitions(5.0 + size * 1e-4))


@lru_cache(maxsize=2)
def _memory(which: int, doubles: int) -> NDArray[np.float64]:
    # zeros that were touched: sums of them stay zero however often they are accumulated
    memory = np.ones(doubles)
    memory[:] = 0
    return memory


def _doubles(which: int, count: int, ranks: int) -> NDArray[np.float64]:
    return _memory(which, _LARGEST_BYTES // 8 * ranks)[:count]


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


# Steps of collectives beside the messages they are composed of.

KIB, MIB = 1 << 10, 1 << 20
# Just above the sizes where short messages end there are steps, which steep grades take up.
LIMITS = (8 * KIB, 12 * KIB, 16 * KIB, 20 * KIB, 64 * KIB, 512 * KIB)
_OWN = "own steps"
_Coefficients = dict[str, float]


def _fitted(timings: Sequence[Timing], host: Host) -> Fitted:
    """Fit each kind's steps where messages do not compose to them."""
    all_kinds = ("message", *CollectiveKind)
    # an earlier version measured fewer kinds
    kinds = {k: points for k in all_kinds if (points := named(timings, f"collective.{k}"))}
    if not {"message", CollectiveKind.PREFIX} <= kinds.keys():
        raise ValueError(TOO_FEW)
    ranks = int(timings[0].point.features["ranks"])
    each = {kind: _fit_steps(points, kind, ranks) for kind, points in kinds.items()}
    stated: dict[str, Json] = {}
    qualities: list[Quality] = []
    tested: list[Timing] = []
    tested_us: list[Vector] = []
    for kind, points in kinds.items():
        if kind == "message":
            continue
        times, kept, sizes = typical_us(points), held_out(points), feature(points, "bytes")
        line = fit_graded(sizes[~kept], times[~kept], ())
        predicted = {
            "standard": predict(graded_columns(sizes, ()), line),
            "messages": _predicted(points, each["message"], kind, ranks),
            _OWN: _predicted(points, each[kind], kind, ranks),
        }
        found = {one.model: one for one in judged(f"collective.{kind}", times, kept, predicted, "")}
        # what is combined at each step is no part of a message; and where nothing is stated,
        # another kind stands in for some
        own = found[_OWN].median_error < found["messages"].median_error
        if own or kind in COMBINING or kind in DERIVED_KINDS:
            stated[kind] = graded_document(each[kind], LIMITS)
            tested += [timing for timing in points if timing.point.held_out]
            tested_us.append(predicted[_OWN][kept])
        chosen = _OWN if kind in stated else "messages"
        qualities += [replace(one, chosen=one.model == chosen) for one in found.values()]
    sizes = feature(kinds["message"], "bytes")
    section: dict[str, Json] = {
        "steps": stated,
        "residual": residual_of(tested, np.concatenate(tested_us)),
        "range": {"bytes": [float(sizes.min()), float(sizes.max())]},
    }
    return Fitted({"collectives": section}, tuple(qualities))


def _steps(kind: str, ranks: int) -> float:
    if kind == "message":
        return 1.0
    return float(evaluate(collective_steps(CollectiveKind(kind), num(ranks)), {}))


def _carried(points: Sequence[Timing], kind: str, ranks: int) -> Vector:
    """Return the bytes of one step of each point."""
    sizes = feature(points, "bytes")
    if kind == "message":
        return sizes
    return sizes * float(evaluate(pieces_in_a_step(CollectiveKind(kind), num(ranks)), {}))


def _fit_steps(points: Sequence[Timing], kind: str, ranks: int) -> _Coefficients:
    given, sizes = ~held_out(points), _carried(points, kind, ranks)
    times = typical_us(points)[given]
    return fit_graded(sizes[given], times, LIMITS, times=_steps(kind, ranks))


def _predicted(points: Sequence[Timing], step: _Coefficients, kind: str, ranks: int) -> Vector:
    columns = graded_columns(_carried(points, kind, ranks), LIMITS)
    return _steps(kind, ranks) * predict(columns, step)


SECTION = Section(
    "collectives",
    "collectives over ranks",
    frozenset((Need.MPI,)),
    _points,
    _action,
    _fitted,
)
