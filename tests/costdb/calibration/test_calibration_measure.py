"""The timing loop: what is visited, in which order, for how long."""

from __future__ import annotations

import gc
import math
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costdb.calibration.section import Action, Effort, Fitted, Point, Timing, World, find_section
from costdb.calibration.worker import Pace, measure
from tests.costdb.hosts import EPYC

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

    def points(self, effort, processors, host):
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

    def fit(self, timings, host):
        return Fitted({})


def measured(pace: Pace, seconds: float, seed: int = 1, section: Waits | None = None):
    every = section or Waits()
    return list(measure(every, POINTS, World(EPYC), pace, seconds=seconds, seed=seed))


def test_time_is_kept_by_taking_fewer_samples(monkeypatch):
    # a clock that goes on by a microsecond when it is looked at, however busy the machine is
    looks = count()
    for name in ("monotonic", "perf_counter"):
        monkeypatch.setattr(time, name, lambda: next(looks) * 1e-6)
    found = measured(Pace(3, 3, 1_000_000, 2), seconds=0.3)
    assert next(looks) < 1_000_000
    assert sum(len(taken) for _, taken in found) < 100_000
    assert {index for index, _ in found} == {0, 1, 2}
    assert measured(Pace(3, 3, 30, 2), seconds=0.0) == []


def test_an_action_that_fails_is_closed():
    class Broken(Waits):
        def action(self, point, world):
            prepared = super().action(point, world)

            def run():
                raise OSError("no memory")

            return Action(run, close=prepared.close)

    section = Broken()
    with pytest.raises(OSError, match="no memory"):
        measured(Pace(1, 1, 2, 2), 30, section=section)
    assert section.opened == section.closed


@given(st.floats(0, 100), st.floats(0, 20), st.floats(0, 20))
def test_there_are_as_many_rounds_as_the_time_allows(left_s, fast_s, slow_s):
    pace = Pace(8, 3, 32, 2)
    found = pace.within(left_s, fast_s, slow_s)

    def needed(rounds):
        return sum(
            fast_s + slow_s * replace(pace, rounds=rounds).visited(number, slow=True)
            for number in range(1, rounds)
        )

    assert 3 <= found.rounds <= 8
    assert found.rounds == 3 or needed(found.rounds) <= left_s * (1 + 1e-9)
    assert found.rounds == 8 or needed(found.rounds + 1) >= left_s * (1 - 1e-9)
    # fewer rounds have more samples in each, as many in all
    assert found.samples_of(slow=False) >= pace.samples_of(slow=False)
    assert found.samples_of(slow=False) * found.rounds <= 32


class Clock:
    """A clock that goes on when somebody does something, however busy the machine is."""

    def __init__(self) -> None:
        self.now_s = 1.0

    def monotonic(self) -> float:
        return self.now_s

    perf_counter = monotonic

    def perf_counter_ns(self) -> int:
        return round(self.now_s * 1e9)

    process_time_ns = perf_counter_ns

    def goes_on(self, seconds: float) -> None:
        self.now_s += seconds


def test_what_takes_more_than_its_share_is_visited_less_often(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("costdb.calibration.worker.time", clock)

    class Long(Waits):
        def action(self, point, world):
            us = float(point.features["us"])
            return Action(lambda: clock.goes_on(0.02 if us == 100 else us * 1e-6))

    # an even share is 12 ms: ten visits of nine samples are far from it, one of the long is not
    found = measured(Pace(10, 2, 20, 2), seconds=0.36, section=Long())
    assert Counter(index for index, _ in found) == {0: 10, 1: 10, 2: 2}


def test_the_slowest_rank_counts():
    class Pair:
        """Two ranks: this one, and one that always takes a second."""

        def Barrier(self):  # noqa: N802
            pass

        def bcast(self, value):
            return value

        def allgather(self, mine):
            if isinstance(mine, float):
                return [mine, 0.0]
            return [mine, [1e6] * len(mine)]

    pace, world = Pace(1, 1, 2, 2), World(EPYC, 0, 2, Pair())
    found = list(measure(Waits(), POINTS[:1], world, pace, seconds=30, seed=1))
    assert found == [(0, (1e6, 1e6))]


# What measures array calls has one BLAS thread: nothing loads NumPy before that is said.


PROGRAM = """
import os, sys
import costdb.calibration.worker, advisor.verify.worker
assert "numpy" not in sys.modules, "loaded too early"
from costdb.calibration.section import find_section
find_section("arrays")
np = sys.modules["numpy"]
a = np.ones((600, 600))
a @ a
print(os.environ["OPENBLAS_NUM_THREADS"], len(os.listdir("/proc/self/task"))
      if os.path.isdir("/proc/self/task") else 1)
"""


def test_matrix_products_are_on_one_thread_wherever_something_is_timed() -> None:
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == ["1", "1"]


# Sections of which little was measured in their time: a sound fit of it, or none that says why.


NAMES = ("messages", "collectives", "pickled", "remote", "supersteps")
LARGEST = 1e9


def numbers(document: object) -> Iterator[float]:
    """Yield the values of all quantities in a part of a profile."""
    if isinstance(document, dict):
        if isinstance(document.get("value"), int | float):
            yield float(document["value"])
        for each in document.values():
            yield from numbers(each)
    elif isinstance(document, list):
        for each in document:
            yield from numbers(each)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_what_few_points_say_is_sound_or_not_said(name: str, data: st.DataObject) -> None:
    section = find_section(name)
    points = section.points(Effort.QUICK, 2, EPYC)
    chosen = data.draw(st.lists(st.sampled_from(points), min_size=1, max_size=40, unique_by=id))
    draw = data.draw(st.randoms(use_true_random=False))
    timings = [Timing(p, (((draw.uniform(1, 500),) * 3,), ((5.0, 6.0),))) for p in chosen]
    try:
        fitted = section.fit(timings, EPYC)
    except (ValueError, LookupError):
        # a calibration leaves the section out, says so, and keeps the others
        return
    found = list(numbers(fitted.parts))
    assert found
    assert all(math.isfinite(value) and abs(value) < LARGEST for value in found)
    for quality in fitted.qualities:
        assert math.isfinite(quality.median_error)
