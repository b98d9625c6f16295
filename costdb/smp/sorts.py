"""Radix, sample and column sort as supersteps over n elements and p processors.

The counts are those of the published study; what a processor computes between copying in and
copying out is no part of them. Shares of ``n/p`` are rounded up to whole elements.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from costdb.estimate import Domain, Missing, Priced, Term
from costdb.expr import Expr, ceil_div, num
from costdb.machines import Machine
from costdb.quantity import Quantity
from costdb.smp.model import price_superstep
from costdb.work import Superstep

KEY_BITS = 32
DIGIT_BITS = 6
SAMPLES_PER_PROCESSOR = 100


class Sort(StrEnum):
    """A parallel sorting algorithm."""

    RADIX = "radix"
    SAMPLE = "sample"
    COLUMN = "column"


@dataclass(frozen=True, slots=True)
class RepeatedSuperstep:
    """A superstep and how many times the algorithm performs it."""

    superstep: Superstep
    times: Expr


def sort_supersteps(sort: Sort, n: Expr, p: Expr) -> tuple[RepeatedSuperstep, ...]:
    """Return the supersteps of a sort of `n` elements on `p` processors.

    Radix sort makes a pass over the four supersteps for each digit of `DIGIT_BITS` bits.
    """
    share = ceil_div(n, p)
    rows: tuple[tuple[str, Expr, Expr, Expr], ...]
    match sort:
        case Sort.RADIX:
            counters = num(2**DIGIT_BITS)
            passes = ceil_div(num(KEY_BITS), DIGIT_BITS)
            rows = (
                ("count elements", share, counters, n + counters * p),
                ("prefix sum", counters, counters, 2 * counters * p),
                ("add offsets", counters, counters, 2 * counters * p),
                ("move elements", share + counters, share, 2 * n + counters * p),
            )
        case Sort.SAMPLE:
            sample = num(SAMPLES_PER_PROCESSOR)
            passes = num(1)
            rows = (
                ("get sample", sample, sample, 2 * sample * p),
                ("count elements", share + p, p, n + 2 * p**2),
                ("prefix sum", p, p, 2 * p**2),
                ("move elements", share + 3 * p, share, 2 * n + 3 * p**2),
                ("sort buckets", share, share, 2 * n),
            )
        case Sort.COLUMN:
            passes = num(1)
            names = (
                "initialise the matrix",
                "sort, transpose",
                "sort, transpose back",
                "sort",
                "shift right, sort, shift left",
            )
            rows = tuple((name, share, share, 2 * n) for name in names)
    return tuple(
        RepeatedSuperstep(Superstep(p, reads, writes, total, f"{sort} sort: {name}"), passes)
        for name, reads, writes, total in rows
    )


def price_sort(sort: Sort, n: Expr, p: Expr, machine: Machine) -> Priced | Missing:
    """Price all supersteps of a sort; one locality holds for all of them."""
    total = num(0)
    terms: list[Term] = []
    coefficients: dict[str, Quantity] = {}
    domains: dict[Domain, None] = {}
    for step in sort_supersteps(sort, n, p):
        priced = price_superstep(step.superstep, machine)
        if isinstance(priced, Missing):
            return priced
        total = total + step.times * priced.microseconds
        terms += [
            Term(term.label, term.model, step.times * term.microseconds) for term in priced.terms
        ]
        coefficients |= priced.coefficients
        domains |= dict.fromkeys(priced.domains)
    return Priced(total, tuple(terms), coefficients, tuple(domains))
