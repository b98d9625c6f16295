"""Numbers that know their unit, interval and origin, and what a price leaves out."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from costdb.records import dataclass, field, replace


class Provenance(StrEnum):
    """How a number came to be known, most trustworthy first."""

    MEASURED = "measured"
    PUBLISHED = "published"
    DERIVED = "derived"
    ESTIMATED = "estimated"


@dataclass(frozen=True, slots=True)
class Quantity:
    """One coefficient of a machine.

    Attributes
    ----------
    value, low, high : float
        Central value and the interval it is believed to lie in, ``low <= value <= high``.
    unit : str
        For example ``"us"``, ``"us/byte"``, ``"byte"``, ``"1"``.
    provenance : Provenance
        How the number is known.
    source : str
        Who says so: a citation, or the calibration that measured it.
    fitted_to : str
        Set when the value was chosen so that a model reproduces a published figure;
        names that figure. Such a value is always ``estimated``.
    independent : bool
        Whether its deviation from `value` says nothing about that of any other quantity, as with
        what is left unexplained of one class of work (:mod:`costdb.intervals`).
    """

    value: float
    low: float
    high: float
    unit: str
    provenance: Provenance
    source: str
    fitted_to: str = ""
    independent: bool = False

    def __post_init__(self) -> None:
        if not self.low <= self.value <= self.high:  # also refuses NaN
            raise ValueError(
                f"a quantity needs low <= value <= high, got {self.low}, {self.value}, {self.high}"
            )

    def over(self, ends: tuple[float, float, float], **changed: Any) -> Quantity:
        """Return it with other least, middle and greatest values."""
        low, value, high = ends
        return replace(self, low=low, value=value, high=high, **changed)

    def times(self, factor: Quantity) -> Quantity:
        """Return it times a factor, whatever both come to."""
        return self.over(
            (self.low * factor.low, self.value * factor.value, self.high * factor.high)
        )

    def reciprocal(self, amount: float, unit: str, **changed: Any) -> Quantity:
        """Return what an amount takes at this rate."""
        ends = amount / self.high, amount / self.value, amount / self.low
        return self.over(ends, unit=unit, **changed)


def exactly(value: float, unit: str, source: str) -> Quantity:
    """Return a quantity without spread that follows from a definition."""
    return Quantity(value, value, value, unit, Provenance.DERIVED, source)


def anywhere(source: str, provenance: Provenance = Provenance.DERIVED) -> Quantity:
    """Return a share of which nothing is known but that it is one."""
    return Quantity(0.5, 0.0, 1.0, "1", provenance, source)


@dataclass(frozen=True, slots=True)
class Omission:
    """A part that a price leaves out: its line, what is written there, and why.

    A price with an omission is a lower bound. One that stands in no loop runs at most `once`: what
    a rewrite of something else saves, it saves whatever this takes.
    """

    line: int
    text: str
    reason: str
    once: bool = field(default=False, compare=False)
