"""What pricing gives: a formula whose coefficients stay symbolic, and estimates made from it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NewType

from costdb.expr import Expr
from costdb.records import dataclass, field

# Numbers that know their unit, interval and origin, and what a price leaves out.


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
        what is left unexplained of one class of work (:mod:`costdb.evaluate`).
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


def exactly(value: float, unit: str, source: str) -> Quantity:
    """Return a quantity without spread that follows from a definition."""
    return Quantity(value, value, value, unit, Provenance.DERIVED, source)


@dataclass(frozen=True, slots=True)
class Omission:
    """A part that a price leaves out: its line, what is written there, and why.

    A price with an omission is a lower bound.
    """

    line: int
    text: str
    reason: str


Seconds = NewType("Seconds", float)


class ImpossibleError(ValueError):
    """A model was asked of what no program can do; the message says why in one line."""


@dataclass(frozen=True, slots=True)
class Domain:
    """Where a coefficient was calibrated: `quantity` should lie in ``low..high``."""

    what: str
    quantity: Expr
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Term:
    """A part of a formula that a person would name, in microseconds."""

    label: str
    model: str
    microseconds: Expr


@dataclass(frozen=True, slots=True)
class Priced:
    """Work priced on a machine; sizes and coefficients are still symbols.

    Attributes
    ----------
    microseconds : Expr
        Over the sizes of the program and the keys of `coefficients`.
    terms : tuple of Term
        Named parts; for purely sequential work they add up to `microseconds`.
    coefficients : mapping of str to Quantity
        Every machine number used, by symbol.
    domains : tuple of Domain
        Ranges outside which the estimate is an extrapolation.
    repeats : tuple of Quantity
        Of each kind of work that is done: by which factor one launch of a program differs from
        another one of the same (:mod:`costdb.repetition`).
    omitted : tuple of Omission
        Parts that it leaves out, each once.
    """

    microseconds: Expr
    terms: tuple[Term, ...] = ()
    coefficients: Mapping[str, Quantity] = field(default_factory=dict)
    domains: tuple[Domain, ...] = ()
    repeats: tuple[Quantity, ...] = ()
    omitted: tuple[Omission, ...] = ()


@dataclass(frozen=True, slots=True)
class Missing:
    """An explicit "cannot price this": what is missing and how to get it."""

    what: str
    remedy: str


@dataclass(frozen=True, slots=True)
class TermEstimate:
    """One term's seconds, ``low <= mid <= high``."""

    label: str
    model: str
    low: Seconds
    mid: Seconds
    high: Seconds


@dataclass(frozen=True, slots=True)
class Estimate:
    """A predicted time in seconds with its interval and origin.

    Attributes
    ----------
    low, mid, high : Seconds
        ``low <= mid <= high``; `high` is infinite where parts are omitted.
    terms : tuple of TermEstimate
        The named parts.
    provenance : Provenance
        That of the least trustworthy coefficient used.
    in_range : bool
        False when any coefficient was used outside the range that calibrated it.
    remarks : tuple of str
        One line for each such extrapolation.
    omitted : tuple of Omission
        Parts that no model prices: the times are lower bounds.
    """

    low: Seconds
    mid: Seconds
    high: Seconds
    terms: tuple[TermEstimate, ...]
    provenance: Provenance
    in_range: bool
    remarks: tuple[str, ...] = ()
    omitted: tuple[Omission, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every part has a price."""
        return not self.omitted


@dataclass(frozen=True, slots=True)
class Ratio:
    """Predicted time before over after; the interval moves shared coefficients together."""

    low: float
    mid: float
    high: float
