"""Entries spread over servers by one loop, as closed forms of the server.

Recognised are one server a step, cyclic ``i mod P``, block ``i div B`` and block-cyclic
``(i div B) mod P``, with offsets, and with amounts that may vary from step to step. Sizes that
occur in an index are taken to be positive whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

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
from costdb.expr.names import fresh_name
from costdb.expr.nodes import CeilDiv, FloorDiv, Mod
from costdb.process.terms import (
    constant_of,
    divides_by_sizes_only,
    is_positive,
    is_whole,
    linear_in,
)

Tidy = Callable[[Expr], Expr]
"""Simplification that knows something about the sizes."""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """What an entry puts on each server; None where nothing closed is known.

    Attributes
    ----------
    at : callable
        From the server's index to the amount there.
    peak : Expr or None
        The largest amount on any server.
    first, last : Expr or None
        No server outside this range is reached.
    rises : tuple of Expr or None
        Servers that may hold more than the server before them; all others do not.
    """

    at: Callable[[Expr], Expr]
    peak: Expr | None
    first: Expr | None
    last: Expr | None
    rises: tuple[Expr, ...] | None


@dataclass(frozen=True, slots=True)
class Steps:
    """A loop ``x`` over ``low..high`` with an amount at each step.

    `is_monotone` tells that the amount only grows, or only shrinks, from step to step; `tidy`
    simplifies by what is known about the sizes.
    """

    x: str
    low: Expr
    high: Expr
    amount: Expr
    is_monotone: bool
    tidy: Tidy

    @property
    def is_constant(self) -> bool:
        """Whether all steps have the same amount."""
        return self.x not in free_symbols(self.amount)

    def amount_at(self, x: Expr) -> Expr:
        """Return the amount of step `x`."""
        return substitute(self.amount, {self.x: x})

    def count(self) -> Expr:
        """Return the number of steps."""
        return maximum(ZERO, self.high - self.low + 1)

    def within(self, low: Expr, high: Expr) -> Expr:
        """Return the sum of the amounts of those steps that lie in ``low..high``."""
        x = fresh(self.x, low, high)
        amount = self.amount
        if x != self.x:
            x = fresh(self.x, low, high, amount)
            amount = self.amount_at(sym(x))
        return summation(x, maximum(self.low, low), minimum(self.high, high), amount)


def fresh(stem: str, *apart_from: Expr) -> str:
    """Return a name like `stem` that is free in none of the expressions."""
    return fresh_name(stem, frozenset().union(*map(free_symbols, apart_from)))


def distribution(owner: Expr, steps: Steps) -> Occupancy | None:
    """Return how `steps` occupy the servers named by `owner`, an expression over the loop."""
    line = linear_in(owner, steps.x)
    if line is not None:
        return _one_server_a_step(line[0], line[1], steps)
    if isinstance(owner, CeilDiv) and is_whole(owner.dividend) and is_whole(owner.divisor):
        owner = floor_div(owner.dividend + owner.divisor - 1, owner.divisor)
    if isinstance(owner, FloorDiv):
        return _unless_empty(steps, owner.divisor, _block(owner.dividend, owner.divisor, steps))
    if not isinstance(owner, Mod):
        return None
    if isinstance(owner.dividend, FloorDiv):
        block, servers = owner.dividend, owner.divisor
        found = _block_cyclic(block.dividend, block.divisor, servers, steps)
        return _unless_empty(steps, block.divisor * servers, found)
    return _unless_empty(steps, owner.divisor, _cyclic(owner.dividend, owner.divisor, steps))


def _unless_empty(steps: Steps, divisor: Expr, found: Occupancy | None) -> Occupancy | None:
    # A divisor such as ceil(N/P) is 0 where the loop is empty, and must not be divided by.
    if found is None or is_positive(divisor):
        return found
    at, peak, first, last, rises = found.at, found.peak, found.first, found.last, found.rises

    def guarded(expr: Expr) -> Expr:
        if divides_by_sizes_only(expr):
            return expr
        return conditional(less_equal(steps.low, steps.high), expr, ZERO)

    return Occupancy(
        lambda server: guarded(at(server)),
        None if peak is None else guarded(peak),
        None if first is None else guarded(first),
        None if last is None else guarded(last),
        None if rises is None else tuple(guarded(server) for server in rises),
    )


def _shifted(dividend: Expr, steps: Steps) -> Steps | None:
    """Rename the loop so that its variable is `dividend` itself, if that moves by ones."""
    line = linear_in(dividend, steps.x)
    if line is None or line[0] not in (ONE, -ONE) or not is_whole(line[1]):
        return None
    low, high = (substitute(dividend, {steps.x: end}) for end in (steps.low, steps.high))
    if line[0] != ONE:
        low, high = high, low
    amount = steps.amount_at((sym(steps.x) - line[1]) * line[0])
    return replace(steps, low=steps.tidy(low), high=steps.tidy(high), amount=amount)


def _in_array(server: Expr, servers: Expr, amount: Expr) -> Expr:
    inside = conditional(less(server, servers), amount, ZERO)
    return conditional(less(server, ZERO), ZERO, inside)


def _one_server_a_step(slope: Expr, offset: Expr, steps: Steps) -> Occupancy | None:
    a = constant_of(slope)
    if not isinstance(a, int) or a == 0 or not is_whole(offset):
        return None

    def at(server: Expr) -> Expr:
        x = (server - offset) / slope
        not_after = conditional(less_equal(x, steps.high), steps.amount_at(x), ZERO)
        inside = conditional(less_equal(steps.low, x), not_after, ZERO)
        if a in (1, -1):
            return inside
        return conditional(equal((server - offset) % slope, ZERO), inside, ZERO)

    first, last = (slope * end + offset for end in (steps.low, steps.high))
    if a < 0:
        first, last = last, first
    peak = steps.tidy(maximum_over(steps.x, steps.low, steps.high, steps.amount))
    rises = (first,) if steps.is_constant and a in (1, -1) else None
    return Occupancy(at, peak, first, last, rises)


def _cyclic(dividend: Expr, servers: Expr, steps: Steps) -> Occupancy | None:
    shifted = _shifted(dividend, steps)
    if shifted is None or not is_whole(servers) or steps.x in free_symbols(servers):
        return None
    low, high = shifted.low, shifted.high

    def own(start: Expr, spare: Expr, stride: Expr) -> Expr:
        # Sums run over the owner's own elements, never over all of them with a filter.
        local = fresh("local", start, spare, servers, shifted.amount)
        amount = shifted.amount_at(start + sym(local) * stride)
        return summation(local, ZERO, floor_div(spare, servers), amount)

    def at(server: Expr) -> Expr:
        start = low + (server - low) % servers
        return _in_array(server, servers, own(start, high - start, servers))

    if shifted.is_constant:
        peak = ceil_div(shifted.count(), servers) * shifted.amount
    elif shifted.is_monotone:
        # The owner of the first element holds the most, or that of the last one does.
        peak = maximum(
            steps.tidy(own(low, high - low, servers)), steps.tidy(own(high, high - low, -servers))
        )
    else:
        p = fresh("owner", servers, low, high, shifted.amount)
        start = low + sym(p)
        held = steps.tidy(own(start, high - start, servers))
        peak = maximum_over(p, ZERO, minimum(servers - 1, high - low), held)
    rises = (ZERO, steps.tidy(low % servers)) if shifted.is_constant else None
    return Occupancy(at, steps.tidy(peak), ZERO, servers - 1, rises)


def _block(dividend: Expr, size: Expr, steps: Steps) -> Occupancy | None:
    line = linear_in(dividend, steps.x)
    if line is None or steps.x in free_symbols(size):
        return None
    shifted = _shifted(dividend, steps)
    if shifted is None or not is_whole(size):
        return _stretched_block(line[0], line[1], size, steps)
    low, high = shifted.low, shifted.high
    first, last = floor_div(low, size), floor_div(high, size)

    def at(server: Expr) -> Expr:
        return shifted.within(server * size, server * size + size - 1)

    count = steps.tidy(shifted.count())
    if shifted.is_constant and steps.tidy(low % size) == ZERO:
        # ceil(n/P) is at most n.
        is_share = (
            isinstance(size, CeilDiv) and size.dividend == count and is_positive(size.divisor)
        )
        peak = (size if is_share else minimum(count, size)) * shifted.amount
    elif shifted.is_constant:
        head = minimum(count, size - low % size)
        peak = maximum(head, minimum(size, count - head)) * shifted.amount
    elif shifted.is_monotone:
        # Next to a partial block at either end lies a full one, if there is any.
        ends = dict.fromkeys((first, first + 1, last - 1, last))
        peak = maximum(*(steps.tidy(at(server)) for server in ends))
    else:
        server = fresh("server", size, low, high, shifted.amount)
        peak = maximum_over(server, first, last, steps.tidy(at(sym(server))))
    rises = (first, first + 1) if shifted.is_constant else None
    return Occupancy(at, steps.tidy(peak), first, last, rises)


def _stretched_block(slope: Expr, offset: Expr, size: Expr, steps: Steps) -> Occupancy | None:
    """Blocks ``(a*x + c) div b``, whose lengths differ by one when ``b/a`` is not whole."""
    if not (is_positive(slope) and (is_positive(size) or is_whole(size))):
        return None

    def at(server: Expr) -> Expr:
        low = ceil_div(server * size - offset, slope)
        return steps.within(low, ceil_div((server + 1) * size - offset, slope) - 1)

    first, last = (floor_div(slope * end + offset, size) for end in (steps.low, steps.high))
    return Occupancy(at, None, first, last, None)


def _block_cyclic(dividend: Expr, size: Expr, servers: Expr, steps: Steps) -> Occupancy | None:
    shifted = _shifted(dividend, steps)
    varies = steps.x in free_symbols(size) | free_symbols(servers)
    if shifted is None or varies or not is_whole(size) or not is_whole(servers):
        return None
    low, high = shifted.low, shifted.high
    cycle = size * servers

    def below(end: Expr, server: Expr) -> Expr:
        # Elements before `end` that `server` owns: whole rounds, and a part of the last one.
        rest = minimum(size, maximum(ZERO, end % cycle - server * size))
        return floor_div(end, cycle) * size + rest

    def at(server: Expr) -> Expr:
        if shifted.is_constant:
            held = below(maximum(low, high + 1), server) - below(low, server)
            return _in_array(server, servers, held * shifted.amount)
        q = fresh("round", server, cycle, low, high, shifted.amount)
        start = (server + sym(q) * servers) * size
        held = summation(
            q,
            ceil_div(floor_div(low, size) - server, servers),
            floor_div(floor_div(high, size) - server, servers),
            shifted.within(start, start + size - 1),
        )
        return _in_array(server, servers, held)

    peak = None
    if shifted.is_constant and steps.tidy(low % size) == ZERO:
        # The owner of the first block holds the most.
        count = shifted.count()
        rest = minimum(size, count % cycle)
        peak = steps.tidy((floor_div(count, cycle) * size + rest) * shifted.amount)
    return Occupancy(at, peak, ZERO, servers - 1, None)
