"""Collectives and scans: MPI's own on contiguous buffers, and cumulative sums over a mesh axis.

A scan is timed as programs write it: each rank accumulates its block in place along the axis,
sends its last slice through ``Exscan``, and adds what comes in to the whole block. Along the
contiguous axis that slice is a column, copied to a buffer first. The accumulation is timed alone
too: it is what a scan on one rank takes.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from costdb.calibration.host.hardware import Host
from costdb.calibration.ranks.collectives_fit import fit_collectives
from costdb.calibration.section import Action, Effort, Fitted, Need, Point, Timing, World
from costdb.calibration.sizes import repetitions, spread_sizes
from costdb.work import CollectiveKind

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
