"""What pricing gives: a formula whose coefficients stay symbolic, and estimates made from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NewType

from costdb.expr import Expr
from costdb.expr.nodes import add
from costdb.quantity import Omission, Provenance, Quantity
from costdb.records import dataclass, field

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
        another one of the same (:func:`costdb.evaluate.with_repetition`).
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


def missing_of(several: Iterable[Missing]) -> Missing:
    """Return all that is missing as one, each thing once."""
    parts = tuple(several)
    return Missing(
        "; ".join(dict.fromkeys(one.what for one in parts)),
        "; ".join(dict.fromkeys(one.remedy for one in parts)),
    )


def one_after_another(parts: Iterable[Priced | Missing]) -> Priced | Missing:
    """Return the price of parts one after another, terms of a label as one; or what is missing."""
    found: list[Priced] = []
    lacking: list[Missing] = []
    for part in parts:
        if isinstance(part, Missing):
            lacking.append(part)
        else:
            found.append(part)
    if lacking:
        return missing_of(lacking)
    times: dict[tuple[str, str], list[Expr]] = {}
    for term in (term for part in found for term in part.terms):
        times.setdefault((term.label, term.model), []).append(term.microseconds)
    return Priced(
        add([part.microseconds for part in found]),
        tuple(Term(*label, add(some)) for label, some in times.items()),
        {name: quantity for part in found for name, quantity in part.coefficients.items()},
        tuple(dict.fromkeys(domain for part in found for domain in part.domains)),
    )
