"""Work per server as a vector over an unbounded index, and its largest element.

A vector is the sum of entries; an entry is an amount at an index that may depend on loops:
``par (i = 1, N) use(cpu(i mod P), t)`` puts ``t`` at ``i mod P`` for every ``i`` in ``1..N``.
What a server holds is a sum over its own steps alone, for one server a step, cyclic ``i mod P``,
block ``i div B`` and block-cyclic ``(i div B) mod P``, with offsets; the largest element has a
closed form where all steps of such a loop have one amount. Whatever is not recognised is summed
over its loops, for every server that it can reach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from costdb.expr import (
    ONE,
    ZERO,
    Expr,
    ceil_div,
    conditional,
    equal,
    floor_div,
    free_symbols,
    less,
    less_equal,
    maximum,
    maximum_over,
    minimum,
    substitute,
    summation,
    sym,
)
from costdb.expr.functions import fresh_name
from costdb.expr.nodes import Add, CeilDiv, FloorDiv, Mod, Mul, Num, Pow, Sym, add, is_reciprocal
from costdb.expr.polynomials import affine_in, at, simplify, terms_of
from costdb.records import dataclass, replace

Tidy = Callable[[Expr], Expr]
"""Simplification that knows something about the sizes."""


@dataclass(frozen=True, slots=True)
class Loop:
    """``variable`` runs over ``low..high``, both included; no step is taken if ``high < low``."""

    variable: str
    low: Expr
    high: Expr

    @property
    def names(self) -> frozenset[str]:
        """Every name that it mentions."""
        return free_symbols(self.low) | free_symbols(self.high) | {self.variable}


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

    @property
    def names(self) -> frozenset[str]:
        """Every name that it mentions, free or bound."""
        found = free_symbols(self.index) | free_symbols(self.amount)
        return found.union(*(loop.names for loop in self.loops))

    def apart_from(self, taken: frozenset[str]) -> Entry:
        """Return the entry with its loop variables renamed to differ from all `taken`."""
        used, names, loops = taken | self.names, dict[str, Expr](), list[Loop]()
        for loop in self.loops:
            name = loop.variable
            if name in taken:
                name = fresh_name(name, used)
                used |= {name}
            loops.append(Loop(name, substitute(loop.low, names), substitute(loop.high, names)))
            names[loop.variable] = sym(name)
        index, amount = (substitute(one, names) for one in (self.index, self.amount))
        return Entry(self.array, index, amount, tuple(loops))

    def over_loops(self, body: Expr) -> Expr:
        """Return the sum of `body` over all loops."""
        for loop in reversed(self.loops):
            body = summation(loop.variable, loop.low, loop.high, body)
        return body

    def at(self, server: Expr) -> Expr:
        """Return what a server holds, by sums over its own steps where these are known."""
        entry = self.apart_from(free_symbols(server))
        if entry.loops:
            *outer, inner = entry.loops
            held = _held(entry.index, inner, entry.amount, server)
            if held is not None:
                return replace(entry, loops=tuple(outer)).over_loops(held)
        return entry.over_loops(conditional(equal(entry.index, server), entry.amount, ZERO))


@dataclass(frozen=True, slots=True)
class Vector:
    """A sum of entries; indices that no entry names hold 0."""

    entries: tuple[Entry, ...] = ()

    def __add__(self, other: Vector) -> Vector:
        return Vector(tuple(_merged((*self.entries, *other.entries))))

    def scaled(self, factor: Expr) -> Vector:
        """Return every amount times `factor`."""
        return self._each(factor, lambda amount: amount * factor)

    def when(self, condition: Expr) -> Vector:
        """Return this vector where `condition` is not 0, else the zero vector."""
        return self._each(condition, lambda amount: conditional(condition, amount, ZERO))

    def _each(self, given: Expr, made: Callable[[Expr], Expr]) -> Vector:
        entries = (entry.apart_from(free_symbols(given)) for entry in self.entries)
        return Vector(tuple(replace(entry, amount=made(entry.amount)) for entry in entries))

    def over(self, loop: Loop) -> Vector:
        """Return the sum of this vector over the steps of `loop`."""
        entries = (entry.apart_from(loop.names) for entry in self.entries)
        return Vector(tuple(replace(entry, loops=(loop, *entry.loops)) for entry in entries))

    def at(self, array: str, index: Expr) -> Expr:
        """Return the element of `array` at `index`."""
        return add([entry.at(index) for entry in self.entries if entry.array == array])

    def total(self) -> Expr:
        """Return the sum of all elements."""
        return add([entry.over_loops(entry.amount) for entry in self.entries])

    def arrays(self) -> tuple[str, ...]:
        """Return the names of the arrays, in order of first use."""
        return tuple(dict.fromkeys(entry.array for entry in self.entries))

    def only(self, array: str) -> Vector:
        """Return the elements of `array` alone."""
        return Vector(tuple(entry for entry in self.entries if entry.array == array))


def largest_element(vector: Vector, tidy: Tidy = simplify) -> Expr:
    """Return the largest element of `vector`, 0 for the zero vector.

    Amounts must not be negative; elements that no entry names count as 0. `tidy` simplifies by
    what is known about the sizes.
    """
    moving = Vector(tuple(_without_idle_loops(vector, tidy)))
    peaks = [_peak(moving.only(array), array, tidy) for array in moving.arrays()]
    return tidy(maximum(*peaks)) if peaks else ZERO


def largest_fixed(vector: Vector, tidy: Tidy = simplify) -> tuple[Expr, ...]:
    """Return the elements at those indices of `vector` that no loop moves.

    Each is a lower bound of the largest element.
    """
    return tuple(one.amount for one in _without_idle_loops(vector, tidy) if not one.loops)


def _merged(entries: Iterable[Entry]) -> list[Entry]:
    """Return entries of which no two differ by their amounts alone."""
    merged: dict[tuple[str, Expr, tuple[Loop, ...]], Entry] = {}
    for entry in entries:
        key = (entry.array, entry.index, entry.loops)
        if key in merged:
            entry = replace(entry, amount=merged[key].amount + entry.amount)
        merged[key] = entry
    return list(merged.values())


def _without_idle_loops(vector: Vector, tidy: Tidy) -> list[Entry]:
    """Return entries whose amounts are summed over the loops that do not move the index."""
    found = []
    for entry in vector.entries:
        kept: list[Loop] = []
        amount, moved = entry.amount, free_symbols(entry.index)
        for loop in reversed(entry.loops):
            if loop.variable in moved:
                kept.insert(0, loop)
                moved |= loop.names
            else:
                amount = tidy(summation(loop.variable, loop.low, loop.high, amount))
        found.append(replace(entry, amount=amount, loops=tuple(kept)))
    return _merged(found)


def _peak(vector: Vector, array: str, tidy: Tidy) -> Expr:
    """Return the largest element of one array."""
    if len(vector.entries) == 1:
        (one,) = vector.entries
        known = one.amount if not one.loops else _even_peak(one, tidy)
        if known is not None:
            return tidy(known)
    taken = frozenset().union(*(entry.names for entry in vector.entries))
    server = fresh_name("server", taken)
    held = tidy(vector.at(array, sym(server)))
    peaks: list[Expr] = []
    for entry in vector.entries:
        reach = _reach(entry)
        if not entry.loops:
            peak = at(held, server, entry.index)
        elif reach is not None:
            peak = maximum_over(server, *reach, held)
            bound = frozenset(loop.variable for loop in entry.loops)
            for loop in entry.loops:
                # a divisor such as ceil(N/P) is 0 where a loop takes no step
                if not bound & (loop.names - {loop.variable}):
                    peak = conditional(less_equal(loop.low, loop.high), peak, ZERO)
        else:
            peak = vector.at(array, entry.index)
            for loop in reversed(entry.loops):
                peak = maximum_over(loop.variable, loop.low, loop.high, peak)
        peaks.append(peak)
    return maximum(*peaks)


def _reach(entry: Entry) -> tuple[Expr, Expr] | None:
    """Return the first and last server that an entry can reach, where that is visible."""
    first = last = entry.index
    if not first.is_whole(free_symbols(first)):
        return None
    for loop in reversed(entry.loops):
        ends = [_ends(end, loop) for end in (first, last)]
        if None in ends:
            return None
        first, last = (pair[place] for place, pair in enumerate(ends) if pair is not None)
    return first, last


def _ends(expr: Expr, loop: Loop) -> tuple[Expr, Expr] | None:
    """Return numbers that `expr` lies between in a loop that takes a step."""
    if loop.variable not in free_symbols(expr):
        return expr, expr
    match expr:
        case Sym():
            return loop.low, loop.high
        case Mod() if loop.variable not in free_symbols(expr.divisor):
            return ZERO, expr.divisor - 1
        case FloorDiv() if loop.variable not in free_symbols(expr.divisor):
            ends = _ends(expr.dividend, loop)
            if ends is None or not (_is_size(expr.divisor) or isinstance(expr.divisor, CeilDiv)):
                return None
            return floor_div(ends[0], expr.divisor), floor_div(ends[1], expr.divisor)
        case Add():
            parts = [_ends(term, loop) for term in terms_of(expr)]
            known = [part for part in parts if part is not None]
            if len(known) < len(parts):
                return None
            return add([low for low, _ in known]), add([high for _, high in known])
        case Mul():
            moving = [one for one in expr.factors if loop.variable in free_symbols(one)]
            ends = _ends(moving[0], loop)
            rest = expr / moving[0]
            sign = rest.value if isinstance(rest, Num) else 1
            if len(moving) > 1 or ends is None or not (sign < 0 or _is_size(rest)):
                return None
            low, high = ends[0] * rest, ends[1] * rest
            return (high, low) if sign < 0 else (low, high)
        case _:
            return None


@dataclass(frozen=True, slots=True)
class _Spread:
    """A loop over the steps ``low..high`` of an owner's expression, spread by `size` and `servers`.

    Attributes
    ----------
    steps : Loop
        Its variable stands for the dividend of the owner's expression.
    amount : Expr
        Of a step.
    size : Expr or None
        Steps of a block; None where every step is one.
    servers : Expr or None
        After how many the first one has its turn again.
    offset : Expr
        Of the first server.
    """

    steps: Loop
    amount: Expr
    size: Expr | None
    servers: Expr | None
    offset: Expr

    @property
    def count(self) -> Expr:
        """The number of steps."""
        return maximum(ZERO, self.steps.high - self.steps.low + 1)

    def guarded(self, expr: Expr) -> Expr:
        """Return `expr`, or 0 for a loop without steps: a divisor such as ceil(N/P) is 0 there."""
        if _divides_by_sizes_only(expr):
            return expr
        return conditional(less_equal(self.steps.low, self.steps.high), expr, ZERO)


def _spread_by(index: Expr, loop: Loop, amount: Expr) -> _Spread | None:
    """Return how a loop spreads its steps over servers; None where that is not recognised."""
    x = loop.variable
    moving = [term for term in terms_of(index) if x in free_symbols(term)]
    owner = moving[0] if len(moving) == 1 and affine_in(index, x) is None else index
    offset, core = index - owner, owner
    size: Expr | None = None
    servers: Expr | None = None
    if isinstance(core, Mod):
        servers, core = core.divisor, core.dividend
    if isinstance(core, FloorDiv):
        size, core = core.divisor, core.dividend
    line = affine_in(core, x)
    fixed = [one for one in (size, servers, offset) if one is not None]
    if line is None or line[0] not in (ONE, -ONE) or any(x in free_symbols(one) for one in fixed):
        return None
    if not all(one.is_whole(free_symbols(one)) for one in (line[1], *fixed)):
        return None
    low, high = (at(core, x, end) for end in (loop.low, loop.high)[:: 1 if line[0] == ONE else -1])
    step = (sym(x) - line[1]) * line[0]
    return _Spread(Loop(x, low, high), at(amount, x, step), size, servers, offset)


def _held(index: Expr, loop: Loop, amount: Expr, server: Expr) -> Expr | None:
    """Return what a server holds of one loop, as a sum over its own steps."""
    spread = _spread_by(index, loop, amount)
    if spread is None:
        return None
    x, low, high = spread.steps.variable, spread.steps.low, spread.steps.high
    size, servers, place = spread.size, spread.servers, server - spread.offset

    def within(first: Expr) -> Expr:
        if size is None:
            reached = conditional(less_equal(first, high), at(spread.amount, x, first), ZERO)
            return conditional(less_equal(low, first), reached, ZERO)
        last = minimum(high, first + size - 1)
        return summation(x, maximum(low, first), last, spread.amount)

    if servers is None:
        return spread.guarded(within(place if size is None else place * size))
    used = (server, low, high, servers, spread.amount, ONE if size is None else size)
    turn = fresh_name("turn", frozenset({x}).union(*map(free_symbols, used)))
    if size is None:
        # the server's first step, and those that follow it
        start = low + (place - low) % servers
        step = at(spread.amount, x, start + sym(turn) * servers)
        found = summation(turn, ZERO, floor_div(high - start, servers), step)
    else:
        first, last = (floor_div(end, size) for end in (low, high))
        turns = ceil_div(first - place, servers), floor_div(last - place, servers)
        found = summation(turn, *turns, within((place + sym(turn) * servers) * size))
    inside = conditional(less(place, servers), found, ZERO)
    return spread.guarded(conditional(less(place, ZERO), ZERO, inside))


def _even_peak(entry: Entry, tidy: Tidy) -> Expr | None:
    """Return the largest element of a single entry in closed form, None where none is known."""
    (loop, *more), index = entry.loops, entry.index
    line = affine_in(index, loop.variable)
    if more:
        return None
    if line is not None and isinstance(line[0], Num) and isinstance(line[0].value, int):
        return maximum_over(loop.variable, loop.low, loop.high, entry.amount)
    spread = _spread_by(index, loop, entry.amount)
    if spread is None or loop.variable in free_symbols(spread.amount):
        return None
    size, servers = spread.size, spread.servers
    count, low = tidy(spread.count), spread.steps.low
    if size is None:
        assert servers is not None
        most = ceil_div(count, servers)
    elif servers is not None:
        # the owner of the first block holds the most
        if tidy(low % size) != ZERO:
            return None
        cycle = size * servers
        most = floor_div(count, cycle) * size + minimum(size, count % cycle)
    elif tidy(low % size) == ZERO:
        # ceil(n/P) is at most n
        is_share = isinstance(size, CeilDiv) and size.dividend == count and _is_size(size.divisor)
        most = size if is_share else minimum(count, size)
    else:
        head = minimum(count, size - low % size)
        most = maximum(head, minimum(size, count - head))
    return spread.guarded(most * spread.amount)


def _is_size(expr: Expr) -> bool:
    """Tell whether `expr` is positive, given that sizes (bare symbols) are."""
    if isinstance(expr, Num):
        return expr.value > 0
    if isinstance(expr, Mul):
        return expr.coefficient > 0 and all(isinstance(f, Sym) for f in expr.factors)
    return isinstance(expr, Sym)


def _divides_by_sizes_only(expr: Expr) -> bool:
    """Tell whether every divisor in `expr` is visibly positive."""
    if isinstance(expr, FloorDiv | CeilDiv | Mod):
        safe = _is_size(expr.divisor)
    else:
        safe = not (isinstance(expr, Pow) and is_reciprocal(expr)) or _is_size(expr.children[0])
    return safe and all(map(_divides_by_sizes_only, expr.children))
