"""Vectors over an unbounded index, as the work per server of an array of resources.

A vector is the sum of entries; an entry is an amount at an index that may depend on loops:
``par (i = 1, N) use(cpu(i mod P), t)`` puts ``t`` at ``i mod P`` for every ``i`` in ``1..N``.
Nothing is enumerated; :mod:`costdb.process.occupancy` finds the largest element in closed form.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from costdb.expr import Expr, conditional, equal, free_symbols, num, substitute, summation, sym
from costdb.expr.names import fresh_name


@dataclass(frozen=True, slots=True)
class Loop:
    """``variable`` runs over ``low..high``, both included; no step is taken if ``high < low``."""

    variable: str
    low: Expr
    high: Expr


@dataclass(frozen=True, slots=True)
class Entry:
    """`amount` at `index` of the servers called `array`, for every step of `loops`.

    Attributes
    ----------
    array : str
        Servers of different arrays are different, whatever their indices.
    index, amount : Expr
        Over the variables of `loops` and free symbols; `amount` is never negative.
    loops : tuple of Loop
        Outermost first, with distinct variables; bounds may use variables further out.
    """

    array: str
    index: Expr
    amount: Expr
    loops: tuple[Loop, ...] = ()


@dataclass(frozen=True, slots=True)
class Vector:
    """A sum of entries; indices that no entry names hold 0."""

    entries: tuple[Entry, ...] = ()

    def __add__(self, other: Vector) -> Vector:
        merged: dict[tuple[str, Expr, tuple[Loop, ...]], Expr] = {}
        for entry in (*self.entries, *other.entries):
            key = (entry.array, entry.index, entry.loops)
            merged[key] = merged.get(key, num(0)) + entry.amount
        return Vector(
            tuple(
                Entry(array, index, amount, loops)
                for (array, index, loops), amount in merged.items()
            )
        )

    def scaled(self, factor: Expr) -> Vector:
        """Return every amount times `factor`."""
        entries = (rename_apart(entry, free_symbols(factor)) for entry in self.entries)
        return Vector(tuple(replace(entry, amount=entry.amount * factor) for entry in entries))

    def when(self, condition: Expr) -> Vector:
        """Return this vector where `condition` is not 0, else the zero vector."""
        entries = (rename_apart(entry, free_symbols(condition)) for entry in self.entries)
        return Vector(
            tuple(
                replace(entry, amount=conditional(condition, entry.amount, num(0)))
                for entry in entries
            )
        )

    def over(self, loop: Loop) -> Vector:
        """Return the sum of this vector over the steps of `loop`."""
        taken = free_symbols(loop.low) | free_symbols(loop.high) | {loop.variable}
        entries = (rename_apart(entry, taken) for entry in self.entries)
        return Vector(tuple(replace(entry, loops=(loop, *entry.loops)) for entry in entries))

    def at(self, array: str, index: Expr) -> Expr:
        """Return the element of `array` at `index`, as sums over the loops."""
        elements = (element_by_sums(e, index) for e in self.entries if e.array == array)
        return total_of(elements)

    def total(self) -> Expr:
        """Return the sum of all elements."""
        return total_of(_sum_over(entry.loops, entry.amount) for entry in self.entries)

    def arrays(self) -> tuple[str, ...]:
        """Return the names of the arrays, in order of first use."""
        return tuple(dict.fromkeys(entry.array for entry in self.entries))

    def only(self, array: str) -> Vector:
        """Return the elements of `array` alone."""
        return Vector(tuple(entry for entry in self.entries if entry.array == array))


def total_of(terms: Iterable[Expr]) -> Expr:
    """Return the sum of `terms`."""
    result = num(0)
    for term in terms:
        result = result + term
    return result


def element_by_sums(entry: Entry, index: Expr) -> Expr:
    """Return what `entry` holds at `index`, summing over all of its loops."""
    entry = rename_apart(entry, free_symbols(index))
    hit = conditional(equal(entry.index, index), entry.amount, num(0))
    return _sum_over(entry.loops, hit)


def names_in(entry: Entry) -> frozenset[str]:
    """Return every name that `entry` mentions, free or bound."""
    names = free_symbols(entry.index) | free_symbols(entry.amount)
    for loop in entry.loops:
        names |= free_symbols(loop.low) | free_symbols(loop.high) | {loop.variable}
    return names


def rename_apart(entry: Entry, taken: frozenset[str]) -> Entry:
    """Return `entry` with its loop variables renamed to differ from all `taken`."""
    bound = frozenset(loop.variable for loop in entry.loops)
    if not bound & taken:
        return entry
    used = taken | names_in(entry)
    names: dict[str, Expr] = {}
    loops: list[Loop] = []
    for loop in entry.loops:
        low, high = substitute(loop.low, names), substitute(loop.high, names)
        name = loop.variable
        if name in taken:
            name = fresh_name(name, used)
            used |= {name}
            names[loop.variable] = sym(name)
        loops.append(Loop(name, low, high))
    return Entry(
        entry.array,
        substitute(entry.index, names),
        substitute(entry.amount, names),
        tuple(loops),
    )


def _sum_over(loops: tuple[Loop, ...], body: Expr) -> Expr:
    for loop in reversed(loops):
        body = summation(loop.variable, loop.low, loop.high, body)
    return body
