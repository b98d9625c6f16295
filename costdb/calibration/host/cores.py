"""The cores that this process may use."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(_cores())


def cores_in_words() -> str:
    """Return which cores this process may use, as a calibration tells it."""
    return "cores " + ",".join(map(str, sorted(_cores())))


def _cores() -> frozenset[int]:
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))
