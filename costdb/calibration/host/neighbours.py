"""Whether another guest of the host used the same cores while samples were taken.

Beside every sample stands how long a short loop in the first cache took right before and after
it, the *sentinel* (:mod:`costdb.calibration.host.calm_core`). Where its times fall into two groups,
the least of which is what it takes on a core of its own, a sample is taken *alone* or *shared*, or
neither, if it began in one state and ended in the other or ranks were in different ones. What
counts is what programs meet, all states in turn (:mod:`costdb.typical`); how much of either a
calibration met is told, as another time may meet another mix. Single calls of one process, which
are compared with one another, are fitted to samples taken alone where these are most: a factor of
whole programs, whose samples are of all states, makes of them what programs meet.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from costdb.calibration.host.calm_core import sentinel_of
from costdb.machines import Machine
from costdb.machines.documents import Json, measured
from costdb.store.records import Beside

NOTICEABLE_SHARE = 0.05
"""Of the samples: a smaller part in another state is not worth telling."""

_LEAST_RATIO = 1.15
"""Of the two groups' medians: what lies closer is one group that scatters."""
GREATEST_RATIO = 3.0
"""Over the median: two hardware threads share a core's units, so neither is slowed down so much."""
_LEAST_SHARE = 0.005
"""Of a group: fewer are outliers."""


class State(StrEnum):
    """How the cores of a sample were used."""

    ALONE = "alone"
    SHARED = "shared"
    CHANGING = "changing"


@dataclass(frozen=True, slots=True)
class Groups:
    """The two groups of a sentinel's times: their medians, and up to which time it was alone."""

    alone_us: float
    shared_us: float
    limit_us: float

    def state(self, low_us: float, high_us: float) -> State:
        """Return the state of a sample beside which the sentinel took so long."""
        if high_us <= self.limit_us:
            return State.ALONE
        return State.SHARED if low_us > self.limit_us else State.CHANGING

    @property
    def ratio(self) -> float:
        """How many times longer the sentinel takes beside another guest."""
        return self.shared_us / self.alone_us


@dataclass(frozen=True, slots=True)
class Sharing:
    """How cores were shared during a calibration.

    Attributes
    ----------
    groups : mapping of int to Groups
        By the number of threads that the sentinel watches; one whose times are one group is
        left out, as it tells nothing.
    counts : mapping of State to int
        Samples in each state, of those that groups tell apart.
    one_us : mapping of int to float
        The median of a sentinel whose times are one group.
    cores : float
        Which part of the time a core was shared, by the readings of one thread's sentinel.
    """

    groups: Mapping[int, Groups]
    counts: Mapping[State, int]
    one_us: Mapping[int, float]
    cores: float = 0.0

    def share(self, state: State) -> float:
        """Return which part of the samples was taken in a state."""
        return self.counts[state] / max(sum(self.counts.values()), 1)


UNTOLD = Sharing({}, dict.fromkeys(State, 0), {})
"""That of a calibration without sentinels."""


def sharing_of(visits: Iterable[Beside]) -> Sharing:
    """Return how cores were shared over all visits of a calibration."""
    times: dict[int, list[tuple[float, float]]] = {}
    for beside in visits:
        times.setdefault(beside.threads, []).extend(beside.us)
    groups: dict[int, Groups] = {}
    one_us: dict[int, float] = {}
    counts = dict.fromkeys(State, 0)
    for threads, ends in times.items():
        every = [time for pair in ends for time in pair]
        found = groups_of(every)
        if found is None:
            one_us[threads] = float(np.median(every))
            continue
        groups[threads] = found
        for low, high in ends:
            counts[found.state(low, high)] += 1
    return Sharing(groups, counts, one_us, _cores(times.get(1, ()), groups.get(1)))


def _cores(ends: Sequence[tuple[float, float]], groups: Groups | None) -> float:
    """Return how often the ends of samples, which are of any rank, are over the limit."""
    if groups is None:
        return 0.0
    return sum(end > groups.limit_us for pair in ends for end in pair) / (2 * len(ends))


def groups_of(times_us: Sequence[float]) -> Groups | None:
    """Return the two groups of times, or None where they are one.

    The limit is where groups' means of the logarithm are farthest apart, weighted by how many are
    in either (Otsu's threshold), so that it moves with the times' unit and needs no histogram.
    """
    logs = np.sort(np.log(np.array(times_us, dtype=np.float64)))
    if logs.size < 2:
        return None
    # interrupts and whatever else stops a process would be a group of their own
    logs = logs[logs <= np.median(logs) + np.log(GREATEST_RATIO)]
    count = np.arange(1, logs.size)
    below = np.cumsum(logs)[:-1]
    apart = (logs.sum() * count / logs.size - below) ** 2 / (count * (logs.size - count))
    split = int(np.argmax(apart)) + 1
    alone, shared = float(np.median(logs[:split])), float(np.median(logs[split:]))
    small = min(split, logs.size - split) < _LEAST_SHARE * logs.size
    if small or shared - alone < np.log(_LEAST_RATIO):
        return None
    limit = (logs[split - 1] + logs[split]) / 2
    return Groups(*(float(np.exp(one)) for one in (alone, shared, limit)))


# What a profile says of other guests that computed on the same cores while it was measured.

SHARED = "cores_shared"
"""The quantity of ``hardware`` that says for which part of the time a core was shared."""

NOTICEABLE_DIFFERENCE = 0.2
"""Between two times' shares: less makes no operation differ by more than a seventh."""

_ALONE_LIMIT = 1.25
"""Over what the sentinel takes where it never met another guest."""


def limit_us_of(machine: Machine) -> float | None:
    """Return up to which time one thread's sentinel is alone on its core; None where unknown."""
    limit = machine.quantity("hardware", "sentinel_p1_limit_us")
    if limit is not None:
        return limit.value
    alone = machine.quantity("hardware", "sentinel_p1_alone_us")
    return None if alone is None else _ALONE_LIMIT * alone.value


def sharing_facts(sharing: Sharing) -> dict[str, Json]:
    """Return quantities of the section ``hardware``: what the sentinels took, and how often."""
    facts: dict[str, Json] = {}
    for threads, us in sharing.one_us.items():
        facts[f"sentinel_p{threads}_alone_us"] = measured(us, "us", note=_SENTINEL)
    for threads, groups in sharing.groups.items():
        facts[f"sentinel_p{threads}_alone_us"] = measured(groups.alone_us, "us", note=_SENTINEL)
        facts[f"sentinel_p{threads}_shared_us"] = measured(groups.shared_us, "us")
        facts[f"sentinel_p{threads}_limit_us"] = measured(groups.limit_us, "us")
    if sharing.groups or sharing.one_us:
        facts[SHARED] = measured(sharing.cores, "1", note=_CORES)
    if sharing.groups:
        facts["samples_alone"] = measured(sharing.share(State.ALONE), "1", note=_SHARE)
        facts["samples_shared"] = measured(sharing.share(State.SHARED), "1", note=_SHARE)
    return facts


def sharing_told(sharing: Sharing) -> tuple[str, ...]:
    """Return what is to be said, which is nothing where cores were hardly ever shared."""
    alone, shared = sharing.share(State.ALONE), sharing.share(State.SHARED)
    if not sharing.groups or 1 - alone < NOTICEABLE_SHARE:
        return ()
    slower = " and ".join(
        f"{groups.ratio:.2f} times as long" + (f" on {threads} cores" if threads > 1 else "")
        for threads, groups in sorted(sharing.groups.items())
    )
    return (
        f"Another guest of the host computed on the same cores for {shared:.0%} of the samples, "
        f"none for {alone:.0%}; for the others that changed, or differed by core. A loop in the "
        f"first cache then takes {slower}. Rates are means over all samples, unless a section says "
        "that they are of idle cores.",
    )


_SENTINEL = "a short loop in the first cache, timed beside each sample"
_CORES = "part of the time that a core was shared with another guest"
_SHARE = "of the samples"


# Whether other guests compute on this machine's cores while something else is being run.
#
# A thread of its own times the sentinel on every core in turn, some twenty times a second, for less
# than a thousandth of a core's time. It holds its times against those of the calibration, so that
# both shares mean the same.

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
