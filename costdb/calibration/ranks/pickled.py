"""Pickled messages: what mpi4py's lower-case calls are made of, and these calls themselves.

Serialising, making objects and combining are timed alone, on arrays of doubles; a pickled message
by sending an array to and fro between two ranks, half the round being one message. What is left
of it is the transfer. Collectives are timed as they are called and compared with their algorithm
composed of these steps; where that misses, the profile holds the factor.

A pickle, the buffer that receives it and the object made of it are freed together, and from some
hundred kilobytes on the system gets their memory back and gives it anew at the next call: page
faults then take up to ten times what all else does. How much is kept depends on the largest array
that a program ever had, so each point is measured as in a program that has arrays of its size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from costdb.calibration.host.allocator import keep_as_with
from costdb.calibration.host.hardware import Host
from costdb.calibration.ranks.pickled_fit import fit_pickled
from costdb.calibration.section import Action, Effort, Fitted, Need, Point, Timing, World
from costdb.calibration.sizes import repetitions, spread_sizes
from costdb.work import PICKLED_KINDS, CollectiveKind

_SMALL_BYTES, _LARGEST_BYTES = 48 << 10, 4 << 20
_MOST_ITEMS = 30_000
# Points of each step, and of each kind of collective.
_COUNTS = {Effort.QUICK: (12, 6), Effort.FULL: (30, 16)}
_STEPS = ("pickle.dump", "pickle.load", "pickle.combine", "pickle.message")
ITEMS = "pickle.items"


class Pickled:
    """The section that measures and fits ``pickle``."""

    name = "pickled"
    title = "pickled messages: steps, messages and collectives"
    needs = frozenset((Need.MPI,))

    def points(self, effort: Effort, processors: int, host: Host) -> Sequence[Point]:
        """Return arrays of log-spaced sizes for each step and collective, and some lists."""
        steps, collectives = _COUNTS[effort]
        operations = [(name, steps, _LARGEST_BYTES) for name in _STEPS]
        # some ranks hold a piece for every other
        largest = _LARGEST_BYTES // processors
        operations += [(f"pickle.{kind}", collectives, largest) for kind in PICKLED_KINDS]
        made = [
            Point(name, {"bytes": size, "ranks": processors}, held_out=number % 2 == 1)
            for name, count, most in operations
            for number, size in enumerate(_sizes(most, count))
        ]
        items = spread_sizes(8, 8 * _MOST_ITEMS, steps // 2)
        return made + [
            Point(ITEMS, {"bytes": size, "ranks": processors}, held_out=number % 2 == 1)
            for number, size in enumerate(items)
        ]

    def action(self, point: Point, world: World) -> Action:
        """Return the step or call of a point, repeated."""
        assert world.communicator is not None
        size = int(point.features["bytes"])
        step, each = _step(point.operation, size, world.communicator)
        count = repetitions(10.0 + size * 1e-3)
        keep_as_with(size)

        def run() -> None:
            for _ in range(count):
                step()

        return Action(run, count * each)

    def fit(self, timings: Sequence[Timing], host: Host) -> Fitted:
        """Fit the steps, then what composing them leaves of messages and collectives."""
        return fit_pickled(timings)


SECTION = Pickled()


def _sizes(most: int, count: int) -> list[int]:
    """Return sizes, half of them where memory begins to come anew, and above."""
    return [
        *spread_sizes(8, _SMALL_BYTES, count // 2),
        *spread_sizes(2 * _SMALL_BYTES, most, count - count // 2),
    ]


def _step(operation: str, size: int, communicator: Any) -> tuple[Callable[[], object], int]:
    """Return what to repeat, and how many of the operation it does."""
    from mpi4py import MPI

    array = np.ones(size // 8)
    match operation.removeprefix("pickle."):
        case "dump":
            return lambda: MPI.pickle.dumps(array), 1
        case "load":
            pickled = MPI.pickle.dumps(array)
            return lambda: MPI.pickle.loads(pickled), 1
        case "combine":
            return lambda: MPI.SUM(array, array), 1
        case "message":
            return _to_and_fro(array, communicator), 2
        case "items":
            return _to_and_fro(array.tolist(), communicator), 2
        case kind:
            return _collective(CollectiveKind(kind), array, communicator), 1


def _to_and_fro(payload: object, communicator: Any) -> Callable[[], object]:
    rank, size = communicator.Get_rank(), communicator.Get_size()
    partner = rank ^ 1
    if partner >= size:
        return lambda: None
    if rank < partner:

        def first() -> None:
            communicator.send(payload, partner)
            communicator.recv(source=partner)

        return first

    def second() -> None:
        communicator.recv(source=partner)
        communicator.send(payload, partner)

    return second


def _collective(kind: CollectiveKind, array: object, communicator: Any) -> Callable[[], object]:
    root = communicator.Get_rank() == 0
    pieces = [array] * communicator.Get_size()
    calls: dict[CollectiveKind, Callable[[], object]] = {
        CollectiveKind.BROADCAST: lambda: communicator.bcast(array if root else None),
        CollectiveKind.REDUCE: lambda: communicator.reduce(array),
        CollectiveKind.ALLREDUCE: lambda: communicator.allreduce(array),
        CollectiveKind.GATHER: lambda: communicator.gather(array),
        CollectiveKind.SCATTER: lambda: communicator.scatter(pieces if root else None),
        CollectiveKind.ALLGATHER: lambda: communicator.allgather(array),
        CollectiveKind.ALLTOALL: lambda: communicator.alltoall(pieces),
    }
    return calls[kind]
