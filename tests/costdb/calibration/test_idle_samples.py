"""Samples on cores that nobody else used: told apart where they are most, and fitted to."""

from __future__ import annotations

import random
from statistics import fmean

import pytest

from costdb.calibration.profile import record, timings_of
from costdb.calibration.section import Point, Timing
from costdb.store import store_path
from costdb.store.database import writing
from costdb.store.records import Beside, Launch, begin_launch, begin_run

SETTING = {"library": "none", "library_version": "", "ranks": 1, "nodes": 1, "pinning": "-"}
ALONE_US, SHARED_US = 6.0, 10.0
POINTS = tuple(Point("made", {"n": number}) for number in range(12))
LAUNCHES, VISITS, SAMPLES = 2, 8, 4


@pytest.fixture(autouse=True)
def data_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("ADVISE_DATA_DIR", str(tmp_path / "data"))


def stored(shared: float, *, told: bool = True) -> tuple[Timing, ...]:
    """Return what comes back of points that take 1 + n alone and half as much again if not."""
    draw = random.Random(3)
    with writing(store_path()) as connection:
        run = begin_run(connection, "here", "full", 1, "1", ["made"])
        for _ in range(LAUNCHES):
            number = begin_launch(connection, run, "made", SETTING)
            launch = Launch(run.id, "made", number, SETTING, finished=False)
            visits = []
            for point in POINTS * VISITS:
                busy = draw.random() < shared
                us = (1.5 if busy else 1.0) * (1 + int(point.features["n"]))
                sentinel = (SHARED_US if busy else ALONE_US) * draw.uniform(0.98, 1.02)
                beside = Beside(1, ((sentinel, sentinel),) * SAMPLES)
                visits.append((point, (us,) * SAMPLES, beside if told else None))
            record(connection, run, launch, visits)
        return timings_of(connection, run, "made")


def test_idle_samples_are_what_counts_where_they_are_most():
    found = stored(0.3)
    assert len(found) == len(POINTS)
    for timing in found:
        alone_us = 1.0 + timing.point.features["n"]
        assert timing.on_idle_cores().typical_us == pytest.approx(alone_us)
        assert [len(launch) for launch in timing.launches_us] == [VISITS] * LAUNCHES
        # what stands for programs is still of all samples
        assert timing.typical_us >= alone_us
    assert fmean(one.typical_us / (1 + one.point.features["n"]) for one in found) > 1.08


@pytest.mark.parametrize(("shared", "told"), [(0.7, True), (0.3, False), (0.0, True)])
def test_all_count_where_others_are_most_or_nothing_tells_them_apart(shared, told):
    for timing in stored(shared, told=told):
        assert timing.on_idle_cores() is timing


def test_too_few_idle_samples_of_a_point_are_not_taken_for_it():
    few = Timing(POINTS[0], (((1.0, 1.0, 1.5, 1.5),),), (((1.0, 1.0),),))
    assert few.on_idle_cores() is few
    other_launch = Timing(POINTS[0], (((1.5,) * 4,), ((1.0,) * 4,)), ((), ((1.0,) * 4,)))
    assert other_launch.on_idle_cores() == Timing(POINTS[0], (((1.0,) * 4,),))
