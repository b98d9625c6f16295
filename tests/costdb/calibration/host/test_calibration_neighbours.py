"""Samples beside a busy neighbour are told apart by a sentinel."""

from __future__ import annotations

import itertools
import os
import random
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costdb.calibration.host.calm_core import sentinel_of
from costdb.calibration.host.neighbours import (
    NeighbourWatch,
    State,
    groups_of,
    limit_us_of,
    share_of,
    sharing_facts,
    sharing_of,
    sharing_told,
    told_of,
)
from costdb.machines.checks import PROFILE_SCHEMA_VERSION
from costdb.machines.machine import machine_of
from costdb.store.records import Beside

ALONE_US, SHARED_US = 6.5, 11.5


def series(shared: float, count: int = 4000, seed: int = 1, scatter: float = 0.04) -> list[float]:
    """Return readings in stretches, as a neighbour comes and goes, with some interrupts."""
    draw = random.Random(seed)
    made: list[float] = []
    while len(made) < count:
        us = SHARED_US if draw.random() < shared else ALONE_US
        made += [us * draw.lognormvariate(0, scatter) for _ in range(draw.randrange(1, 40))]
    return [us * (20 if draw.random() < 0.003 else 1) for us in made[:count]]


def beside(readings: list[float], threads: int = 1) -> Beside:
    ends = itertools.pairwise(readings)
    return Beside(threads, tuple((min(pair), max(pair)) for pair in ends))


@pytest.mark.parametrize("shared", [0.05, 0.5, 0.95])
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6), scale=st.floats(1e-3, 1e3))
def test_two_groups_are_found_whatever_the_unit(shared, seed, scale):
    readings = series(shared, 8000, seed=seed)
    found = groups_of(readings)
    assert found is not None
    assert found.alone_us == pytest.approx(ALONE_US, rel=0.02)
    assert found.shared_us == pytest.approx(SHARED_US, rel=0.05)
    assert ALONE_US * 1.1 < found.limit_us < SHARED_US * 0.9
    scaled = groups_of([scale * us for us in readings])
    assert scaled is not None
    states = [found.state(us, us) for us in readings]
    assert [scaled.state(scale * us, scale * us) for us in readings] == states


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), shared=st.sampled_from([0.0, 1.0]))
def test_one_group_that_scatters_is_one_state(seed, shared):
    readings = series(shared, seed=seed)
    assert groups_of(readings) is None
    sharing = sharing_of([beside(readings)])
    assert sharing.groups == {}
    assert sharing_told(sharing) == ()
    assert set(sharing_facts(sharing)) == {"sentinel_p1_alone_us", "cores_shared"}
    assert sharing_facts(sharing)["cores_shared"]["value"] == 0


def test_what_a_calibration_met_is_told():
    mostly = sharing_of([beside(series(0.9)), beside(series(0.1, 500))])
    assert sum(mostly.share(state) for state in State) == pytest.approx(1)
    assert mostly.share(State.SHARED) > 0.6 > 0.3 > mostly.share(State.ALONE)
    (said,) = sharing_told(mostly)
    assert f"same cores for {mostly.share(State.SHARED):.0%} of the samples" in said
    facts = sharing_facts(mostly)
    for state, name in ((State.SHARED, "samples_shared"), (State.ALONE, "samples_alone")):
        assert facts[name]["value"] == pytest.approx(mostly.share(state), rel=1e-4)
    hardly = sharing_of([beside(series(0.02, 8000))])
    assert hardly.groups
    assert sharing_told(hardly) == ()


def test_threads_have_groups_of_their_own():
    twice = [2.5 * us for us in series(0.5, seed=7)]
    sharing = sharing_of([beside(series(0.5)), beside(twice, threads=2)])
    for threads, factor in ((1, 1.0), (2, 2.5)):
        groups = sharing.groups[threads]
        assert groups.alone_us == pytest.approx(factor * ALONE_US, rel=0.02)
        low, high = factor * ALONE_US, factor * SHARED_US
        assert groups.state(low, low) is State.ALONE
        assert groups.state(high, high) is State.SHARED
        assert groups.state(low, high) is State.CHANGING
    assert sum(sharing.counts.values()) == 2 * 3999


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_of_one_block_does_not_count(monkeypatch, threads):
    if threads > 1:
        pytest.importorskip("numba")
    # four readings of the clock for two blocks, of 7 and of 9000 us
    ticks = itertools.cycle([0, 7_000, 10_000, 9_010_000])
    clock = "costdb.calibration.host.calm_core.time.perf_counter_ns"
    monkeypatch.setattr(clock, lambda: next(ticks))
    sentinel = sentinel_of.__wrapped__(threads)
    assert [sentinel() for _ in range(3)] == [7.0] * 3


def test_the_sentinel_of_threads_is_done_by_all():
    pytest.importorskip("numba")
    from costdb.calibration.host.sentinel_threads import _additions

    shares = np.ones((2, 8))
    _additions(shares, 60)
    # x / 2 + 1 comes to 2, whose neighbourhood is not reached by fewer passes
    assert np.allclose(shares, 2.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shared", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_a_watch_tells_the_share_by_what_the_calibration_found(shared):
    known = sharing_of([beside(series(0.5))])
    machine = _machine(sharing_facts(known))
    assert limit_us_of(machine) == pytest.approx(known.groups[1].limit_us, rel=1e-4)
    readings = series(shared, 8000, seed=4)
    exact = sum(SHARED_US * 0.8 < us < SHARED_US * 2 for us in readings) / len(readings)
    assert share_of(readings, limit_us_of(machine)) == pytest.approx(exact, abs=0.01)
    # by themselves readings tell two groups, but not which one a single one is
    alike = exact if shared not in (0.0, 1.0) else 0.0
    assert sharing_of([beside(readings)]).cores == pytest.approx(alike, abs=0.02)
    assert share_of(readings, None) == pytest.approx(alike, abs=0.01)


def test_a_calibration_that_met_nobody_still_says_what_alone_is():
    machine = _machine(sharing_facts(sharing_of([beside(series(0.0))])))
    assert share_of(series(0.0), limit_us_of(machine)) == 0
    assert share_of(series(1.0), limit_us_of(machine)) == 1
    assert limit_us_of(_machine({})) is None
    assert share_of([1.0] * 5, 2.0) is None
    assert share_of([9.0] * 50, 2.0) is None


def test_another_state_than_the_calibration_s_is_told():
    assert told_of(0.5, 0.45) == told_of(0.1, None) == told_of(None, 0.9) == ()
    (more,) = told_of(0.9, 0.3)
    assert "for 90% of the time, for 30% when the machine was calibrated" in more
    assert told_of(0.1, 0.9) != ()


def test_a_watch_reads_while_its_block_runs(monkeypatch):
    readings = itertools.cycle([ALONE_US] * 3 + [SHARED_US] * 3)
    enough = threading.Event()
    count = itertools.count(1)

    def sentinel():
        if next(count) > 240:
            enough.set()
        return next(readings)

    module = "costdb.calibration.host.neighbours"
    monkeypatch.setattr(f"{module}.sentinel_of", lambda threads: sentinel)
    monkeypatch.setattr(f"{module}._EVERY_S", 0)
    here = os.sched_getaffinity(0)
    with NeighbourWatch(_machine(sharing_facts(sharing_of([beside(series(0.9))])))) as watch:
        assert enough.wait(30)
    # of three pairs the one in the middle has the time of both
    assert watch.cores_shared == pytest.approx(1 / 3, abs=0.02)
    assert len(watch.told()) == 1
    assert os.sched_getaffinity(0) == here
    assert not any(thread.name == "neighbours" for thread in threading.enumerate())


def _machine(facts):
    document = {
        "schema_version": PROFILE_SCHEMA_VERSION, "name": "here", "title": "here",
        "library": "none", "sources": {"calibration": "this one"}, "hardware": facts,
    }  # fmt: skip
    return machine_of(document, "test")
