"""Timing the points of a section: shuffled, warmed up, the slowest rank counting."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from costdb.calibration.section import Action, Effort, Point, Section, World

Emit = Callable[[int, tuple[float, ...]], object]

_WARM_UPS = 2
_NANOSECONDS_PER_US = 1000


@dataclass(frozen=True, slots=True)
class Pace:
    """How a launch divides its time.

    Attributes
    ----------
    rounds : int
        How often each point is visited, in another order each time: what drifts, and what one
        point leaves behind for the next, then falls on all alike.
    samples, least : int
        Samples of a visit where time allows, and however slow the point is.
    """

    rounds: int
    samples: int
    least: int


PACES = {Effort.QUICK: Pace(2, 10, 2), Effort.FULL: Pace(3, 10, 2)}


def measure(
    section: Section,
    points: Sequence[Point],
    world: World,
    pace: Pace,
    *,
    seconds: float,
    seed: int,
    emit: Emit,
) -> None:
    """Time `points` until every one was visited `pace.rounds` times, or time is up.

    Parameters
    ----------
    points : sequence of Point
        The same on every rank.
    seconds : float
        From now; what time remains is divided evenly over the visits that remain.
    seed : int
        Of the order; the same on every rank.
    emit : callable
        Takes the index of a point and the microseconds of a visit; called on rank 0 only.
    """
    deadline = time.monotonic() + seconds
    order = list(_visits(len(points), pace.rounds, seed))
    with _no_collections():
        for done, index in enumerate(order):
            share = _agreed(world, (deadline - time.monotonic()) / (len(order) - done))
            if share <= 0:
                break
            action = section.action(points[index], world)
            try:
                taken = _visit(action, world, pace, share)
            finally:
                action.close()
            if world.rank == 0:
                emit(index, taken)


def _visits(points: int, rounds: int, seed: int) -> Iterator[int]:
    source = random.Random(seed)
    for _ in range(rounds):
        yield from source.sample(range(points), points)


def _visit(action: Action, world: World, pace: Pace, share_s: float) -> tuple[float, ...]:
    # The last warm-up tells how many samples the time allows; all ranks find the same number.
    passed_s = 0.0
    for _ in range(_WARM_UPS):
        begin = time.perf_counter()
        _once(action, world)
        (passed_s,) = _slowest(world, [time.perf_counter() - begin])
        if passed_s > share_s:
            break
    fitting = int(share_s / max(passed_s, 1e-9)) - _WARM_UPS
    count = min(max(fitting, pace.least), pace.samples)
    return _slowest(world, [_once(action, world) for _ in range(count)])


def _once(action: Action, world: World) -> float:
    run = action.run
    clock = time.process_time_ns if action.alone else time.perf_counter_ns
    action.before()
    if world.communicator is not None:
        world.communicator.Barrier()
    begin = clock()
    run()
    spent = clock() - begin
    return spent / _NANOSECONDS_PER_US / action.repetitions


def _slowest(world: World, mine: list[float]) -> tuple[float, ...]:
    if world.communicator is None:
        return tuple(mine)
    everyones = world.communicator.allgather(mine)
    return tuple(max(samples) for samples in zip(*everyones, strict=True))


def _agreed(world: World, share: float) -> float:
    return share if world.communicator is None else world.communicator.bcast(share)


@contextmanager
def _no_collections() -> Iterator[None]:
    # The collector would stop one sample in some hundreds for as long as many samples take.
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
