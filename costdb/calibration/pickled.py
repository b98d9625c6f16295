"""Pickled messages: what mpi4py's lower-case calls are made of, and these calls themselves.

Serialising, making objects and combining are timed alone, on arrays of doubles; a pickled message
by sending an array to and fro between two ranks, half the round being one message. What is left
of it is the transfer. Collectives are timed as they are called and compared with their algorithm
composed of these steps; the profile holds the factor.

A pickle, the buffer that receives it and the object made of it are freed together, and from some
hundred kilobytes on the system gets their memory back and gives it anew at the next call: page
faults then take up to ten times what all else does. How much is kept depends on the largest array
that a program ever had, so each point is measured as in a program that has arrays of its size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from costdb.calibration.fitting import (
    TOO_FEW,
    Mask,
    Vector,
    feature,
    fit_above,
    fit_and_judge,
    graded_columns,
    graded_document,
    held_out,
    judged,
    named,
    predict,
    residual_of,
    residual_of_all,
    typical_us,
)
from costdb.calibration.section import (
    Action,
    Effort,
    Fitted,
    Host,
    Need,
    Point,
    Quality,
    Section,
    Timing,
    World,
    communicator_of,
    keep_as_with,
    repeated,
    repetitions,
    spread_sizes,
)
from costdb.expr import evaluate, num
from costdb.lines.model import collective_steps, pieces_in_a_step
from costdb.machines import Json, measured
from costdb.pricing import pickled_steps
from costdb.work import PICKLED_KINDS, CollectiveKind

# Collectives: MPI's own on contiguous buffers, with the prefix over ranks of a scan among them.


# From a mebibyte on, libraries take memory from the system for each call, and page faults decide.
_LARGEST_BUFFER = (1 << 20) - (1 << 16)
# Points of each kind of collective.
_CALLS_OF = {Effort.QUICK: 14, Effort.FULL: 36}


def _buffers(effort: Effort, processors: int, host: Host) -> Sequence[Point]:
    """Return buffers of log-spaced sizes."""
    return [
        Point(f"collective.{kind}", {"bytes": size, "ranks": processors}, number % 2 == 1)
        for kind in CollectiveKind
        for number, size in enumerate(spread_sizes(8, _LARGEST_BUFFER, _CALLS_OF[effort]))
    ]


def _call_action(point: Point, world: World) -> Action:
    """Return a call, repeated."""
    size = int(point.features["bytes"])
    kind = CollectiveKind(point.operation.removeprefix("collective."))
    return repeated(_call(kind, size // 8, communicator_of(world)), repetitions(5.0 + size * 1e-4))


@lru_cache(maxsize=2)
def _memory(which: int, doubles: int) -> NDArray[np.float64]:
    # zeros that were touched: sums of them stay zero however often they are accumulated
    memory = np.ones(doubles)
    memory[:] = 0
    return memory


def _doubles(which: int, count: int, ranks: int) -> NDArray[np.float64]:
    return _memory(which, _LARGEST_BUFFER // 8 * ranks)[:count]


def _call(kind: CollectiveKind, count: int, communicator: Any) -> Callable[[], object]:
    from mpi4py import MPI

    root, size = communicator.Get_rank() == 0, communicator.Get_size()
    one, other = _doubles(0, count, size), _doubles(1, count, size)
    many, more = _doubles(0, count * size, size), _doubles(1, count * size, size)
    lengths = [count] * size
    calls: dict[CollectiveKind, Callable[[], object]] = {
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


# Steps of collectives.

KIB, MIB = 1 << 10, 1 << 20
# Just above the sizes where short messages end there are steps, which steep grades take up.
STEP_LIMITS = (8 * KIB, 12 * KIB, 16 * KIB, 20 * KIB, 64 * KIB, 512 * KIB)


def _steps_fitted(timings: Sequence[Timing], host: Host) -> Fitted:
    """Fit the step of each kind: its time divided by how many steps its algorithm has."""
    # an earlier version measured fewer kinds
    every = {kind: named(timings, f"collective.{kind}") for kind in CollectiveKind}
    kinds = {kind: points for kind, points in every.items() if points}
    if CollectiveKind.PREFIX not in kinds:
        raise ValueError(TOO_FEW)
    ranks = num(int(timings[0].point.features["ranks"]))
    stated: dict[str, Json] = {}
    qualities: list[Quality] = []
    for kind, points in kinds.items():
        steps = float(evaluate(collective_steps(kind, ranks), {}))
        carried = feature(points, "bytes") * float(evaluate(pieces_in_a_step(kind, ranks), {}))
        columns = graded_columns(carried, STEP_LIMITS, steps)
        found, quality = fit_and_judge(points, columns)
        stated[kind] = graded_document(found, STEP_LIMITS)
        qualities.append(quality)
    sizes = feature(kinds[CollectiveKind.PREFIX], "bytes")
    section: dict[str, Json] = {
        "steps": stated,
        "residual": residual_of_all([*chain.from_iterable(kinds.values())], qualities),
        "range": {"bytes": [float(sizes.min()), float(sizes.max())]},
    }
    return Fitted({"collectives": section}, tuple(qualities))


COLLECTIVES = Section(
    "collectives",
    "collectives over ranks",
    frozenset((Need.MPI,)),
    _buffers,
    _call_action,
    _steps_fitted,
)


_SMALL_BYTES, _LARGEST_BYTES = 48 << 10, 4 << 20
_MOST_ITEMS = 30_000
# Points of each step, and of each kind of collective.
_COUNTS = {Effort.QUICK: (12, 6), Effort.FULL: (30, 16)}
_MESSAGE = ("dump", "transfer", "load")
_STEPS = ("pickle.dump", "pickle.load", "pickle.combine", "pickle.message")
ITEMS, NUMBER = "pickle.items", "pickle.number"


def _points(effort: Effort, processors: int, host: Host) -> Sequence[Point]:
    """Return arrays of log-spaced sizes for each step and collective, and some lists."""
    steps, collectives = _COUNTS[effort]
    # some ranks hold a piece for every other
    sizes = {name: _sizes(_LARGEST_BYTES, steps) for name in _STEPS}
    sizes |= {
        f"pickle.{kind}": _sizes(_LARGEST_BYTES // processors, collectives)
        for kind in PICKLED_KINDS
    }
    sizes |= {ITEMS: spread_sizes(8, 8 * _MOST_ITEMS, steps // 2), NUMBER: [8]}
    return [
        Point(name, {"bytes": size, "ranks": processors}, held_out=number % 2 == 1)
        for name, every in sizes.items()
        for number, size in enumerate(every)
    ]


def _action(point: Point, world: World) -> Action:
    """Return the step or call of a point, repeated."""
    size = int(point.features["bytes"])
    step, each = _step(point.operation, size, communicator_of(world))
    keep_as_with(size)
    return repeated(step, repetitions(10.0 + size * 1e-3), each)


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
        case "number":
            return lambda: MPI.pickle.loads(MPI.pickle.dumps(1.5)), 1
        case "message":
            return _to_and_fro(array, communicator), 2
        case "items":
            return _to_and_fro(array.tolist(), communicator), 2
        case kind:
            return _collective(CollectiveKind(kind), array, communicator), 1


def _to_and_fro(payload: object, communicator: Any) -> Callable[[], object]:
    rank, size = communicator.Get_rank(), communicator.Get_size()
    partner = rank ^ 1

    def first() -> None:
        communicator.send(payload, partner)
        communicator.recv(source=partner)

    def second() -> None:
        communicator.recv(source=partner)
        communicator.send(payload, partner)

    return (lambda: None) if partner >= size else first if rank < partner else second


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

_Steps = dict[str, dict[str, float]]


def _fitted(timings: Sequence[Timing], host: Host) -> Fitted:
    """Fit the steps, then what composing them leaves of messages and collectives."""
    found: _Steps = {}
    for name in ("dump", "load", "combine"):
        sizes, times, given = _of(timings, f"pickle.{name}")
        found[name] = fit_above(graded_columns(sizes[given], LIMITS), times[given])
    sizes, times, given = _of(timings, "pickle.message")
    both = _predicted(found, sizes, "dump", "load")
    known = np.minimum(both, times)[given]
    found["transfer"] = fit_above(graded_columns(sizes[given], LIMITS), times[given], known)
    factors = dict(_factors(timings, found))
    tested = [timing for timing in timings if timing.point.held_out and _is_call(timing)]
    predicted = np.array([_composed(timing, found, factors) for timing in tested])
    section: dict[str, Any] = {name: graded_document(step, LIMITS) for name, step in found.items()}
    section["object_us"] = measured(_each_item(timings, found), "us")
    if (number := _of(timings, NUMBER)[1]).size:
        section["number_us"] = measured(float(number[0]), "us")
    section["collectives"] = {
        kind: measured(factor, "1", note="measured over composed time")
        for kind, factor in factors.items()
    }
    section["residual"] = residual_of(tested, predicted)
    section["range"] = {"bytes": [float(sizes.min()), float(sizes.max())]}
    note = (
        "Pickled arrays are of doubles in one run, again and again, in a program that has none "
        "larger: from some hundred kB on their memory goes back to the system between calls."
    )
    return Fitted({"pickle": section}, tuple(_qualities(timings, found, factors)), (note,))


def _of(timings: Sequence[Timing], operation: str) -> tuple[Vector, Vector, Mask]:
    chosen = named(timings, operation)
    return feature(chosen, "bytes"), typical_us(chosen), ~held_out(chosen)


def _is_call(timing: Timing) -> bool:
    name = timing.point.operation.removeprefix("pickle.")
    return name == "message" or name in PICKLED_KINDS


def _predicted(found: _Steps, sizes: Vector, *steps: str) -> Vector:
    """Return what some steps take together, shape (n,)."""
    columns = graded_columns(sizes, LIMITS)
    total: Vector = np.sum([predict(columns, found[step]) for step in steps], axis=0)
    return total


def _composed(timing: Timing, found: _Steps, factors: Mapping[str, float]) -> float:
    """Return the time of a message or collective as the model composes it."""
    features = timing.point.features
    sizes = np.array([float(features["bytes"]), 0.0])
    name = timing.point.operation.removeprefix("pickle.")
    if name == "message":
        return float(_predicted(found, sizes, *_MESSAGE)[0])
    steps = pickled_steps(CollectiveKind(name), num(int(features["ranks"])))
    total = sum(
        float(evaluate(times, {})) * float(_predicted(found, sizes, step)[place])
        for step, times, place in (
            ("dump", steps.dump, 0),
            ("transfer", steps.transfer, 0),
            ("transfer", steps.sizes, 1),
            ("load", steps.load, 0),
            ("combine", steps.combine, 0),
        )
    )
    return total * factors.get(name, 1.0)


def _factors(timings: Sequence[Timing], found: _Steps) -> Iterator[tuple[str, float]]:
    for kind in PICKLED_KINDS:
        given = [one for one in named(timings, f"pickle.{kind}") if not one.point.held_out]
        if given:
            composed = np.array([_composed(timing, found, {}) for timing in given])
            yield kind.value, float(np.median(typical_us(given) / composed))


def _each_item(timings: Sequence[Timing], found: _Steps) -> float:
    """Return what an item of a list costs above the bytes of an array as large."""
    sizes, times, given = _of(timings, ITEMS)
    extra = np.maximum(times - _predicted(found, sizes, *_MESSAGE), 0.0)[given] / sizes[given] * 8
    if not given.any():
        raise ValueError(TOO_FEW)
    return float(np.median(extra[sizes[given] >= np.median(sizes[given])]))


def _qualities(
    timings: Sequence[Timing], found: _Steps, factors: Mapping[str, float]
) -> Iterator[Quality]:
    for operation in dict.fromkeys(timing.point.operation for timing in timings):
        sizes, times, given = _of(timings, operation)
        if operation == ITEMS or given.all():
            continue
        name = operation.removeprefix("pickle.")
        if name in found:
            predicted = _predicted(found, sizes, name)
        else:
            composed = [_composed(one, found, factors) for one in named(timings, operation)]
            predicted = np.array(composed)
        yield judged(operation, times[~given], predicted[~given])


SECTION = Section(
    "pickled",
    "pickled messages: steps, messages and collectives",
    frozenset((Need.MPI,)),
    _points,
    _action,
    _fitted,
)
