"""Prices of calls of an array library, from rates that a calibration measured."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache

from costdb.arrays.amounts import (
    APART_ELEMENT,
    ELEMENT,
    FAULT,
    GIVEN_BACK,
    LINES,
    RESIDUALS,
    ROWS_ELEMENT,
    WITHOUT_BLAS,
    Amount,
    Hierarchy,
    amounts,
    rate_key,
    residual_key,
)
from costdb.evaluate import Domain, Missing, Priced, Term, one_after_another
from costdb.expr import ZERO, Expr, conditional, less, num, sym
from costdb.expr.nodes import Num, add, multiply
from costdb.machines import Machine, MachineError
from costdb.profile_parts import counts_in_keys, interval_of, lacking
from costdb.quantity import Provenance, Quantity, anywhere
from costdb.records import dataclass, field, replace
from costdb.work import ArrayCall, ArrayOperation, Region, Statement, Visit

# Rates in a machine profile, and what stands in where one was not measured.
#
# The nearest class or element type that was measured answers for one that was not; such a rate is
# estimated, whatever it was, and its interval grows.

SECTION = "arrays"
WIDENED = 1.5
"""A stand-in's interval reaches so many times further up and down."""

_CLASSES: Mapping[str, tuple[str, ...]] = {
    "cast": ("copy",),
    "transpose": ("copy",),
    "unary": ("binary",),
    "root": ("divide", "transcendental"),
    "function": ("transcendental",),
    "circular": ("remainder", "transcendental"),
    "power": ("function", "transcendental"),
    "compare": ("binary",),
    "where": ("binary",),
    "divide": ("root", "binary"),
    "divide_by_one": ("divide",),
    "remainder": ("transcendental", "divide"),
    "matvec": ("reduce",),
    WITHOUT_BLAS: ("binary",),
    "add_at": ("add_at_cast",),
    "add_at_cast": ("add_at",),
    "roll": ("copy",),
    "pad": ("roll", "copy"),
    "fill": ("copy",),
    "scan_across": ("scan",),
    "scan": ("scan_across",),
    "reduce_across": ("reduce",),
    "fft_across": ("fft",),
    "sort_across": ("sort",),
    "compiled": ("loop",),
}
_BY_WIDTH = frozenset(
    {"binary", "unary", "copy", "cast", "compare", "where", "fill", "roll", "pad"}
)
"""Classes that vector units compute as fast as bytes come: there a type's width tells more."""
_FOR_A_PRODUCT = 8
"""Elements of an operation that a product without BLAS takes as long as, where nobody timed it."""
_NAME = re.compile(r"([a-z]+?)(\d+)?$")


@dataclass(frozen=True, slots=True)
class Rates:
    """The coefficients of one class of operation on one element type.

    Attributes
    ----------
    place : tuple of str
        Class and element type that were measured.
    stands_in : bool
        Whether they are of another class or element type than was asked for.
    """

    place: tuple[str, str]
    stands_in: bool


def rates_of(machine: Machine, key: str, dtype: str) -> Rates | None:
    """Return the rates of a class on an element type, or the nearest ones; None for none."""
    for candidate in (key, *_CLASSES.get(key, ())):
        measured = machine.section(SECTION, "rates", candidate)
        for name in _nearest(dtype, measured, by_width=candidate in _BY_WIDTH):
            exact = candidate == key and name in (dtype, "any")
            return Rates((candidate, name), not exact)
    return None


def estimated(quantity: Quantity, place: tuple[str, ...]) -> Quantity:
    """Return a quantity as the stand-in for one that was not measured."""
    value = quantity.value
    return replace(
        quantity,
        low=max(0.0, value - WIDENED * (value - quantity.low)) / WIDENED,
        high=(value + WIDENED * (quantity.high - value)) * WIDENED,
        provenance=Provenance.ESTIMATED,
        source=f"{quantity.source}, of {' '.join(place)}",
    )


def _nearest(dtype: str, measured: Collection[str], *, by_width: bool) -> Iterator[str]:
    """Yield measured element types, nearest first."""
    yield from (name for name in (dtype, "any") if name in measured)
    kind, width = _split(dtype)

    def away(name: str) -> tuple[int, int, str]:
        its_kind, its_width = _split(name)
        other, wider = int(its_kind != kind), abs(its_width - width)
        return (wider, other, name) if by_width and kind != "complex" else (other, wider, name)

    yield from sorted((name for name in measured if name not in (dtype, "any")), key=away)


def _split(dtype: str) -> tuple[str, int]:
    match = _NAME.match(dtype)
    if match is None:
        return dtype, 0
    kind = match[1].removeprefix("u")
    return kind, int(match[2] or 8)


# What lines cost more when several ranks of a node compute at the same time.
#
# A profile states it for as many ranks as were measured; for fewer, what is added to 1 grows with
# every rank beside the first, and more ranks than that are taken to sit on other nodes.

PLACE = ("arrays", "together")


def line_factor(machine: Machine, ranks: Expr, piece: str) -> Quantity | None:
    """Return how many times longer a line takes in company; None where it takes no longer.

    Parameters
    ----------
    machine : Machine
    ranks : Expr
        That compute at the same time; one that is no number counts as many.
    piece : str
        Where the line comes from: ``"beyond"``.
    """
    measured = counts_in_keys(machine, "p", *PLACE)
    if not measured:
        return None
    several = ranks.value if isinstance(ranks, Num) else measured[-1]
    most = next((count for count in measured if count >= several), measured[-1])
    if several <= 1 or most <= 1:
        return None
    found = machine.quantity(*PLACE, f"p{most}", "line_factor", piece)
    if found is None:
        return None
    share = (min(float(several), most) - 1) / (most - 1)
    low, value, high = (1 + share * (end - 1) for end in (found.low, found.value, found.high))
    return found.over((low, value, high))


MODEL = "arrays"
_GIVEN_BACK = anywhere(
    "how much of the memory that results take is given back when it is freed, and comes anew"
)


def price_calls(
    calls: tuple[ArrayCall, ...], machine: Machine, together: Expr | None = None
) -> Priced | Missing:
    """Price calls one after another.

    Parameters
    ----------
    calls : tuple of ArrayCall
    machine : Machine
    together : Expr, optional
        How many ranks make such calls at the same time.

    Raises
    ------
    MachineError
        The profile's section is malformed.
    """
    return one_after_another(_price_of(call, machine, together) for call in calls)


def price_loop(work: Statement, machine: Machine) -> Priced | Missing:
    """Price a compiled loop over elements: its operations, and its lines by how they lie."""
    if rates_of(machine, "loop", "float64") is None or not _memory(machine).levels:
        return lacking(machine, f"{SECTION}.rates.loop, of compiled loops")
    places = [Visit(access.region) for access in work.accesses]
    call = ArrayCall(ArrayOperation.LOOP, "float64", work.operations, None, tuple(places))
    return _price_of(call, machine, work.together)


@lru_cache(maxsize=64)
def _memory(machine: Machine) -> Hierarchy:
    levels = counts_in_keys(machine, "b", SECTION, "levels")
    if machine.section(SECTION, "way_bytes"):
        raise MachineError(
            f"{machine.origin}: calibrated for an earlier model of array calls; make it anew: "
            f"advise calibrate --name {machine.name}"
        )
    return Hierarchy(tuple(levels), machine.cache_line_bytes)


@lru_cache(maxsize=4096)
def _price_of(call: ArrayCall, machine: Machine, together: Expr | None) -> Priced | Missing:
    """Price a call; statements, variants and edited texts share most of theirs."""
    key, memory = rate_key(call), _memory(machine)
    rates = rates_of(machine, key, call.dtype)
    if rates is None or not memory.levels:
        return lacking(machine, f"{SECTION}.rates.{key}.{call.dtype}")
    alone = f"{SECTION}.{'.'.join(rates.place)}"
    if rates.stands_in:
        alone = f"{SECTION}.{key}.{call.dtype}.as.{'.'.join(rates.place)}"
    pricing = _Pricing(machine, rates, alone, together)
    parts = list(amounts(call, memory))
    if key == WITHOUT_BLAS != rates.place[0]:
        parts = [
            replace(one, amount=one.amount * _FOR_A_PRODUCT) if one.place == (ELEMENT,) else one
            for one in parts
        ]
    taken = [one.amount * pricing.coefficient(one) for one in parts]
    kinds = dict.fromkeys((residual_key([one.place for one in parts]), *RESIDUALS))
    stated = (pricing.stated((kind,)) for kind in kinds)
    total = add(taken) * next((one for one in stated if one is not None), num(1))
    limits = interval_of(machine, SECTION, "range", "elements")
    domains: tuple[Domain, ...] = ()
    if limits is not None and call.operation is not ArrayOperation.VIEW:
        domains = (Domain("elements of an array call", call.elements, *limits),)
    term = Term(f"{call.operation.value.replace('_', '.')} calls", MODEL, total)
    return Priced(total, (term,), pricing.coefficients, domains)


@dataclass(slots=True)
class _Pricing:
    """The coefficients of one call: `name` is what those of its rates begin with."""

    machine: Machine
    rates: Rates
    name: str
    together: Expr | None
    coefficients: dict[str, Quantity] = field(default_factory=dict)

    def coefficient(self, amount: Amount) -> Expr:
        if amount.place[0] == FAULT:
            stated = self.machine.quantity(SECTION, FAULT)
            if stated is None or amount.amount == ZERO:
                return ZERO
            fault = self.noted(f"{SECTION}.fault", stated)
            again = amount.place != (FAULT,)
            return fault * self.noted(f"{SECTION}.{GIVEN_BACK}", _GIVEN_BACK) if again else fault
        found = self.stated(amount.place)
        if found is None and amount.place in ((APART_ELEMENT,), (ROWS_ELEMENT,)):
            found = self.stated((ELEMENT,))
        # the fit found no cost of its own for it
        return ZERO if found is None else found

    def stated(self, path: tuple[str, ...]) -> Expr | None:
        """Return a coefficient; of lines, as it is when other ranks want theirs too."""
        quantity = self.machine.quantity(SECTION, "rates", *self.rates.place, *path)
        if quantity is None:
            return None
        if self.rates.stands_in:
            quantity = estimated(quantity, self.rates.place)
        name, factor = f"{self.name}.{'.'.join(path)}", None
        if self.together is not None and path[0] in LINES:
            factor = line_factor(self.machine, self.together, path[-1])
        if factor is None or self.together is None:
            return self.noted(name, quantity)
        slowed = quantity.times(factor)
        if isinstance(self.together, Num):
            # of two variants each may have its own number of ranks
            return self.noted(f"{name}.together.p{math.ceil(self.together.value)}", slowed)
        together = self.noted(f"{name}.together", slowed)
        return conditional(less(1, self.together), together, self.noted(name, quantity))

    def noted(self, name: str, quantity: Quantity) -> Expr:
        self.coefficients[name] = quantity
        return sym(name)


def bytes_of(region: Region) -> Expr:
    """Return the bytes of a region's distinct elements."""
    dimensions = zip(region.counts, region.pitches_bytes, strict=True)
    distinct = [count for count, pitch in dimensions if pitch != ZERO]
    return multiply((num(region.itemsize_bytes), *distinct))
