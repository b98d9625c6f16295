"""Memory that a program's arrays get anew from the system each time they are made.

Where sizes are numbers, the arrays are followed through a heap (:mod:`costdb.arrays.heap`), and
the price has two ends: that of a heap without gaps, which is taken to be usual, and that of one in
which a small block keeps freed memory from being given back. Which of the two a process has is the
same for all of its memory. With sizes that are open, arrays that become free together are compared
with what the C library keeps: twice the largest array that was ever freed, up to `KEPT_BYTES`.
Arrays that never come from the heap are priced with the calls that make them. Pages cost more where
the system clears what left the near caches since it was given back.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from costdb.arrays.amounts import FAR, FRESH, HUGE, HUGE_BYTES, KEPT_BYTES, SMALL
from costdb.arrays.heap import HEAP_BYTES, HUGE_AWAY_BYTES, SMALL_AWAY_BYTES, Anew, come_anew
from costdb.arrays.rates import SECTION
from costdb.estimate import Missing, Priced, Term
from costdb.expr import ZERO, Expr, less, less_equal, maximum, num, sym
from costdb.heap_work import IF_GIVEN_BACK, FreshMemory
from costdb.machines import Machine
from costdb.quantity import Provenance, Quantity

MODEL = "arrays"
PADDING_BYTES = 128 * 2**10
"""Stays at the heap's end whatever is given back: the C library's constant."""
HUGE_PAGE_BYTES = 2 * 2**20
"""What of a large array begins and ends within a huge page comes in small ones: as much."""

_FAR_SMALL_BYTES, _FAR_HUGE_BYTES = (
    round((near * far) ** 0.5) for near, far in (SMALL_AWAY_BYTES, HUGE_AWAY_BYTES)
)
"""Halfway from near to far: a step, which formulas over sizes bear better than a slope."""

GAP = f"{SECTION}.{FRESH}.gap"
_UNKNOWN_GAP = Quantity(
    0.0, 0.0, 1.0, "1", Provenance.DERIVED,
    "whether a small block stays above a freed array, at the end of the C library's heap",
    independent=True,
)  # fmt: skip
"""0 where nothing keeps freed memory from being given back, 1 where a block does."""


def price_fresh(work: FreshMemory, machine: Machine) -> Priced | Missing:
    """Price memory that is given back and comes anew.

    Raises
    ------
    MachineError
        The profile's section is malformed.
    """
    usual, kept = come_anew(work) if work.steps else (given_anew(work),) * 2
    line = machine.cache_line_bytes if machine.section(SECTION) else 64
    bill = _Bill(machine, line)
    time = bill.of(usual)
    other = bill.of(kept)
    if other != time:
        # all of a program's memory behaves in one way or in the other
        bill.coefficients[GAP] = _UNKNOWN_GAP
        time = time + (other - time) * sym(GAP)
    label = IF_GIVEN_BACK if GAP in bill.coefficients else work.label
    return Priced(time, (Term(label, MODEL, time),), bill.coefficients)


@dataclass(slots=True)
class _Bill:
    machine: Machine
    line_bytes: int
    coefficients: dict[str, Quantity] = field(default_factory=dict)

    def of(self, anew: Anew) -> Expr:
        """Return what it takes, and note the coefficients."""
        time: Expr = ZERO
        for key, given, far in (
            (SMALL, anew.small_bytes, anew.far_small_bytes),
            (HUGE, anew.huge_bytes, anew.far_huge_bytes),
        ):
            if self._line(key + FAR) is None:
                time = time + self._priced(key, given)
            else:
                time = time + self._priced(key, given - far) + self._priced(key + FAR, far)
        return time

    def _line(self, key: str) -> Quantity | None:
        return self.machine.quantity(SECTION, FRESH, "line_us", key)

    def _priced(self, key: str, given: Expr) -> Expr:
        stated = self._line(key)
        if stated is None or given == ZERO:
            return ZERO
        name = f"{SECTION}.{FRESH}.line.{key}"
        self.coefficients[name] = stated
        return given / self.line_bytes * sym(name)


def given_anew(work: FreshMemory) -> Anew:
    """Return the bytes that come anew, far where much is given back at once."""
    sizes = dict.fromkeys((*work.other_bytes, *(s for d in work.drains for s in d.freed_bytes)))
    largest: Expr = num(HEAP_BYTES)
    for size in sizes:
        largest = maximum(largest, size * _from_heap(size))
    small, huge, far_small, far_huge, given_back = (ZERO,) * 5
    for drain in work.drains:
        still_there = 1 - given_back
        free = _total(drain.freed_bytes) + _total(drain.before_bytes) * still_there
        hugely = _huge_part(drain.freed_bytes) + _huge_part(drain.before_bytes) * still_there
        given_back = less_equal(2 * largest, free + PADDING_BYTES)
        if drain.charged:
            slowly, quickly = (free - hugely - PADDING_BYTES) * given_back, hugely * given_back
            small, huge = small + slowly, huge + quickly
            far_small = far_small + slowly * less(_FAR_SMALL_BYTES, free)
            far_huge = far_huge + quickly * less(_FAR_HUGE_BYTES, free)
    return Anew(small, huge, far_small, far_huge)


def _from_heap(size: Expr) -> Expr:
    return less_equal(size, KEPT_BYTES)


def _total(sizes: tuple[Expr, ...]) -> Expr:
    return sum((size * _from_heap(size) for size in sizes), ZERO)


def _huge_part(sizes: tuple[Expr, ...]) -> Expr:
    """Return the bytes that come in huge pages, which NumPy asks for in large arrays."""
    parts = (
        (size - HUGE_PAGE_BYTES) * _from_heap(size) * less_equal(HUGE_BYTES, size) for size in sizes
    )
    return sum(parts, ZERO)
