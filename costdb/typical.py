"""What something takes on a processor that has several speeds.

Where others share a processor's cores, one operation has several speeds, each for a tenth of a
second to some seconds. Repetitions right after one another are shorter than that and meet one of
them; a program that runs longer meets all, and takes what is right on average. A median would jump
from one speed to another as their shares pass a half. So the repetitions are spread over several
visits, a visit's value is the median of its repetitions, and what counts is the visits' mean.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from statistics import fmean, median

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
