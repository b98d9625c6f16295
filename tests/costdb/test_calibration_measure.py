"""The timing loop: what is visited, in which order, for how long."""

from __future__ import annotations

import gc
import time
from collections import Counter
from dataclasses import dataclass, field

import pytest

from costdb.calibration.measure import PACES, Pace, measure
from costdb.calibration.section import Action, Effort, Fitted, Point, World

POINTS = [Point("wait", {"us": us}) for us in (1, 10, 100)]


@dataclass
class Waits:
    name: str = "waits"
    title: str = "waits"
    needs: frozenset = frozenset()
    opened: list = field(default_factory=list)
    closed: list = field(default_factory=list)
    runs: int = 0
    collecting: bool = False

    def points(self, effort, processors):
        return POINTS

    def action(self, point, world):
        self.opened.append(point)

        def run():
            self.runs += 1
            self.collecting |= gc.isenabled()
            end = time.perf_counter() + float(point.features["us"]) * 1e-6
            while time.perf_counter() < end:
                pass

        return Action(run, close=lambda: self.closed.append(point))

    def fit(self, timings):
        return Fitted({})


def measured(pace: Pace, seconds: float, seed: int = 1, section: Waits | None = None):
    found = []
    measure(
        section or Waits(),
        POINTS,
        World(),
        pace,
        seconds=seconds,
        seed=seed,
        emit=lambda index, taken: found.append((index, taken)),
    )
    return found


def test_every_round_visits_every_point_once_in_another_order():
    found = measured(Pace(20, 3, 2), seconds=30)
    rounds = [[index for index, _ in found[at : at + 3]] for at in range(0, 60, 3)]
    assert all(sorted(visited) == [0, 1, 2] for visited in rounds)
    assert len({tuple(visited) for visited in rounds}) > 3
    assert [index for index, _ in measured(Pace(20, 3, 2), 30)] == [index for index, _ in found]
    assert [index for index, _ in measured(Pace(20, 3, 2), 30, seed=2)] != [i for i, _ in found]


def test_a_full_calibration_takes_thirty_samples_of_a_point_in_each_launch():
    found = measured(PACES[Effort.FULL], seconds=30)
    assert Counter(index for index, taken in found for _ in taken) == {0: 30, 1: 30, 2: 30}
    for index, taken in found:
        assert min(taken) >= POINTS[index].features["us"]


def test_warm_ups_are_no_samples_and_what_was_prepared_is_freed():
    section = Waits()
    found = measured(Pace(2, 5, 2), seconds=30, section=section)
    assert section.runs > sum(len(taken) for _, taken in found)
    assert section.opened == section.closed
    assert len(section.opened) == len(found)


def test_time_is_kept_by_taking_fewer_samples():
    begun = time.monotonic()
    found = measured(Pace(3, 100_000, 2), seconds=0.3)
    assert 0.1 < time.monotonic() - begun < 3
    assert {index for index, _ in found} == {0, 1, 2}
    assert measured(Pace(3, 10, 2), seconds=0.0) == []


def test_the_collector_rests_while_measuring_and_comes_back():
    section = Waits()
    measured(Pace(1, 2, 2), 30, section=section)
    assert not section.collecting
    assert gc.isenabled()


def test_an_action_that_fails_is_closed():
    class Broken(Waits):
        def action(self, point, world):
            prepared = super().action(point, world)

            def run():
                raise OSError("no memory")

            return Action(run, close=prepared.close)

    section = Broken()
    with pytest.raises(OSError, match="no memory"):
        measured(Pace(1, 2, 2), 30, section=section)
    assert section.opened == section.closed
