"""How far two launches of one program differ, for the interval of a ratio of two.

What two programs do alike misses alike and cancels in their ratio; what differs from launch to
launch (where memory lies, what the machine is at) does not, not even between a program and
itself. A calibration times each point in several launches. Of each kind of work it states a
factor around 1 that holds nine in ten ratios of two launches; a profile that states none, as one
of published figures, says nothing of it, and ratios are as its coefficients make them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from statistics import fmean, median

from costdb.estimate import Ratio
from costdb.machines import Machine
from costdb.quantity import Quantity
from costdb.work import (
    Collective,
    Fixed,
    Message,
    PickledCollective,
    PickledMessage,
    PrefixScan,
    RemoteElements,
    RemoteGroup,
    Superstep,
    Unknown,
    Work,
)

SECTION = "launches"
ALONE, RANKS, THREADS = "alone_residual", "ranks_residual", "threads_residual"
"""What one process does by itself, what ranks do, and what threads do together."""

_KINDS: dict[type, str] = {
    Message: RANKS,
    PrefixScan: RANKS,
    Collective: RANKS,
    PickledMessage: RANKS,
    PickledCollective: RANKS,
    RemoteElements: RANKS,
    RemoteGroup: RANKS,
    Superstep: THREADS,
}


def repeats_of(works: Iterable[Work], machine: Machine) -> tuple[Quantity, ...]:
    """Return what a machine states of each kind of work."""
    kinds = dict.fromkeys(
        _KINDS.get(type(work), ALONE) for work in works if not isinstance(work, Fixed | Unknown)
    )
    stated = (machine.quantity(SECTION, kind) for kind in kinds)
    return tuple(one for one in stated if one is not None)


def with_repetition(ratio: Ratio, above: Iterable[Quantity], below: Iterable[Quantity]) -> Ratio:
    """Return a ratio whose interval also holds how two launches differ.

    A factor holds ratios of two launches of one kind of work, so that either launch has half of
    its square. Of several kinds in one program the one that repeats worst counts.
    """
    if not (math.isfinite(ratio.high) and ratio.low > 0):
        return ratio
    sides = [list(above), list(below)]
    down, up = (
        math.sqrt(sum(max((end(one) ** 2 for one in side), default=0.0) for side in sides) / 2)
        for end in (_down, _up)
    )
    low = math.exp(-math.hypot(math.log(ratio.mid / ratio.low), down))
    high = math.exp(math.hypot(math.log(ratio.high / ratio.mid), up))
    return Ratio(ratio.mid * low, ratio.mid, ratio.mid * high)


def _down(factor: Quantity) -> float:
    return math.log(factor.value / factor.low)


def _up(factor: Quantity) -> float:
    return math.log(factor.high / factor.value)


# What something takes on a processor that has several speeds.
#
# Where others share a processor's cores, one operation has several speeds, each for a tenth of a
# second to some seconds. Repetitions right after one another are shorter than that and meet one of
# them; a program that runs longer meets all, and takes what is right on average. A median would
# jump from one speed to another as their shares pass a half. So the repetitions are spread over
# several visits, a visit's value is the median of its repetitions, and what counts is the visits'
# mean.


_NONE_OUT, _VISITS_FOR_ONE = 5, 8
_NO_SPEED = 3.0
"""Who shares a core has about half of it: nothing takes three times as long by that."""


def typical(visits: Iterable[Collection[float]]) -> float:
    """Return the mean of visits' medians.

    Of five visits one at either end is left out, of thirteen two, and so on: one that was
    disturbed can take many times as long.

    Parameters
    ----------
    visits : iterable of collection of float
        Repetitions of each visit, in any unit.

    Raises
    ------
    statistics.StatisticsError
        There are no visits, or one has no repetition.
    """
    found = sorted(median(visit) for visit in visits)
    out = (len(found) + _VISITS_FOR_ONE - _NONE_OUT) // _VISITS_FOR_ONE
    return fmean(found[out : len(found) - out])


def typical_of_launches(each: Sequence[float]) -> float:
    """Return the mean of what launches say, but for those that take no speed of the processor's.

    Threads and ranks that wait for each other take hundreds of times as long while a process
    holds one of their cores. Where that went on for a part of a launch, the launch says nothing
    of the machine, and of three launches one would decide.

    Parameters
    ----------
    each : sequence of float
        What each launch says, in any unit.

    Raises
    ------
    statistics.StatisticsError
        There are no launches.
    """
    most = _NO_SPEED * median(each)
    return fmean(one for one in each if one <= most)
