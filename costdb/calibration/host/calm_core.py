"""Staying on the core that other guests of the host use least, for what one thread does alone.

Guests use some cores' sibling hardware threads for minutes and leave others alone. Where the
system moves a process from one to the other, its times differ by a half from one launch to the
next; on the calmest core they repeat. What several ranks or threads do needs all cores as they are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from costdb.calibration.host.sentinel import Sentinel, sentinel_of

_MOST_CORES = 8
"""Of more than so many the first ones are tried: a look at each costs some tens of microseconds."""
_CALM = 1.1
"""A core on which the sentinel takes so little more than it ever did is as good as any."""
_LOOKS = 3


@contextmanager
def on_calm_cores(sentinel: Sentinel | None = None) -> Iterator[Callable[[], None]]:
    """Give what moves this process to the calmest core it may use, whenever it is called.

    Where a process has one core or its system knows of none, it does nothing. In the end the
    process may use all its cores again.

    Parameters
    ----------
    sentinel : callable, optional
        Returns what it takes on the core where it is called.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield lambda: None
        return
    allowed = os.sched_getaffinity(0)
    cores = sorted(allowed)[:_MOST_CORES]
    if len(cores) < 2:
        yield lambda: None
        return
    timed = sentinel_of(1) if sentinel is None else sentinel
    least = float("inf")

    def here() -> float:
        return min(timed() for _ in range(_LOOKS))

    def on(core: int) -> float:
        os.sched_setaffinity(0, {core})
        return here()

    def stay() -> None:
        nonlocal least
        now = os.sched_getaffinity(0)
        if len(now) == 1 and here() <= _CALM * least:
            return
        taken = {core: on(core) for core in cores}
        calmest = min(taken, key=taken.__getitem__)
        least = min(least, taken[calmest])
        # to move leaves the caches behind, so cores that are alike are no reason to
        alike = [core for core in now if len(now) == 1 and taken[core] <= _CALM * taken[calmest]]
        os.sched_setaffinity(0, set(alike) or {calmest})

    try:
        yield stay
    finally:
        os.sched_setaffinity(0, allowed)
