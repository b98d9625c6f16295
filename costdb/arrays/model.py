"""Prices of calls of an array library, from rates that a calibration measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from costdb.arrays.amounts import (
    APART_ELEMENT,
    ELEMENT,
    FRESH,
    LINES,
    NEAR_PAGE,
    PAGE,
    UNFORESEEN,
    Amount,
    amounts,
    rate_key,
    residual_key,
)
from costdb.arrays.hierarchy import NEAR, Hierarchy, hierarchy
from costdb.arrays.rates import (
    KEPT,
    LEARNED,
    PAGES,
    SECTION,
    SPREAD,
    WHOLE,
    Rates,
    quantity_at,
    rates_of,
)
from costdb.arrays.reuse import taking_over, with_copies
from costdb.estimate import Domain, Missing, Priced, Term
from costdb.expr import ONE, Expr, conditional, less, less_equal, minimum, num, sym
from costdb.expr.functions import Min
from costdb.expr.names import replace_part
from costdb.expr.nodes import ZERO, Num, Sym, add
from costdb.machines import RESIDUAL, Machine
from costdb.profile_parts import counts_in_keys, lacking
from costdb.quantity import Provenance, Quantity
from costdb.work import BY_MASKS, ArrayCall, ArrayOperation, Region, Statement, Visit

# Rows that are whole for a while: regions cut to what a rank has.
#
# A region that shrinks, such as what elimination has still to do, covers all columns of a rank as
# long as it begins before them. Its rows then have no gaps between them, and a call goes through
# them as through one; only later it goes row by row.


def in_whole_rows(call: ArrayCall) -> Iterator[tuple[Expr, ArrayCall]]:
    """Yield a call as it is with whole rows and without, each with when it is so, as 1 or 0.

    A call whose rows are always or never whole comes alone.
    """
    found = next((cut for visit in call.visits for cut in _cuts(visit.region)), None)
    if found is None:
        yield ONE, call
        return
    cut, whole = found
    rest = minimum(*(one for one in cut.args if one != whole))
    is_whole = less_equal(whole, rest)
    yield is_whole, _with(call, cut, whole)
    yield 1 - is_whole, _with(call, cut, rest)


def _cuts(region: Region) -> Iterator[tuple[Min, Expr]]:
    """Yield extents of rows that are at most the distance of neighbouring rows, and that."""
    item = num(region.itemsize_bytes)
    for count, pitch in zip(region.counts, region.pitches_bytes, strict=True):
        if isinstance(count, Min) and pitch == item:
            for whole in count.args:
                if whole * item in region.pitches_bytes:
                    yield count, whole


def _with(call: ArrayCall, cut: Expr, new: Expr) -> ArrayCall:
    def replaced(expr: Expr | None) -> Expr | None:
        return None if expr is None else replace_part(expr, cut, new)

    def moved(visit: Visit) -> Visit:
        region = visit.region
        return replace(
            visit,
            region=replace(
                region,
                counts=tuple(replace_part(one, cut, new) for one in region.counts),
                pitches_bytes=tuple(replace_part(one, cut, new) for one in region.pitches_bytes),
            ),
            distance_bytes=replaced(visit.distance_bytes),
            advance_bytes=replaced(visit.advance_bytes),
        )

    return replace(
        call,
        elements=replace_part(call.elements, cut, new),
        result=None if call.result is None else moved(call.result),
        operands=tuple(moved(visit) for visit in call.operands),
        length=replaced(call.length),
    )


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
    return replace(found, low=low, value=value, high=high)


def slowed(line: Quantity, factor: Quantity) -> Quantity:
    """Return the time of a line in company."""
    return replace(
        line,
        low=line.low * factor.low,
        value=line.value * factor.value,
        high=line.high * factor.high,
    )


MODEL = "arrays"
_UNFORESEEN = f"{SECTION}.unforeseen"
_PAGES = (NEAR_PAGE, PAGE)
_UNTIMED = f"{SECTION}.function.untimed"
_AS_EXP = Quantity(
    4.0, 1.0, 20.0, "1", Provenance.ESTIMATED,
    "how many times as long as exp, the one function that was timed, another one takes",
    independent=True,
)  # fmt: skip
_LEARNED = 32_768
"""So many elements of a mask processors of today remember when it comes again and again."""
_OF_DATA = "whether the processor foresees which value each element gets, which only the data know"
_CHANCES = {
    f"{_UNFORESEEN}.long": Quantity(
        0.5, 0.0, 1.0, "1", Provenance.DERIVED, _OF_DATA, independent=True
    ),
    f"{_UNFORESEEN}.short": Quantity(
        0.0, 0.0, 1.0, "1", Provenance.DERIVED,
        f"{_OF_DATA}, unless the same mask comes again", independent=True,
    ),
}  # fmt: skip
"""0 where masks have a pattern, 1 where their elements are as if drawn."""


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
    done = (part for call in calls for part in with_copies(call))
    return _total(machine, [_charge_of(part, machine, together) for part in done])


def price_loop(work: Statement, machine: Machine) -> Priced | Missing:
    """Price a compiled loop over elements: its operations, and its lines by how they lie."""
    if rates_of(machine, "loop", "float64") is None or not _memory(machine).levels:
        return lacking(machine, f"{SECTION}.rates.loop, of compiled loops")
    places = [Visit(access.region) for access in work.accesses]
    call = ArrayCall(ArrayOperation.LOOP, "float64", work.operations, None, tuple(places))
    return _total(machine, [_charge_of(call, machine, work.together)])


@lru_cache(maxsize=64)
def _memory(machine: Machine) -> Hierarchy:
    levels = counts_in_keys(machine, "b", SECTION, "levels")
    stated = (machine.quantity(SECTION, "way_bytes", f"b{level}") for level in levels)
    ways = tuple(int(way.value) for way in stated if way is not None)
    kept = machine.quantity(SECTION, KEPT)
    found = hierarchy(levels, machine.cache_line_bytes, ways)
    return found if kept is None else replace(found, kept=kept.value)


@dataclass(frozen=True, slots=True)
class _Charge:
    """What a call costs, or what the profile lacks for it."""

    label: str
    time: Expr = ZERO
    coefficients: Mapping[str, Quantity] = field(default_factory=dict)
    domain: Domain | None = None
    absent: str = ""


@lru_cache(maxsize=4096)
def _charge_of(call: ArrayCall, machine: Machine, together: Expr | None) -> _Charge:
    """Return what a call costs; statements, variants and edited texts share most of theirs."""
    return _Pricing(machine, _memory(machine), together).charge(call)


def _total(machine: Machine, charges: Iterable[_Charge]) -> Priced | Missing:
    """Return the sum of all calls, or what the profile lacks for it."""
    times: dict[str, list[Expr]] = {}
    coefficients: dict[str, Quantity] = {}
    domains: dict[Domain, None] = {}
    absent: dict[str, None] = {}
    for charge in charges:
        if charge.absent:
            absent[charge.absent] = None
            continue
        times.setdefault(charge.label, []).append(charge.time)
        coefficients |= charge.coefficients
        if charge.domain is not None:
            domains[charge.domain] = None
    if absent:
        return lacking(machine, ", ".join(absent))
    terms = tuple(Term(label, MODEL, add(some)) for label, some in times.items())
    return Priced(add([t.microseconds for t in terms]), terms, coefficients, tuple(domains))


@dataclass(slots=True)
class _Pricing:
    machine: Machine
    memory: Hierarchy
    together: Expr | None
    coefficients: dict[str, Quantity] = field(default_factory=dict)

    def charge(self, call: ArrayCall) -> _Charge:
        """Return what a call costs."""
        key = rate_key(call)
        label = _label(call.operation)
        rates = rates_of(self.machine, key, call.dtype)
        if rates is None or not self.memory.levels:
            return _Charge(label, absent=f"{SECTION}.rates.{key}.{call.dtype}")
        total, memory = num(0), self._memory_of(rates)
        for share, one in in_ways(call):
            taken = list(amounts(one, memory))
            each = add(
                amount.amount
                * self._by_data(call, amount, self._coefficient(rates, key, call.dtype, amount))
                for amount in taken
            )
            total = total + share * each * self._residual(rates, key, call.dtype, taken)
        if call.operation is ArrayOperation.FUNCTION and rates.place[0] != key:
            self.coefficients[_UNTIMED] = _AS_EXP
            total = total * sym(_UNTIMED)
        total = total * self._of_the_whole(call)
        if not self.coefficients.keys().isdisjoint(_CHANCES):
            label = BY_MASKS
        limits = self.machine.section(SECTION, "range").get("elements")
        if isinstance(limits, list) and call.operation is not ArrayOperation.VIEW:
            low, high = (float(limit) for limit in limits if isinstance(limit, int | float))
            domain = Domain("elements of an array call", call.elements, low, high)
            return _Charge(label, total, self.coefficients, domain)
        return _Charge(label, total, self.coefficients)

    def _memory_of(self, rates: Rates) -> Hierarchy:
        """Return the caches as the rates of a class were found with them."""
        found = self.memory
        spread, pages, learned = (
            quantity_at(self.machine, rates, (key,)) for key in (SPREAD, PAGES, LEARNED)
        )
        if spread is not None:
            found = replace(found, spread=int(spread.value))
        if pages is not None:
            found = replace(found, pages=int(pages.value))
        return found if learned is None else replace(found, learned=int(learned.value))

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
        if amount.place == (APART_ELEMENT,):
            contiguous = self._note(rates, key, dtype, (ELEMENT,))
            return num(0) if contiguous is None else contiguous
        # the fit found no cost of its own for it
        return num(0)

    def _by_data(self, call: ArrayCall, amount: Amount, coefficient: Expr) -> Expr:
        """Return a coefficient; where only the data know whether it counts, with that unknown."""
        if amount.place != (UNFORESEEN,) or call.foreseen is not None or coefficient == ZERO:
            return coefficient
        long = less(_LEARNED, call.elements)
        chance = conditional(long, *map(sym, _CHANCES))
        used = {chance.name} if isinstance(chance, Sym) else set(_CHANCES)
        self.coefficients |= {name: _CHANCES[name] for name in used}
        return coefficient * chance

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
        key = amount.place[0]
        if key not in (*LINES, *_PAGES) or amount.place[-1] == NEAR:
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
        if isinstance(self.together, Num):
            # of two variants each may have its own number of ranks
            some = f"{name}.together.p{math.ceil(self.together.value)}"
            self.coefficients[some] = slowed(quantity, factor)
            return sym(some)
        together = f"{name}.together"
        self.coefficients[together] = slowed(quantity, factor)
        self.coefficients[name] = quantity
        return conditional(less(1, self.together), sym(together), sym(name))


def in_ways(call: ArrayCall) -> Iterator[tuple[Expr, ArrayCall]]:
    """Yield the ways in which a call may go by its sizes, each with when it is so, as 1 or 0."""
    for share, one in in_whole_rows(call):
        for when, way in taking_over(one):
            if share * when != ZERO:
                yield share * when, way


def _label(operation: ArrayOperation) -> str:
    return f"{operation.value.replace('_', '.')} calls"
