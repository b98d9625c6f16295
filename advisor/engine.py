"""From source text to ranked findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from advisor.finding import Finding, Remark


@dataclass(frozen=True)
class Options:
    """What the user chose.

    Attributes
    ----------
    machine : str or None
        Name of the profile that predictions are for.
    sizes : mapping of str to int or float
        Bound with ``-D``.
    select, ignore : tuple of str
        Codes; no code selected means all.
    min_speedup : float
        Smaller predicted gains are not reported.
    """

    machine: str | None
    sizes: Mapping[str, int | float]
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    min_speedup: float


@dataclass(frozen=True)
class FileResult:
    """What is to be said of one file."""

    path: str
    source: str
    findings: tuple[Finding, ...]
    remarks: tuple[Remark, ...]
