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

from collections.abc import Callable, Iterator, Sequence
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
from costdb.calibration.host.hardware import Host
from costdb.calibration.host.process import keep_as_with
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
from costdb.machines.documents import measured
from costdb.pickled import pickled_steps
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


# The steps of pickled messages, fitted; and what composing them leaves of whole calls.

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
    both = _step_of_pickled_fit(found, "dump", sizes) + _step_of_pickled_fit(found, "load", sizes)
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


def _step_of_pickled_fit(found: _Steps, name: str, sizes: Vector) -> Vector:
    return predict(graded_columns(sizes, LIMITS), found[name])


def _composed(timing: Timing, found: _Steps, factors: dict[str, float]) -> float:
    """Return the time of a message or collective as the model composes it."""
    features = timing.point.features
    size, none = np.array([float(features["bytes"])]), np.zeros(1)
    name = timing.point.operation.removeprefix("pickle.")
    if name == "message":
        return float(
            sum(_step_of_pickled_fit(found, step, size)[0] for step in ("dump", "transfer", "load"))
        )
    steps = pickled_steps(CollectiveKind(name), num(int(features["ranks"])))
    total = sum(
        float(evaluate(times, {})) * float(_step_of_pickled_fit(found, step, amount)[0])
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
    array = sum(_step_of_pickled_fit(found, step, sizes) for step in ("dump", "transfer", "load"))
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
            ours, label = _step_of_pickled_fit(found, name, sizes), "by grades"
        else:
            chosen = [timing for timing in timings if timing.point.operation == operation]
            ours = np.array([_composed(timing, found, factors) for timing in chosen])
            label = "composed"
            pieces = fit_graded(sizes[given], times[given], LIMITS)
            graded = predict(graded_columns(sizes, LIMITS), pieces)
            yield quality(operation, "by grades alone", times[kept], graded[kept], chosen=False)
        yield quality(operation, "standard", times[kept], straight[kept], chosen=False)
        yield quality(operation, label, times[kept], ours[kept], chosen=True)
