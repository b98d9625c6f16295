"""The clock of sampled programs: few iterations run, all are counted."""

from __future__ import annotations

import time

import numpy as np
import pytest

from advisor.measure.clock import Clock, Unfinished


class Time:
    """A time that goes on only where a test says so."""

    def __init__(self) -> None:
        self.at = 100.0
        self.ran = 0

    def __call__(self) -> float:
        return self.at

    def spend(self, seconds: float) -> None:
        self.at += seconds
        self.ran += 1


@pytest.fixture
def clocked(monkeypatch: pytest.MonkeyPatch) -> Time:
    found = Time()
    monkeypatch.setattr(time, "perf_counter", found)
    return found


def test_loops_in_loops_are_counted(clocked: Time) -> None:
    clock, n = Clock(60.0), 500
    began = clock.now()
    for rows in clock.loop(0, range(n), ""):
        for i in rows:
            clocked.spend(1e-5)
            for columns in clock.loop(1, range(i), ""):
                for j in columns:
                    clocked.spend(1e-6 * (1 + j))
    expected = sum(1e-5 + 1e-6 * i * (i + 1) / 2 for i in range(n))
    assert clock.now()[0] - began[0] == pytest.approx(expected, rel=0.05)
    assert clocked.ran < 0.3 * (n * n / 2)


def test_numbers_and_lists_go_on_as_if_all_had_run(clocked: Time) -> None:
    clock = Clock(60.0)
    count, found, other = 3, [0], 1.0
    loop = clock.loop(0, range(50_000), "")
    for part in loop:
        count, found, other = loop.carry(count, found, other)
        for i in part:
            clocked.spend(1e-5)
            count += 4
            found.append(i)
            other *= 0.5
    count, found, other = loop.left(count, found, other)
    assert clocked.ran < 5000
    assert count == 3 + 4 * 50_000
    assert len(found) == 1 + 50_000


def test_what_changes_its_shape_is_run_whole(clocked: Time) -> None:
    clock = Clock(60.0)
    a = np.ones(2)
    loop = clock.loop(0, range(3000), "")
    for part in loop:
        (a,) = loop.carry(a)
        for _ in part:
            clocked.spend(1e-3)
            a = np.append(a, 1.0)
    (a,) = loop.left(a)
    assert clocked.ran == 3000 and len(a) == 3002


def test_nothing_counts_behind_the_end_of_a_loop(clocked: Time) -> None:
    clock = Clock(60.0)
    began = clock.now()
    loop = clock.loop(0, range(100_000), "")
    for part in loop:
        for i in part:
            clocked.spend(1e-4)
            if i > 60_000:
                loop.broke = True
                break
        if loop.broke:
            break
    assert clock.now()[0] - began[0] == pytest.approx(6.0, rel=0.3)


@pytest.mark.parametrize(
    ("sequence", "kind", "expected"),
    [
        ([3, 1, 2], "", [3, 1, 2]),
        (np.arange(4.0), "", [0.0, 1.0, 2.0, 3.0]),
        ((7, 8), "numbered", [(0, 7), (1, 8)]),
        ({5: 1}, "", [5]),
        ({5: 1}, "numbered", [(0, 5)]),
        (([1, 2, 3], (4, 5)), "zipped", [(1, 4), (2, 5)]),
        (([1, 2], {4: 0, 5: 0}), "zipped", [(1, 4), (2, 5)]),
        (iter([1, 2]), "", [1, 2]),
    ],
)
def test_whatever_can_be_gone_through_is(sequence: object, kind: str, expected: object) -> None:
    found = [one for part in Clock(60.0).loop(0, sequence, kind) for one in part]
    assert found == expected


def test_a_loop_of_unknown_length_ends_with_the_budget(clocked: Time) -> None:
    clock = Clock(2.0)
    clock.enter(4)
    with pytest.raises(Unfinished) as told:
        while True:
            clock.trip(4)
            clocked.spend(0.1)
    assert told.value.place == 4
    assert told.value.seconds / told.value.trips == pytest.approx(0.1, rel=0.1)


def test_what_is_skipped_is_in_memory_behind_the_loop() -> None:
    clock = Clock(60.0)
    a = np.arange(40_000.0)
    clock.skipped[0] = 1
    loop = clock.loop(0, range(1), "")
    began = clock.now()
    loop.touch(a, a[::2], "no array")
    assert clock.now()[0] - began[0] < 1e-4
    np.testing.assert_array_equal(a, np.arange(40_000.0))
