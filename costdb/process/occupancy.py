"""The largest element of a vector, in closed form for the usual distributions.

Every entry is brought to a single loop over the index where that is possible, and read as a
distribution over the servers (:mod:`costdb.process.distributions`). Entries that meet on a
server are added up: a sum of step functions has its largest value where one of them rises, so
a handful of servers stand for all of them. Whatever is not recognised is summed over its loops,
for every server it can reach.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from costdb.expr import (
    ONE,
    ZERO,
    Expr,
    conditional,
    equal,
    floor_div,
    free_symbols,
    less_equal,
    maximum,
    maximum_over,
    minimum,
    num,
    simplify,
    substitute,
    summation,
    sym,
)
from costdb.expr.functions import Conditional
from costdb.expr.names import fresh_name, replace_part
from costdb.expr.nodes import Add, CeilDiv, FloorDiv, Mod, Mul, add
from costdb.process.distributions import Occupancy, Steps, Tidy, distribution
from costdb.process.terms import (
    constant_of,
    grows_by_its_range,
    is_monotone,
    is_positive,
    is_whole,
    linear_in,
)

# Vectors over an unbounded index, as the work per server of an array of resources.
#
# A vector is the sum of entries; an entry is an amount at an index that may depend on loops:
# ``par (i = 1, N) use(cpu(i mod P), t)`` puts ``t`` at ``i mod P`` for every ``i`` in ``1..N``.
# Nothing is enumerated; :mod:`costdb.process.occupancy` finds the largest element in closed form.


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
    return add(terms)


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


@dataclass(frozen=True, slots=True)
class _Ready:
    """An entry whose loops all move its index, and whether its amount is a partial sum.

    A partial sum only grows, or only shrinks, from step to step.
    """

    entry: Entry
    is_partial_sum: bool


@dataclass(frozen=True, slots=True)
class _Placed:
    entry: Entry
    occupancy: Occupancy


def largest_element(vector: Vector, tidy: Tidy = simplify) -> Expr:
    """Return the largest element of `vector`, 0 for the zero vector.

    Amounts must not be negative; elements that no entry names count as 0. `tidy` simplifies by
    what is known about the sizes.
    """
    ready = [_without_idle_loops(entry, tidy) for entry in vector.entries]
    placed: dict[str, list[_Placed]] = {}
    for entry in _merged(ready):
        placed.setdefault(entry.entry.array, []).append(_place(entry, tidy))
    peaks = [_group_peak(group, tidy) for one in placed.values() for group in _separate(one, tidy)]
    return tidy(maximum(*peaks)) if peaks else ZERO


def largest_fixed(vector: Vector, tidy: Tidy = simplify) -> tuple[Expr, ...]:
    """Return the elements at those indices of `vector` that no loop moves.

    Each is a lower bound of the largest element.
    """
    ready = [_without_idle_loops(entry, tidy) for entry in vector.entries]
    return tuple(one.entry.amount for one in _merged(ready) if not one.entry.loops)


def _merged(ready: list[_Ready]) -> list[_Ready]:
    # Entries that have come to differ by their amounts alone are one.
    merged: dict[tuple[str, Expr, tuple[Loop, ...]], _Ready] = {}
    for one in ready:
        entry = one.entry
        key = (entry.array, entry.index, entry.loops)
        if key in merged:
            other = merged[key]
            total = replace(entry, amount=entry.amount + other.entry.amount)
            # A sum of two amounts that are ordered in opposite directions need not be.
            merged[key] = _Ready(total, False)
        else:
            merged[key] = one
    return list(merged.values())


def _separate(placed: list[_Placed], tidy: Tidy) -> list[list[_Placed]]:
    # Entries that provably never meet on a server need not be added up.
    groups: list[list[_Placed]] = []
    for one in placed:
        meeting: list[_Placed] = [one]
        apart: list[list[_Placed]] = []
        for group in groups:
            if any(_may_meet(one.occupancy, other.occupancy, tidy) for other in group):
                meeting = group + meeting
            else:
                apart.append(group)
        groups = [*apart, meeting]
    return groups


def _may_meet(one: Occupancy, other: Occupancy, tidy: Tidy) -> bool:
    for before, after in ((one, other), (other, one)):
        if before.last is not None and after.first is not None:
            gap = constant_of(tidy(after.first - before.last))
            if gap is not None and gap > 0:
                return False
    return True


def _group_peak(group: list[_Placed], tidy: Tidy) -> Expr:
    occupancies = [one.occupancy for one in group]
    if len(group) == 1 and occupancies[0].peak is not None:
        return occupancies[0].peak

    def total(server: Expr) -> Expr:
        return tidy(total_of(one.at(server) for one in occupancies))

    if all(one.rises is not None for one in occupancies):
        candidates = dict.fromkeys(server for one in occupancies for server in one.rises or ())
        return maximum(*map(total, candidates))
    taken = frozenset().union(*(names_in(one.entry) for one in group))
    server = fresh_name("server", taken)
    peaks: list[Expr] = []
    for one in group:
        first, last = one.occupancy.first, one.occupancy.last
        if first is not None and last is not None:
            peaks.append(maximum_over(server, first, last, total(sym(server))))
        else:
            entry = rename_apart(one.entry, taken)
            peak = total(entry.index)
            for loop in reversed(entry.loops):
                peak = maximum_over(loop.variable, loop.low, loop.high, peak)
            peaks.append(peak)
    return maximum(*peaks)


def _place(ready: _Ready, tidy: Tidy) -> _Placed:
    entry, is_partial_sum = ready.entry, ready.is_partial_sum
    occupancy = None
    if not entry.loops:
        occupancy = _fixed(entry)
    elif len(entry.loops) == 1:
        occupancy = _single_loop(entry, is_partial_sum, tidy)
    elif len(entry.loops) == 2:
        occupancy = _mesh(entry, tidy)
    if occupancy is None:
        first, last = _reach(entry)
        occupancy = Occupancy(
            lambda server: element_by_sums(entry, server), None, first, last, None
        )
    return _Placed(entry, occupancy)


def _fixed(entry: Entry) -> Occupancy:
    def at(server: Expr) -> Expr:
        return conditional(equal(entry.index, server), entry.amount, ZERO)

    return Occupancy(at, entry.amount, entry.index, entry.index, (entry.index,))


def _without_idle_loops(entry: Entry, tidy: Tidy) -> _Ready:
    """Sum the amount over loops that do not move the index, exchanging triangular ones."""
    kept: list[Loop] = []
    amount = entry.amount
    is_partial_sum = False
    for loop in reversed(entry.loops):
        v = loop.variable
        depending = [k for k in kept if v in free_symbols(k.low) | free_symbols(k.high)]
        exchanged = _exchange(loop, kept[0]) if depending and depending == kept[:1] else None
        if v in free_symbols(entry.index) or (depending and exchanged is None):
            kept.insert(0, loop)
            continue
        inner = loop
        if exchanged is not None:
            kept[0], inner = exchanged
        total = summation(v, inner.low, inner.high, amount)
        is_partial_sum = exchanged is not None and grows_by_its_range(total, kept[0].variable)
        amount = tidy(total)
    return _Ready(replace(entry, amount=amount, loops=tuple(kept)), is_partial_sum)


def _exchange(outer: Loop, inner: Loop) -> tuple[Loop, Loop] | None:
    """Swap two loops where the inner bounds move one for one with the outer variable."""
    v, u = outer.variable, sym(inner.variable)
    low_line, high_line = linear_in(inner.low, v), linear_in(inner.high, v)
    if low_line is None or high_line is None:
        return None
    low, high = inner.low, inner.high
    v_low, v_high = outer.low, outer.high
    slope, rest = low_line
    if slope == ONE:
        low, v_high = outer.low + rest, minimum(v_high, u - rest)
    elif slope == -ONE:
        low, v_low = rest - outer.high, maximum(v_low, rest - u)
    elif slope != ZERO:
        return None
    slope, rest = high_line
    if slope == ONE:
        high, v_low = outer.high + rest, maximum(v_low, u - rest)
    elif slope == -ONE:
        high, v_high = rest - outer.low, minimum(v_high, rest - u)
    elif slope != ZERO:
        return None
    return Loop(inner.variable, low, high), Loop(v, v_low, v_high)


def _single_loop(entry: Entry, is_partial_sum: bool, tidy: Tidy) -> Occupancy | None:
    loop = entry.loops[0]
    sign, offset, core = _core(entry.index, loop.variable)
    if not is_whole(offset):
        return None
    amount = entry.amount
    # An amount that varies with the owner alone is a constant once the owner is known.
    owner = fresh_name("owner", names_in(entry))
    if isinstance(core, Mod | FloorDiv | CeilDiv):
        amount = replace_part(amount, entry.index, sym(owner) * sign + offset)
        amount = replace_part(amount, core, sym(owner))
    varies_by_owner = owner in free_symbols(amount)
    is_ordered = not varies_by_owner and (is_partial_sum or is_monotone(amount, loop.variable))
    found = distribution(core, Steps(loop.variable, loop.low, loop.high, amount, is_ordered, tidy))
    if found is None:
        return None
    if varies_by_owner:
        found = _by_owner(found, owner)
    return _renumbered(found, sign, offset)


def _mesh(entry: Entry, tidy: Tidy) -> Occupancy | None:
    """Two independent loops over the rows and columns of a mesh, ``row * columns + column``."""
    outer, inner = entry.loops
    names = {outer.variable, inner.variable}
    varying = free_symbols(inner.low) | free_symbols(inner.high) | free_symbols(entry.amount)
    if names & varying or not isinstance(entry.index, Add):
        return None
    for rows, columns in ((outer, inner), (inner, outer)):
        of_rows = [t for t in entry.index.terms if rows.variable in free_symbols(t)]
        of_columns = [t for t in entry.index.terms if columns.variable in free_symbols(t)]
        if len(of_rows) != 1 or of_rows[0] in of_columns or not isinstance(of_rows[0], Mul):
            continue
        factors = [f for f in of_rows[0].factors if rows.variable in free_symbols(f)]
        width = of_rows[0] / factors[0]
        column = total_of(of_columns)
        offset = entry.index - of_rows[0] - column
        if len(factors) != 1 or not is_positive(width) or not is_whole(offset):
            continue
        row_axis = _axis(entry, factors[0], rows, tidy)
        column_axis = _axis(entry, column, columns, tidy)
        if row_axis and column_axis and _fits(column_axis, width, tidy):
            return _product(row_axis, column_axis, width, offset, entry.amount)
    return None


def _axis(entry: Entry, index: Expr, loop: Loop, tidy: Tidy) -> Occupancy | None:
    return _single_loop(Entry(entry.array, index, ONE, (loop,)), False, tidy)


def _fits(axis: Occupancy, width: Expr, tidy: Tidy) -> bool:
    """Tell whether the servers of `axis` certainly lie in ``0..width - 1``."""
    first, last = axis.first, axis.last
    if first is None or last is None or tidy(less_equal(ZERO, first)) != ONE:
        return False
    if isinstance(last, Conditional):
        last = last.then  # the other choice is 0, for a loop without steps
    if isinstance(last, FloorDiv) and isinstance(last.divisor, CeilDiv):
        # (n - 1) div ceil(n/w) is below w.
        slack = constant_of(last.divisor.dividend - last.dividend)
        if last.divisor.divisor == width and slack is not None and slack >= 1:
            return True
    return tidy(less_equal(last, width - 1)) == ONE


def _product(
    rows: Occupancy, columns: Occupancy, width: Expr, offset: Expr, amount: Expr
) -> Occupancy:
    def at(server: Expr) -> Expr:
        row, column = floor_div(server - offset, width), (server - offset) % width
        return rows.at(row) * columns.at(column) * amount

    peak = None
    if rows.peak is not None and columns.peak is not None:
        peak = rows.peak * columns.peak * amount
    first = None if rows.first is None else rows.first * width + offset
    last = None if rows.last is None else rows.last * width + width - 1 + offset
    return Occupancy(at, peak, first, last, None)


def _core(index: Expr, variable: str) -> tuple[int, Expr, Expr]:
    """Return ``(s, c, core)`` with ``index == s * core + c``, ``s`` one of 1 and -1."""
    if linear_in(index, variable) is not None:
        return 1, ZERO, index
    offset, core = ZERO, index
    if isinstance(index, Add):
        varying = [term for term in index.terms if variable in free_symbols(term)]
        if len(varying) == 1:
            core = varying[0]
            offset = index - core
    if isinstance(core, Mul) and core.coefficient == -1 and len(core.factors) == 1:
        return -1, offset, core.factors[0]
    return 1, offset, core


def _by_owner(found: Occupancy, owner: str) -> Occupancy:
    def at(server: Expr) -> Expr:
        return substitute(found.at(server), {owner: server})

    return replace(found, at=at, peak=None, rises=None)


def _renumbered(found: Occupancy, sign: int, offset: Expr) -> Occupancy:
    def at(server: Expr) -> Expr:
        return found.at((server - offset) * sign)

    first, last = (None if e is None else e * sign + offset for e in (found.first, found.last))
    if sign < 0:
        # What rises forwards falls backwards.
        return replace(found, at=at, first=last, last=first, rises=None)
    rises = None if found.rises is None else tuple(server + offset for server in found.rises)
    return replace(found, at=at, first=first, last=last, rises=rises)


def _reach(entry: Entry) -> tuple[Expr | None, Expr | None]:
    """Return the first and last server that `entry` can reach, where that is visible."""
    index = entry.index
    bound = frozenset(loop.variable for loop in entry.loops)
    if not is_whole(index):
        return None, None
    if isinstance(index, Mod) and not bound & free_symbols(index.divisor):
        return ZERO, index.divisor - 1
    return _end(entry, 1), _end(entry, -1)


def _end(entry: Entry, direction: int) -> Expr | None:
    end = entry.index
    for loop in reversed(entry.loops):
        line = linear_in(end, loop.variable)
        slope = None if line is None else constant_of(line[0])
        if slope is None:
            return None
        end = substitute(end, {loop.variable: loop.low if slope * direction >= 0 else loop.high})
    return end
