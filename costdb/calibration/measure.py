"""Timing the points of a section: shuffled, warmed up, the slowest rank counting."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from costdb.calibration.host.calm_core import on_calm_cores, sentinel_of
from costdb.calibration.section import Action, Effort, Point, Section, World
from costdb.store.records import Beside

Emit = Callable[[int, tuple[float, ...], Beside], object]

_WARM_UPS = 2
_NANOSECONDS_PER_US = 1000

_Told = TypeVar("_Told")


@dataclass(frozen=True, slots=True)
class Pace:
    """How a launch divides its time.

    Attributes
    ----------
    rounds : int
        How often each point is visited where time allows, in another order each time: what
        drifts, what others do for seconds, and what one point leaves behind for the next, then
        falls on all alike.
    slow_rounds : int
        How often at least, and how often a point whose visit takes more than its even share.
    samples : int
        Of a point in a launch where time allows, divided among its visits.
    least : int
        Samples of a visit, however slow the point is.
    """

    rounds: int
    slow_rounds: int
    samples: int
    least: int

    def visited(self, number: int, *, slow: bool) -> bool:
        """Return whether a point is visited in a round, from 0; all are in the first."""
        return not slow or number * self.slow_rounds % self.rounds < self.slow_rounds

    def left(self, number: int, *, slow: bool) -> int:
        """Return how often a point is visited after a round."""
        return sum(self.visited(one, slow=slow) for one in range(number + 1, self.rounds))

    def samples_of(self, *, slow: bool) -> int:
        """Return how many samples a visit has where time allows."""
        return max(self.least, self.samples // (self.slow_rounds if slow else self.rounds))

    def within(self, left_s: float, fast_s: float, slow_s: float) -> Pace:
        """Return the pace after the first round, with as many rounds as the time allows.

        Parameters
        ----------
        left_s : float
            What time is left.
        fast_s, slow_s : float
            What the first round took of points that are visited in all rounds, and of others.
        """
        rounds = self.rounds
        slow_s *= self.slow_rounds - 1
        while rounds > self.slow_rounds and (rounds - 1) * fast_s + slow_s > left_s:
            rounds -= 1
        return replace(self, rounds=rounds)


PACES = {Effort.QUICK: Pace(4, 2, 20, 2), Effort.FULL: Pace(8, 3, 32, 2)}


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
    """Time `points` until every one was visited as often as `pace` says, or time is up.

    Parameters
    ----------
    points : sequence of Point
        The same on every rank.
    seconds : float
        From now; what time remains is divided evenly over the visits that remain.
    seed : int
        Of the order; the same on every rank.
    emit : callable
        Takes the index of a point, the microseconds of a visit, and what the sentinel took beside
        them; called on rank 0 only.
    """
    deadline = time.monotonic() + seconds
    source = random.Random(seed)
    # ranks begin at different times, but must come to the same visits
    even_s = _agreed(world, seconds / max(1, len(points) * pace.rounds))
    taken_s: dict[int, float] = {}
    slow: set[int] = set()
    number = 0
    with _no_collections(), on_calm_cores() as stay:
        while number < pace.rounds:
            every = source.sample(range(len(points)), len(points))
            order = [index for index in every if pace.visited(number, slow=index in slow)]
            left = len(order) + sum(pace.left(number, slow=index in slow) for index in every)
            for done, index in enumerate(order):
                begun = time.monotonic()
                share = _agreed(world, (deadline - begun) / (left - done))
                if share <= 0:
                    return
                samples = range(pace.least, pace.samples_of(slow=index in slow) + 1)
                action = section.action(points[index], world)
                if world.communicator is None and action.threads == 1:
                    stay()
                try:
                    taken, beside = _visit(action, world, samples, share)
                finally:
                    action.close()
                if number == 0:
                    taken_s[index] = _agreed(world, time.monotonic() - begun)
                if world.rank == 0:
                    emit(index, taken, beside)
            if number == 0:
                slow = {index for index, passed_s in taken_s.items() if passed_s > even_s}
                slow_s = sum(taken_s[index] for index in slow)
                left_s = _agreed(world, deadline - time.monotonic())
                pace = pace.within(left_s, sum(taken_s.values()) - slow_s, slow_s)
            number += 1


def _visit(
    action: Action, world: World, samples: range, share_s: float
) -> tuple[tuple[float, ...], Beside]:
    # The last warm-up tells how many samples the time allows; all ranks find the same number.
    sentinel = sentinel_of(action.threads)
    passed_s = 0.0
    for _ in range(_WARM_UPS):
        begin = time.perf_counter()
        _once(action, world)
        sentinel()
        passed_s = max(_everyones(world, time.perf_counter() - begin))
        if passed_s > share_s:
            break
    fitting = int(share_s / max(passed_s, 1e-9)) - _WARM_UPS
    count = min(max(fitting, samples[0]), samples[-1])
    taken, beside = [], [sentinel()]
    for _ in range(count):
        taken.append(_once(action, world))
        beside.append(sentinel())
    ranks = _everyones(world, (taken, beside))
    slowest = tuple(max(samples) for samples in zip(*(mine for mine, _ in ranks), strict=True))
    least, most = (
        [choose(one) for one in zip(*(found for _, found in ranks), strict=True)]
        for choose in (min, max)
    )
    # one reading is after a sample and before the next
    ends = zip(map(min, least, least[1:]), map(max, most, most[1:]), strict=True)
    return slowest, Beside(action.threads, tuple(ends))


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


def _everyones(world: World, mine: _Told) -> list[_Told]:
    return [mine] if world.communicator is None else world.communicator.allgather(mine)


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
