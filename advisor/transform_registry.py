"""Finds the transforms that are installed, through the entry-point group ``advise.transforms``."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from advisor.ir.proposal import Transform

GROUP = "advise.transforms"


@cache
def transforms() -> tuple[Transform, ...]:
    """Return all installed transforms, ordered by code.

    Raises
    ------
    LookupError
        When none is installed, which means that the distribution's metadata is missing.
    """
    found: list[Transform] = [point.load() for point in entry_points(group=GROUP)]
    if not found:
        raise LookupError(
            "no transforms are installed: reinstall with `pip install kernel-advisor`"
        )
    return tuple(sorted(found, key=lambda transform: transform.code))
