"""Finds the transforms that are installed, through their entry-point groups."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from advisor.ir.proposal import Transform
from advisor.ir.rule import Rule
from advisor.ir.spmd.proposal import ProgramTransform

GROUP = "advise.transforms"
PROGRAM_GROUP = "advise.program_transforms"


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


@cache
def program_transforms() -> tuple[ProgramTransform, ...]:
    """Return the installed transforms of SPMD programs, ordered by code; there may be none."""
    found: list[ProgramTransform] = [p.load() for p in entry_points(group=PROGRAM_GROUP)]
    return tuple(sorted(found, key=lambda transform: transform.code))


def rules() -> tuple[Rule, ...]:
    """Return all installed transforms, of kernels and of programs, ordered by code.

    Raises
    ------
    LookupError
        As :func:`transforms`.
    """
    return tuple(sorted((*transforms(), *program_transforms()), key=lambda one: one.code))
