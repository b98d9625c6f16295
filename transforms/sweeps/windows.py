"""Recognises sums over windows: ``y[i] = x[i] + x[i-1] + ... + x[i-w+1]`` by repeated shifts.

A window is a loop that adds shifted versions of an array up, the statement that gives the sums
their first value, and the one that makes the copy that is moved. Nothing else may come between
them, or see what they leave behind. Everything that is not surely such a sum is left alone.

The *running* way moves a copy by one element and adds it, again and again; the *indexed* way
adds the array shifted by the loop's index. Elements from beyond the edge count as zero, or wrap
around.
"""

from __future__ import annotations

from collections.abc import Iterator

from advisor.ir.kernel import Kernel, symbols
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
from advisor.ir.values import (
    Copy,
    Elementwise,
    Fill,
    Point,
    Range,
    Read,
    Roll,
    Scalar,
    Value,
    reads,
)
from costdb.expr import Expr, num, sym
from costdb.expr.nodes import Num
from costdb.records import dataclass, only
from transforms.kit.kernels import along

ZERO = num(0)
ONE = num(1)
ZEROS = frozenset({"0", "0.0", "0."})


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
    body = _running(loop, kernel) or _indexed(loop, kernel)
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
    name, moving = body.shifted, None if origin.moving_at is None else block[origin.moving_at]
    if moving is not None and not (
        _fresh(moving, name, kernel) and _dead_after(name, place, around)
    ):
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
    )


def _ahead(loop: Loop, body: _Addition, least: int) -> Expr | None:
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


def _origin(before: tuple[Statement, ...], body: _Addition, kernel: Kernel) -> _Origin | None:
    start = _last_definition(before, body.target, kernel)
    if start is None:
        return None
    if not body.moves:
        return _Origin(body.shifted, *start, None)
    made = _last_definition(before, body.shifted, kernel)
    if made is None or body.shifted not in kernel.locals:
        return None
    source = _copied(made[1], kernel)
    if source == body.target and start[0] < made[0]:
        # the moving copy was taken from the sums when they still were the first term
        source = _copied(start[1], kernel)
    if source is None or kernel.dtype(body.shifted) != kernel.dtype(source):
        return None
    return _Origin(source, *start, made[0])


def _disturbed(
    block: tuple[Statement, ...], position: int, body: _Addition, origin: _Origin, kernel: Kernel
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
    if _copied(value, kernel) == source:
        return 1
    match value:
        case Fill(value=text) | Scalar(text=text) if text in ZEROS:
            return 0
    return None


def _last_definition(
    block: tuple[Statement, ...], name: str, kernel: Kernel
) -> tuple[int, Value] | None:
    """Return the last statement before the loop that mentions a name, if it gives it a value."""
    for position in range(len(block) - 1, -1, -1):
        statement = block[position]
        target, value = _given(statement, kernel)
        if target == name and value is not None:
            return position, value
        # or it is only read: `moving = target.copy()` between the start and the loop
        if name in written(statement):
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
            name in mentioned(statement) for statement in only(Unknown | Stated, walk(kernel.body))
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
                return _reads(statement.value, name)
            return True
    return None


# --- what the body of one loop does ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Shift:
    """A move by one element along an axis.

    Attributes
    ----------
    axis : int
    side : int
        -1 where what is added comes from lower indices, +1 where from higher ones.
    periodic : bool
        What leaves at the one end comes in at the other, else zeros do.
    """

    axis: int
    side: int
    periodic: bool


@dataclass(frozen=True, slots=True)
class _Addition:
    """What a loop does: adds shifted versions of an array to another.

    Attributes
    ----------
    target, shifted : str
    shift : Shift
    first : Expr
        By how many elements what is added first is shifted.
    moves : bool
        The loop shifts the array itself, and each addition is of the whole of it.
    statement : Statement
        The one that adds.
    """

    target: str
    shifted: str
    shift: _Shift
    first: Expr
    moves: bool
    statement: Statement


def _reads(value: Value, name: str) -> bool:
    """Return whether a value needs elements of an array."""
    return any(read.array == name for read in reads(value))


def _copied(value: Value, kernel: Kernel) -> str | None:
    """Return the array that a value is an element-by-element copy of."""
    operand = value.operand if isinstance(value, Copy) else value
    if isinstance(operand, Read) and is_whole(operand.region, kernel.extents(operand.array)):
        return operand.array
    return None


def _running(loop: Loop, kernel: Kernel) -> _Addition | None:
    """Match a loop that moves a copy by one element and adds it."""
    if not loop.body or any(loop.variable in symbols(statement) for statement in loop.body):
        return None
    ways = ((0, loop.body[0], loop.body[1:]), (1, loop.body[-1], loop.body[:-1]))
    for first, addition, rest in ways:
        target, value = _added(addition, kernel)
        moved = _copied(value, kernel) if isinstance(value, Read) else None
        shift = None if moved is None else _move(rest, moved, kernel)
        if target is not None and moved is not None and shift is not None:
            return _Addition(target, moved, shift, num(first), moves=True, statement=addition)
    return None


def _given(statement: Statement, kernel: Kernel) -> tuple[str | None, Value | None]:
    """Return the array all of which a statement gives a value, and that value."""
    match statement:
        case Bind(name=name, value=value):
            return name, value
        case Store(array=name, region=region, value=value) if is_whole(
            region, kernel.extents(name)
        ):
            return name, value
    return None, None


def _added(statement: Statement, kernel: Kernel) -> tuple[str | None, Value | None]:
    """Match ``target += value`` over the whole target; return both."""
    name, value = _given(statement, kernel)
    match value:
        case Elementwise("add", (one, other)):
            for own, added in ((one, other), (other, one)):
                is_own = isinstance(own, Read) and _copied(own, kernel) == name
                if is_own and name is not None and not _reads(added, name):
                    return name, added
    return None, None


def _move(statements: tuple[Statement, ...], name: str, kernel: Kernel) -> _Shift | None:
    """Match the statements that move an array by one element."""
    if len(statements) == 1:
        match _given(statements[0], kernel):
            case (target, Roll(operand, axis, amount)) if (
                target == _copied(operand, kernel) == name
            ):
                if amount in (ONE, -ONE):
                    return _Shift(axis, -1 if amount == ONE else 1, periodic=True)
        return None
    match statements:
        case (Store() as head, Store(array=other, region=rest, value=Scalar(text=text))) if (
            text in ZEROS and other == name
        ):
            pass
        case _:
            return None
    extents = kernel.extents(name)
    for axis, extent in enumerate(extents):
        lower, upper, last = Range(ZERO, extent - 1), Range(ONE, extent), extent - 1
        for side, place, taken, edge in ((-1, upper, lower, ZERO), (1, lower, upper, last)):
            ends = [along(axis, end, extents) for end in (Point(edge), Range(edge, edge + 1))]
            moved = Read(name, along(axis, taken, extents))
            stored = (head.array, head.region, head.value)
            if stored == (name, along(axis, place, extents), moved) and rest in ends:
                return _Shift(axis, side, periodic=False)
    return None


def _indexed(loop: Loop, kernel: Kernel) -> _Addition | None:
    """Match a loop that adds an array shifted by the loop's index."""
    if len(loop.body) != 1:
        return None
    (statement,), index = loop.body, sym(loop.variable)
    target, value = _added(statement, kernel)
    if target is not None:
        match value:
            case Roll(operand, axis, amount) if amount in (index, -index):
                name, shift = _copied(operand, kernel), _Shift(axis, -1, periodic=True)
                if amount != index:
                    shift = _Shift(axis, 1, periodic=True)
                if name is not None:
                    return _Addition(target, name, shift, loop.low, False, statement)
        return None
    match statement:
        case Store(array=target, region=region, value=Elementwise("add", (one, two))):
            taken = two if one == Read(target, region) else one
        case _:
            return None
    if not isinstance(taken, Read) or Read(target, region) not in (one, two):
        return None
    extents = kernel.extents(target)
    if taken.array == target or kernel.extents(taken.array) != extents:
        return None
    for axis, extent in enumerate(extents):
        here, there = Range(index, extent), Range(ZERO, extent - index)
        for side, place, part in ((-1, here, there), (1, there, here)):
            regions = (along(axis, place, extents), along(axis, part, extents))
            if (region, taken.region) == regions:
                shift = _Shift(axis, side, periodic=False)
                return _Addition(target, taken.array, shift, loop.low, False, statement)
    return None
