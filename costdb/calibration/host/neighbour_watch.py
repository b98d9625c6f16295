"""Whether other guests compute on this machine's cores while something else is being run.

A thread of its own times the sentinel on every core in turn, some twenty times a second, for less
than a thousandth of a core's time. It holds its times against those of the calibration, so that
both shares mean the same.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from costdb.calibration.host.calm_core import sentinel_of
from costdb.calibration.host.neighbours import (
    GREATEST_RATIO,
    NOTICEABLE_DIFFERENCE,
    SHARED,
    groups_of,
    limit_us_of,
)
from costdb.machines import Machine

# Whether anything else ran while a launch was measured, as far as the system tells.

_STATISTICS = Path("/proc/stat")
# user, nice, system, interrupts, soft interrupts and stolen; the others are idle.
_BUSY_COLUMNS = (1, 2, 3, 6, 7, 8)


class Bystanders:
    """Watches from its making on; processes that this one started and waited for are its own."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._before = _others_s()

    def busy_cores(self) -> float | None:
        """Return how many cores were kept busy by others on average; None where unknown."""
        now, seconds = _others_s(), time.monotonic() - self._begun
        if now is None or self._before is None or seconds <= 0:
            return None
        return max(0.0, (now - self._before) / seconds)


def _others_s() -> float | None:
    try:
        columns = _STATISTICS.read_text().splitlines()[0].split()
        busy = sum(int(columns[at]) for at in _BUSY_COLUMNS)
    except (OSError, ValueError, IndexError):
        return None
    own = os.times()
    ours_s = own.user + own.system + own.children_user + own.children_system
    return busy / os.sysconf("SC_CLK_TCK") - ours_s


_EVERY_S = 0.05
_FEWEST = 20


class NeighbourWatch:
    """Watches inside a ``with`` block; what it found can be asked for at any time.

    Parameters
    ----------
    machine : Machine
        Whose sentinel took so long; one without is told apart by the times found here.
    """

    def __init__(self, machine: Machine) -> None:
        self._limit_us = limit_us_of(machine)
        stated = machine.quantity("hardware", SHARED)
        self._calibrated = None if stated is None else stated.value
        self._times_us: list[float] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="neighbours", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def cores_shared(self) -> float | None:
        """For which part of the time a core was shared with another guest; None where unknown.

        It is 0 where the sentinel's times are one group and no calibration says what they mean.
        """
        return share_of(list(self._times_us), self._limit_us)

    def told(self) -> tuple[str, ...]:
        """Return what is to be said where the machine was in another state than calibrated."""
        return told_of(self.cores_shared, self._calibrated)

    def _watch(self) -> None:
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else [0]
        sentinel = sentinel_of(1)
        turn = 0
        while not self._ended.wait(_EVERY_S):
            turn += 1
            with suppress(AttributeError, OSError):
                # of this thread alone
                os.sched_setaffinity(0, {cores[turn % len(cores)]})
            # the first warms up what a thread that slept finds cold
            self._times_us.append(min(sentinel(), sentinel()))


def share_of(times_us: list[float], limit_us: float | None) -> float | None:
    """Return which part of the sentinel's times is over the limit, interrupts left out.

    Without a limit it is where the times fall into two groups.
    """
    if len(times_us) < _FEWEST:
        return None
    if limit_us is None:
        found = groups_of(times_us)
        if found is None:
            return 0.0
        limit_us = found.limit_us
    # a thread that waits for another's turn in the interpreter says nothing of the core
    known = [us for us in times_us if us <= GREATEST_RATIO * limit_us]
    return sum(us > limit_us for us in known) / len(known) if len(known) >= _FEWEST else None


def told_of(now: float | None, calibrated: float | None) -> tuple[str, ...]:
    """Return a sentence where a share of the time differs from that of the calibration."""
    if now is None or abs(now - (calibrated or 0.0)) < NOTICEABLE_DIFFERENCE:
        return ()
    then = "how much of it the calibration met is unknown"
    if calibrated is not None:
        then = f"for {calibrated:.0%} when the machine was calibrated"
    return (
        f"Other guests of the host computed on the same cores for {now:.0%} of the time, {then}: "
        "one cause of predicted and measured times that differ.",
    )
