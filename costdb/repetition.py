"""How far two launches of one program differ, for the interval of a ratio of two.

What two programs do alike misses alike and cancels in their ratio; what differs from launch to
launch (where memory lies, what the machine is at) does not, not even between a program and
itself. A calibration times each point in several launches. Of each kind of work it states a
factor around 1 that holds nine in ten ratios of two launches; a profile that states none, as one
of published figures, says nothing of it, and ratios are as its coefficients make them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

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
