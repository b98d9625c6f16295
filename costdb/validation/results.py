"""What a validation says: figures of the papers, figures of this machine, and verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class Verdict(StrEnum):
    """Whether what a paper claims is so here."""

    HOLDS = "holds"
    MISSES = "MISSES"
    UNJUDGED = "-"

    @staticmethod
    def of(holds: bool) -> Verdict:
        """Return the verdict on a claim."""
        return Verdict.HOLDS if holds else Verdict.MISSES


@dataclass(frozen=True, slots=True)
class Row:
    """One figure.

    Attributes
    ----------
    model : str
        Such as ``"lines"``.
    operation : str
        What was measured: ``"message.column"``.
    figure : str
        What the numbers are: ``"R2 of S1 over M1"``.
    paper, source : str
        What is printed, as text, and where; empty where nothing is.
    ours : str
        The same of this machine, as text.
    verdict : Verdict
    values : mapping of str to float
        The numbers behind `ours`, units in the names.
    remark : str
        Why it misses, where that is known, or what else must be said.
    """

    model: str
    operation: str
    figure: str
    paper: str
    source: str
    ours: str
    verdict: Verdict
    values: Mapping[str, float] = field(default_factory=dict)
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """What came of a section.

    Attributes
    ----------
    name, title : str
    rows : sequence of Row
    notes : tuple of str
        How it was done, in sentences.
    skipped : str
        Why there are no rows, or fewer than there could be; empty where nothing is missing.
    busy_cores : float or None
        How many cores other processes kept busy meanwhile; None where the system does not tell.
    cores_shared : float or None
        For which part of the time other guests of the host computed on the same cores.
    """

    name: str
    title: str
    rows: Sequence[Row] = ()
    notes: tuple[str, ...] = ()
    skipped: str = ""
    busy_cores: float | None = None
    cores_shared: float | None = None


class CannotValidateError(ValueError):
    """A section that cannot be made here; the message says what it lacks, in one line."""


def percent(share: float) -> str:
    """Return a share as a percentage with two significant digits: ``4.6 %``."""
    value = 100 * share
    return f"{value:.1f} %" if abs(value) < 9.95 else f"{value:.0f} %"
