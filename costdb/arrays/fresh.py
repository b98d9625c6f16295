"""Memory that a program's arrays get anew from the system each time they are made.

The C library takes arrays up to some size from its heap, and larger ones from the system. That
size grows to the largest array that was ever freed, up to `KEPT_BYTES`. Of the heap's free end it
keeps as much as two such arrays, and gives back more; whoever needs it again pays for every page.
Arrays that never come from the heap are priced with the calls that make them.
"""

from __future__ import annotations

from costdb.arrays.amounts import FRESH, HUGE, HUGE_BYTES, KEPT_BYTES, SMALL
from costdb.arrays.rates import SECTION
from costdb.estimate import Missing, Priced, Term
from costdb.expr import Expr, less_equal, maximum, num, sym
from costdb.machines import Machine
from costdb.quantity import Quantity
from costdb.work import FreshMemory

MODEL = "arrays"
HEAP_BYTES = 300 * 1000
"""The largest that an interpreter has freed by the time that it has loaded NumPy, or more."""
PADDING_BYTES = 128 * 2**10
"""Stays at the heap's end whatever is given back: the C library's constant."""
HUGE_PAGE_BYTES = 2 * 2**20
"""What of a large array begins and ends within a huge page comes in small ones: as much."""

ZERO = num(0)


def price_fresh(work: FreshMemory, machine: Machine) -> Priced | Missing:
    """Price memory that is given back and comes anew.

    Raises
    ------
    MachineError
        The profile's section is malformed.
    """
    line = machine.cache_line_bytes if machine.section(SECTION) else 64
    time, coefficients = ZERO, dict[str, Quantity]()
    for key, given in zip((SMALL, HUGE), given_anew(work), strict=True):
        stated = machine.quantity(SECTION, FRESH, "line_us", key)
        if stated is not None and given != ZERO:
            name = f"{SECTION}.{FRESH}.line.{key}"
            coefficients[name] = stated
            time = time + given / line * sym(name)
    return Priced(time, (Term(work.label, MODEL, time),), coefficients)


def given_anew(work: FreshMemory) -> tuple[Expr, Expr]:
    """Return the bytes that come anew in small pages and in huge ones."""
    sizes = dict.fromkeys((*work.other_bytes, *(s for d in work.drains for s in d.freed_bytes)))
    largest: Expr = num(HEAP_BYTES)
    for size in sizes:
        largest = maximum(largest, size * _from_heap(size))
    small, huge, given_back = ZERO, ZERO, ZERO
    for drain in work.drains:
        still_there = 1 - given_back
        free = _total(drain.freed_bytes) + _total(drain.before_bytes) * still_there
        hugely = _huge_part(drain.freed_bytes) + _huge_part(drain.before_bytes) * still_there
        given_back = less_equal(2 * largest, free + PADDING_BYTES)
        if drain.charged:
            small = small + (free - hugely - PADDING_BYTES) * given_back
            huge = huge + hugely * given_back
    return small, huge


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
