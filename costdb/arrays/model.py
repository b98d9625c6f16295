"""Prices of calls of an array library, from rates that a calibration measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from costdb.arrays.amounts import (
    APART_ELEMENT,
    ELEMENT,
    FRESH,
    LINES,
    ROWS_ELEMENT,
    Amount,
    amounts,
    rate_key,
    residual_key,
)
from costdb.arrays.hierarchy import NEAR, Hierarchy, hierarchy
from costdb.arrays.rates import SECTION, WHOLE, Rates, quantity_at, rates_of
from costdb.arrays.together import line_factor, slowed
from costdb.arrays.wholes import in_whole_rows
from costdb.estimate import Domain, Missing, Priced, Term
from costdb.expr import Expr, conditional, less, num, sym
from costdb.expr.nodes import Num
from costdb.machines import RESIDUAL, Machine
from costdb.profile_parts import counts_in_keys, lacking
from costdb.quantity import Quantity
from costdb.work import ArrayCall, ArrayOperation, Statement, Visit

MODEL = "arrays"


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
    bill = _Bill(machine, _memory(machine), together)
    for call in calls:
        bill.charge(call)
    return bill.total()


def price_loop(work: Statement, machine: Machine) -> Priced | Missing:
    """Price a compiled loop over elements: its operations, and its lines by how they lie."""
    rates = rates_of(machine, "loop", "float64")
    memory = _memory(machine)
    if rates is None or not memory.levels:
        return lacking(machine, f"{SECTION}.rates.loop, of compiled loops")
    bill = _Bill(machine, memory, work.together)
    places = [Visit(access.region) for access in work.accesses]
    call = ArrayCall(ArrayOperation.LOOP, "float64", work.operations, None, tuple(places))
    bill.charge(call)
    return bill.total()


def _memory(machine: Machine) -> Hierarchy:
    levels = counts_in_keys(machine, "b", SECTION, "levels")
    stated = (machine.quantity(SECTION, "way_bytes", f"b{level}") for level in levels)
    ways = tuple(int(way.value) for way in stated if way is not None)
    return hierarchy(levels, machine.cache_line_bytes, ways)


@dataclass(slots=True)
class _Bill:
    machine: Machine
    memory: Hierarchy
    together: Expr | None = None
    terms: dict[str, Expr] = field(default_factory=dict)
    coefficients: dict[str, Quantity] = field(default_factory=dict)
    domains: dict[Domain, None] = field(default_factory=dict)
    absent: dict[str, None] = field(default_factory=dict)

    def charge(self, call: ArrayCall) -> None:
        """Add a call."""
        key = rate_key(call)
        rates = rates_of(self.machine, key, call.dtype)
        if rates is None or not self.memory.levels:
            self.absent[f"{SECTION}.rates.{key}.{call.dtype}"] = None
            return
        total = num(0)
        for share, one in in_whole_rows(call):
            taken, each = list(amounts(one, self.memory)), num(0)
            for amount in taken:
                each = each + amount.amount * self._coefficient(rates, key, call.dtype, amount)
            total = total + share * each * self._residual(rates, key, call.dtype, taken)
        total = total * self._of_the_whole(call)
        label = _label(call.operation)
        self.terms[label] = self.terms.get(label, num(0)) + total
        limits = self.machine.section(SECTION, "range").get("elements")
        if isinstance(limits, list) and call.operation is not ArrayOperation.VIEW:
            low, high = (float(limit) for limit in limits if isinstance(limit, int | float))
            self.domains[Domain("elements of an array call", call.elements, low, high)] = None

    def total(self) -> Priced | Missing:
        """Return the sum of all calls, or what the profile lacks for it."""
        if self.absent:
            return lacking(self.machine, ", ".join(self.absent))
        terms = tuple(Term(label, MODEL, time) for label, time in self.terms.items())
        time = sum(self.terms.values(), num(0))
        return Priced(time, terms, self.coefficients, tuple(self.domains))

    def _coefficient(self, rates: Rates, key: str, dtype: str, amount: Amount) -> Expr:
        if amount.place[0] == FRESH:
            stated = self.machine.quantity(SECTION, FRESH, "line_us", amount.place[1])
            if stated is None:
                return num(0)
            name = f"{SECTION}.{FRESH}.line.{amount.place[1]}"
            self.coefficients[name] = stated
            return sym(name)
        found = self._note(rates, key, dtype, amount.place)
        if found is not None:
            return found
        for other in self._stand_ins(amount):
            found = self._note(other, key, dtype, amount.place)
            if found is not None:
                return found
        if amount.place in ((APART_ELEMENT,), (ROWS_ELEMENT,)):
            contiguous = self._note(rates, key, dtype, (ELEMENT,))
            return num(0) if contiguous is None else contiguous
        # the fit found no cost of its own for it
        return num(0)

    def _residual(self, rates: Rates, key: str, dtype: str, taken: Sequence[Amount]) -> Expr:
        """Return the factor whose interval holds what the fit left unexplained of such calls."""
        own = residual_key(amount.place for amount in taken)
        for name in dict.fromkeys((own, RESIDUAL)):
            found = self._note(rates, key, dtype, (name,))
            if found is not None:
                return found
        return num(1)

    def _of_the_whole(self, call: ArrayCall) -> Expr:
        """Return the factor that all calls of a program have in common."""
        stated = self.machine.quantity(SECTION, WHOLE)
        if stated is None or call.operation is ArrayOperation.LOOP:
            return num(1)
        name = f"{SECTION}.{WHOLE}"
        self.coefficients[name] = stated
        return sym(name)

    def _stand_ins(self, amount: Amount) -> list[Rates]:
        # what memory does to one class it does to others
        if amount.place[0] not in LINES or amount.place[1] == NEAR:
            return []
        found: list[Rates] = []
        for key in ("binary", "copy"):
            for dtype, section in self.machine.section(SECTION, "rates", key).items():
                if isinstance(section, dict):
                    found.append(Rates((key, dtype), section, True))
        return found

    def _note(self, rates: Rates, key: str, dtype: str, path: tuple[str, ...]) -> Expr | None:
        quantity = quantity_at(self.machine, rates, path)
        if quantity is None:
            return None
        name = ".".join((SECTION, *rates.place, *path))
        if rates.stands_in:
            name = f"{SECTION}.{key}.{dtype}.as.{'.'.join(rates.place)}.{'.'.join(path)}"
        return self._in_company(name, quantity, path)

    def _in_company(self, name: str, quantity: Quantity, path: tuple[str, ...]) -> Expr:
        """Return a coefficient; of lines, as it is when other ranks want theirs too."""
        factor = None
        if self.together is not None and path[0] in LINES:
            factor = line_factor(self.machine, self.together, path[-1])
        if factor is None or self.together is None:
            self.coefficients[name] = quantity
            return sym(name)
        together = f"{name}.together"
        self.coefficients[together] = slowed(quantity, factor)
        if isinstance(self.together, Num):
            return sym(together)
        self.coefficients[name] = quantity
        return conditional(less(1, self.together), sym(together), sym(name))


def _label(operation: ArrayOperation) -> str:
    return f"{operation.value.replace('_', '.')} calls"
