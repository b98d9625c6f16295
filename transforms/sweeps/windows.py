"""Recognises sums over windows: ``y[i] = x[i] + x[i-1] + ... + x[i-w+1]`` by repeated shifts.

A window is a loop that adds shifted versions of an array up, the statement that gives the sums
their first value, and the one that makes the copy that is moved. Nothing else may come between
them, or see what they leave behind. Everything that is not surely such a sum is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from advisor.ir.kernel import Kernel
from advisor.ir.nests import index_name
from advisor.ir.shapes import is_whole
from advisor.ir.statements import (
    Bind,
    Choice,
    Loop,
    Return,
    Stated,
    Statement,
    Store,
    Unknown,
    mentioned,
    walk,
    written,
)
from advisor.ir.values import Fill, Scalar, Value
from costdb.expr import Expr, num
from costdb.expr.nodes import Num
from transforms.sweeps.window_loops import ZEROS, Addition, addition_of, copied, reads_array


@dataclass(frozen=True, slots=True)
class Window:
    """A sum over windows, and the statements that compute it.

    Attributes
    ----------
    source, target : str
        Arrays summed, and the array that holds the sums.
    axis : int
    terms : Expr
        Terms of each sum as the loop bounds say it; fewer than `least` means `least`.
    least : int
        Terms of each sum when the loop does not run: 1 where the first term is put in
        before the loop, else 0.
    side : int
        -1 where windows reach to lower indices, +1 where to higher ones.
    periodic : bool
        Windows wrap around instead of ending at the edge.
    ahead : Expr
        How many terms of a periodic window lie on the other side than `side`, as the loop bounds
        say it: ``r`` of those of ``range(-r, r + 1)``.
    start : Statement
        Gives `target` its first value.
    moving : Statement or None
        Makes the copy that is moved, where one is.
    loop : Loop
    addition : Statement
        The statement that adds, where the finding is shown.
    """

    source: str
    target: str
    axis: int
    terms: Expr
    least: int
    side: int
    periodic: bool
    ahead: Expr
    start: Statement
    moving: Statement | None
    loop: Loop
    addition: Statement


def windows(kernel: Kernel) -> tuple[Window, ...]:
    """Return every window sum of a kernel, in program order."""
    return tuple(_in_block(kernel.body, (), kernel))


@dataclass(frozen=True, slots=True)
class _Place:
    """One statement of a block."""

    block: tuple[Statement, ...]
    position: int

    @property
    def statement(self) -> Statement:
        return self.block[self.position]


def _in_block(
    block: tuple[Statement, ...], around: tuple[_Place, ...], kernel: Kernel
) -> Iterator[Window]:
    for position, statement in enumerate(block):
        place = _Place(block, position)
        if isinstance(statement, Loop):
            found = _window(statement, place, around, kernel)
            if found is not None:
                yield found
            else:
                yield from _in_block(statement.body, (*around, place), kernel)
        elif isinstance(statement, Choice):
            yield from _in_block(statement.then, (*around, place), kernel)
            yield from _in_block(statement.orelse, (*around, place), kernel)


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where the sums and the moved copy come from."""

    source: str
    start_at: int
    start_value: Value
    moving_at: int | None

    @property
    def since(self) -> int:
        return self.start_at if self.moving_at is None else min(self.start_at, self.moving_at)


def _window(loop: Loop, place: _Place, around: tuple[_Place, ...], kernel: Kernel) -> Window | None:
    block, position = place.block, place.position
    index = index_name(loop.variable)
    if loop.step != 1 or loop.stated or index in kernel.observed:
        return None
    body = addition_of(loop, kernel)
    if body is None or body.target == body.shifted:
        return None
    origin = _origin(block[:position], body, kernel)
    if origin is None:
        return None
    names = {origin.source, body.target, *([body.shifted] if body.moves else [])}
    if names & kernel.aliases or len(names) < (3 if body.moves else 2):
        return None
    if _disturbed(block, position, body, origin, kernel):
        return None
    if isinstance(body.statement, Bind) and not _fresh(block[origin.start_at], body.target, kernel):
        # the loop leaves the array behind as it was, and goes on with others of that name
        return None
    least = _least(origin.start_value, origin.source, kernel)
    ahead = None if least is None else _ahead(loop, body, least)
    if least is None or ahead is None:
        return None
    if kernel.extents(origin.source) != kernel.extents(body.target):
        return None
    terms = loop.high - loop.low + least
    if isinstance(terms, Num) and terms.value < 2:
        # there is nothing to add up
        return None
    moving = None if origin.moving_at is None else block[origin.moving_at]
    if moving is not None:
        name = body.shifted
        if not _fresh(moving, name, kernel) or not _dead_after(name, place, around):
            return None
    return Window(
        source=origin.source,
        target=body.target,
        axis=body.shift.axis,
        terms=terms,
        least=least,
        side=body.shift.side,
        periodic=body.shift.periodic,
        ahead=ahead,
        start=block[origin.start_at],
        moving=moving,
        loop=loop,
        addition=body.statement,
    )


def _ahead(loop: Loop, body: Addition, least: int) -> Expr | None:
    """Return how far windows reach to their other side; None where their terms are others."""
    if body.first == num(least):
        return num(0)
    both_ways = not body.moves and body.shift.periodic and _holds_zero(loop.low, loop.high)
    return -body.first if least == 0 and both_ways else None


def _holds_zero(low: Expr, high: Expr) -> bool:
    """Return whether ``low <= 0 <= high`` for all whole numbers between which there is one."""
    total = low + high
    if isinstance(low, Num) and isinstance(high, Num):
        return low.value <= 0 <= high.value
    if isinstance(low, Num):
        return -1 <= low.value <= 0
    if isinstance(high, Num):
        return 0 <= high.value <= 1
    return isinstance(total, Num) and -1 <= total.value <= 2


def _origin(before: tuple[Statement, ...], body: Addition, kernel: Kernel) -> _Origin | None:
    start = _last_definition(before, body.target, kernel)
    if start is None:
        return None
    if not body.moves:
        return _Origin(body.shifted, *start, None)
    made = _last_definition(before, body.shifted, kernel)
    if made is None or body.shifted not in kernel.locals:
        return None
    source = copied(made[1], kernel)
    if source == body.target and start[0] < made[0]:
        # the moving copy was taken from the sums when they still were the first term
        source = copied(start[1], kernel)
    if source is None or kernel.dtype(body.shifted) != kernel.dtype(source):
        return None
    return _Origin(source, *start, made[0])


def _disturbed(
    block: tuple[Statement, ...], position: int, body: Addition, origin: _Origin, kernel: Kernel
) -> bool:
    """Return whether something before the loop may change or see what belongs to the window."""
    places = {origin.start_at: body.target}
    if origin.moving_at is not None:
        places[origin.moving_at] = body.shifted
    settled: set[str] = set()
    for at in range(origin.since, position):
        statement = block[at]
        if at in places:
            settled.add(places[at])
            continue
        if any(isinstance(s, Unknown | Stated | Return) for s in walk((statement,))):
            # what is not understood may reach arrays under other names, and run other code
            return True
        if settled & mentioned(statement):
            return True
        if any(may_share(name, origin.source, kernel) for name in written(statement)):
            return True
    return False


def may_share(one: str, other: str, kernel: Kernel) -> bool:
    """Return whether two names may denote the same memory: callers may pass one array twice."""
    return one == other or (one in kernel.arrays and other in kernel.arrays)


def _least(value: Value, source: str, kernel: Kernel) -> int | None:
    """Return how many terms the sums hold before the loop."""
    if copied(value, kernel) == source:
        return 1
    if isinstance(value, Fill) and value.value in ZEROS:
        return 0
    if isinstance(value, Scalar) and value.text in ZEROS:
        return 0
    return None


def _last_definition(
    block: tuple[Statement, ...], name: str, kernel: Kernel
) -> tuple[int, Value] | None:
    """Return the last statement before the loop that mentions a name, if it gives it a value."""
    for position in range(len(block) - 1, -1, -1):
        statement = block[position]
        if name not in mentioned(statement):
            continue
        if isinstance(statement, Bind) and statement.name == name:
            return position, statement.value
        if (
            isinstance(statement, Store)
            and statement.array == name
            and is_whole(statement.region, kernel.extents(name))
        ):
            return position, statement.value
        if name not in written(statement):
            # only read: `moving = target.copy()` between the start and the loop
            continue
        return None
    return None


def _fresh(start: Statement, name: str, kernel: Kernel) -> bool:
    """Return whether nothing else holds the array whose elements a statement sets.

    Where it makes the array nothing can, but for functions and views that `observed` tells of;
    where the array is older something may.
    """
    if name in kernel.observed:
        return False
    return isinstance(start, Bind) or (
        name in kernel.locals
        and not any(
            name in mentioned(statement)
            for statement in walk(kernel.body)
            if isinstance(statement, Unknown | Stated)
        )
    )


def _dead_after(name: str, place: _Place, around: tuple[_Place, ...]) -> bool:
    """Return whether nothing uses what a name denotes once a statement is done."""
    used = _uses(name, place.block[place.position + 1 :])
    if used is not None:
        return not used
    if not around:
        return True
    outer = around[-1]
    if isinstance(outer.statement, Loop) and _uses(name, place.block[: place.position + 1]):
        # the next time around comes back to it
        return False
    return _dead_after(name, outer, around[:-1])


def _uses(name: str, statements: tuple[Statement, ...]) -> bool | None:
    """Return whether the first statement that mentions a name needs what it denotes already."""
    for statement in statements:
        if name in mentioned(statement):
            if isinstance(statement, Bind) and statement.name == name:
                return reads_array(statement.value, name)
            return True
    return None
