"""A process goes to the core that is calmest, stays while it is, and may use all of them after."""

from __future__ import annotations

import os

import pytest

from costdb.calibration.host.calm_core import on_calm_cores

CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else []
several = pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")


class Machine:
    """Cores on which the sentinel takes what is stated, and how often each was looked at."""

    def __init__(self) -> None:
        self.us = dict.fromkeys(CORES, 4.0)
        self.looks = dict.fromkeys(CORES, 0)

    def sentinel(self) -> float:
        (core,) = os.sched_getaffinity(0)
        self.looks[core] += 1
        return self.us[core]


@several
def test_the_calmest_core_is_taken_and_left_when_another_is_calmer():
    made = Machine()
    first, second = CORES[:2]
    made.us[first] = 7.0
    with on_calm_cores(made.sentinel) as stay:
        assert os.sched_getaffinity(0) == set(CORES)
        stay()
        assert made.us[next(iter(os.sched_getaffinity(0)))] == 4.0
        calm = next(iter(os.sched_getaffinity(0)))
        others = sum(made.looks.values()) - made.looks[calm]
        for _ in range(5):
            stay()
        assert os.sched_getaffinity(0) == {calm}
        assert sum(made.looks.values()) - made.looks[calm] == others  # no other was looked at
        made.us = dict.fromkeys(CORES, 7.0) | {first: 4.1}
        stay()
        assert os.sched_getaffinity(0) == {first}
    assert os.sched_getaffinity(0) == set(CORES)
    assert second in os.sched_getaffinity(0)


@several
def test_a_core_is_kept_while_no_other_is_calmer_than_by_little():
    made = Machine()
    with on_calm_cores(made.sentinel) as stay:
        stay()
        kept = os.sched_getaffinity(0)
        for seen in range(1, 9):  # all are shared now, and each is a little calmer by turns
            for place, core in enumerate(CORES):
                made.us[core] = 7.0 + 0.1 * ((place + seen) % 2)
            stay()
            assert os.sched_getaffinity(0) == kept


@several
def test_all_cores_are_free_again_after_an_error():
    with pytest.raises(ZeroDivisionError), on_calm_cores(Machine().sentinel) as stay:
        stay()
        raise ZeroDivisionError
    assert os.sched_getaffinity(0) == set(CORES)


@several
def test_a_process_that_has_one_core_stays_there():
    os.sched_setaffinity(0, CORES[:1])
    try:
        with on_calm_cores() as stay:
            stay()
            assert os.sched_getaffinity(0) == {CORES[0]}
    finally:
        os.sched_setaffinity(0, CORES)
