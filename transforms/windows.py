"""Recognises sums over windows: ``y[i] = x[i] + x[i-1] + ... + x[i-w+1]`` by repeated shifts.

Two ways of writing them are known. The *running* way moves a copy by one element and adds it,
again and again; the *indexed* way adds the array shifted by the loop's index. Elements from
beyond the edge count as zero, or wrap around. Everything else is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from advisor.ir.kernel import Kernel
from advisor.ir.shapes import is_whole
from advisor.ir.statements import Bind, Choice, Loop, Statement, Store, mentioned, symbols, written
from advisor.ir.values import (
    Copy,
    Elementwise,
    Fill,
    Point,
    Range,
    Read,
    Roll,
    Scalar,
    Subscript,
    Value,
    reads,
)
from costdb.expr import Expr, num, sym

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
    start: Statement
    moving: Statement | None
    loop: Loop
    addition: Statement


@dataclass(frozen=True, slots=True)
class _Shift:
    axis: int
    side: int
    periodic: bool


@dataclass(frozen=True, slots=True)
class _Body:
    """What a loop does: adds shifted versions of an array to another."""

    target: str
    shifted: str
    shift: _Shift
    first: Expr
    moves: bool
    addition: Statement


def windows(kernel: Kernel) -> tuple[Window, ...]:
    """Return every window sum of a kernel, in program order."""
    return tuple(_in_block(kernel.body, kernel, outermost=True))


def _in_block(block: tuple[Statement, ...], kernel: Kernel, *, outermost: bool) -> Iterator[Window]:
    for position, statement in enumerate(block):
        if isinstance(statement, Loop):
            found = _window(block, position, kernel, outermost=outermost)
            if found is not None:
                yield found
            else:
                yield from _in_block(statement.body, kernel, outermost=False)
        elif isinstance(statement, Choice):
            yield from _in_block(statement.then, kernel, outermost=False)
            yield from _in_block(statement.orelse, kernel, outermost=False)


def _window(
    block: tuple[Statement, ...], position: int, kernel: Kernel, *, outermost: bool
) -> Window | None:
    loop = block[position]
    assert isinstance(loop, Loop)
    if loop.step != 1:
        return None
    body = _running(loop, kernel) or _indexed(loop, kernel)
    if body is None or body.target == body.shifted:
        return None
    if {body.target, body.shifted} & kernel.aliases:
        return None
    start = _last_definition(block[:position], body.target, kernel)
    if start is None:
        return None
    start_at, start_value = start
    moving: Statement | None = None
    source = body.shifted
    since = start_at
    if body.moves:
        made = _last_definition(block[:position], body.shifted, kernel)
        if made is None or body.shifted not in kernel.locals:
            return None
        moving_at, moving_value = made
        moving = block[moving_at]
        copied = _copied(moving_value, kernel)
        if copied is None:
            return None
        source = copied
        since = min(start_at, moving_at)
        if source == body.target and start_at < moving_at:
            # the moving copy was taken from the sums when they still were the first term
            copied = _copied(start_value, kernel)
            if copied is None:
                return None
            source = copied
    if source in (body.target, *([body.shifted] if body.moves else [])):
        return None
    between = [s for s in block[since:position] if s not in (block[start_at], moving)]
    touched = {body.target, body.shifted} if body.moves else {body.target}
    if any(mentioned(s) & touched or source in written(s) for s in between):
        return None
    least = _least(start_value, source, kernel)
    if least is None or body.first != num(least):
        return None
    if body.moves and not _dead_after(block, position, body.shifted, moving, kernel, outermost):
        return None
    if kernel.extents(source) != kernel.extents(body.target):
        return None
    trips = loop.high - loop.low
    return Window(
        source=source,
        target=body.target,
        axis=body.shift.axis,
        terms=trips + least,
        least=least,
        side=body.shift.side,
        periodic=body.shift.periodic,
        start=block[start_at],
        moving=moving,
        loop=loop,
        addition=body.addition,
    )


def _least(value: Value, source: str, kernel: Kernel) -> int | None:
    """Return how many terms the sums hold before the loop."""
    if _copied(value, kernel) == source:
        return 1
    if isinstance(value, Fill) and value.value in ZEROS:
        return 0
    if isinstance(value, Scalar) and value.text in ZEROS:
        return 0
    return None


def _copied(value: Value, kernel: Kernel) -> str | None:
    """Return the array that a value is an element-by-element copy of."""
    operand = value.operand if isinstance(value, Copy) else value
    if isinstance(operand, Read) and is_whole(operand.region, kernel.extents(operand.array)):
        return operand.array
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


def _dead_after(
    block: tuple[Statement, ...],
    position: int,
    name: str,
    moving: Statement | None,
    kernel: Kernel,
    outermost: bool,
) -> bool:
    """Return whether nothing uses the moved copy once the loop is over."""
    for statement in block[position + 1 :]:
        if name not in mentioned(statement):
            continue
        return (
            isinstance(statement, Bind)
            and statement.name == name
            and not _reads(statement.value, name)
        )
    if outermost:
        return True
    own = {id(moving), id(block[position])}
    return not any(
        name in mentioned(statement) and id(statement) not in own
        for statement in _leaves(kernel.body, own)
    )


def _leaves(block: tuple[Statement, ...], skip: set[int]) -> Iterator[Statement]:
    for statement in block:
        if id(statement) in skip:
            continue
        if isinstance(statement, Loop):
            yield from _leaves(statement.body, skip)
        elif isinstance(statement, Choice):
            yield from _leaves(statement.then + statement.orelse, skip)
        else:
            yield statement


def _reads(value: Value, name: str) -> bool:
    return any(read.array == name for read in reads(value))


def _running(loop: Loop, kernel: Kernel) -> _Body | None:
    """Match a loop that moves a copy by one element and adds it."""
    if loop.variable in _symbols(loop.body):
        return None
    for first, rest in ((0, loop.body[1:]), (1, loop.body[:-1])):
        addition = loop.body[0] if first == 0 else loop.body[-1]
        found = _addition(addition, kernel)
        if found is None or not rest:
            continue
        target, value = found
        moved = _copied(value, kernel) if isinstance(value, Read) else None
        if moved is None:
            continue
        shift = _move(rest, moved, kernel)
        if shift is not None:
            return _Body(target, moved, shift, num(first), moves=True, addition=addition)
    return None


def _addition(statement: Statement, kernel: Kernel) -> tuple[str, Value] | None:
    """Match ``target += value`` over the whole target; return both."""
    if isinstance(statement, Store):
        name = statement.array
        if not is_whole(statement.region, kernel.extents(name)):
            return None
    elif isinstance(statement, Bind):
        name = statement.name
    else:
        return None
    value = statement.value
    if not isinstance(value, Elementwise) or value.operation != "add":
        return None
    if len(value.operands) != 2:
        return None
    for one, other in (value.operands, value.operands[::-1]):
        if _copied(one, kernel) == name and isinstance(one, Read) and not _reads(other, name):
            return name, other
    return None


def _move(statements: tuple[Statement, ...], name: str, kernel: Kernel) -> _Shift | None:
    """Match the statements that move an array by one element."""
    head = statements[0]
    extents = kernel.extents(name)
    if len(statements) == 1:
        whole_store = (
            isinstance(head, Store) and head.array == name and is_whole(head.region, extents)
        )
        if not whole_store and not (isinstance(head, Bind) and head.name == name):
            return None
        assert isinstance(head, Store | Bind)
        value = head.value
        if isinstance(value, Roll) and _copied(value.operand, kernel) == name:
            side = _unit(value.amount)
            return None if side is None else _Shift(value.axis, -side, periodic=True)
        return None
    if len(statements) != 2:
        return None
    tail = statements[1]
    if not isinstance(head, Store) or not isinstance(tail, Store):
        return None
    if head.array != name or tail.array != name or not isinstance(head.value, Read):
        return None
    if head.value.array != name:
        return None
    axis = _moved_axis(head.region, head.value.region, extents)
    if axis is None:
        return None
    place, taken = head.region[axis], head.value.region[axis]
    assert isinstance(place, Range) and isinstance(taken, Range)
    if not isinstance(tail.value, Scalar) or tail.value.text not in ZEROS:
        return None
    last = extents[axis] - 1
    if (place.low, place.high, taken.low, taken.high) == (ONE, extents[axis], ZERO, last):
        edge, side = ZERO, -1
    elif (place.low, place.high, taken.low, taken.high) == (ZERO, last, ONE, extents[axis]):
        edge, side = last, 1
    else:
        return None
    if not _is_edge(tail.region, axis, edge, extents):
        return None
    return _Shift(axis, side, periodic=False)


def _unit(amount: Expr) -> int | None:
    if amount == ONE:
        return 1
    return -1 if amount == -ONE else None


def _moved_axis(
    place: tuple[Subscript, ...], taken: tuple[Subscript, ...], extents: tuple[Expr, ...]
) -> int | None:
    """Return the only axis along which two regions differ; the others must be whole."""
    if len(place) != len(extents) or len(taken) != len(extents):
        return None
    moved: int | None = None
    for axis, (one, other) in enumerate(zip(place, taken, strict=True)):
        if not isinstance(one, Range) or not isinstance(other, Range):
            return None
        if one == other == Range(ZERO, extents[axis]):
            continue
        if moved is not None:
            return None
        moved = axis
    return moved


def _is_edge(
    region: tuple[Subscript, ...], axis: int, edge: Expr, extents: tuple[Expr, ...]
) -> bool:
    if len(region) != len(extents):
        return False
    for position, part in enumerate(region):
        if position == axis:
            if part not in (Point(edge), Range(edge, edge + 1)):
                return False
        elif part != Range(ZERO, extents[position]):
            return False
    return True


def _indexed(loop: Loop, kernel: Kernel) -> _Body | None:
    """Match a loop that adds an array shifted by the loop's index."""
    if len(loop.body) != 1:
        return None
    statement = loop.body[0]
    index = sym(loop.variable)
    found = _addition(statement, kernel)
    if found is not None:
        target, value = found
        if not isinstance(value, Roll):
            return None
        name = _copied(value.operand, kernel)
        if name is None or value.amount not in (index, -index):
            return None
        side = -1 if value.amount == index else 1
        shift = _Shift(value.axis, side, periodic=True)
        return _Body(target, name, shift, loop.low, moves=False, addition=statement)
    if not isinstance(statement, Store) or not isinstance(statement.value, Elementwise):
        return None
    target, extents = statement.array, kernel.extents(statement.array)
    value = statement.value
    if value.operation != "add" or len(value.operands) != 2:
        return None
    own = Read(target, statement.region)
    others = [operand for operand in value.operands if operand != own]
    if len(others) != 1 or not isinstance(others[0], Read) or others[0].array == target:
        return None
    taken = others[0]
    axis = _moved_axis(statement.region, taken.region, extents)
    if axis is None or kernel.extents(taken.array) != extents:
        return None
    place, part = statement.region[axis], taken.region[axis]
    assert isinstance(place, Range) and isinstance(part, Range)
    extent = extents[axis]
    lower = (index, extent, ZERO, extent - index)
    upper = (ZERO, extent - index, index, extent)
    bounds = (place.low, place.high, part.low, part.high)
    if bounds not in (lower, upper):
        return None
    shift = _Shift(axis, -1 if bounds == lower else 1, periodic=False)
    return _Body(target, taken.array, shift, loop.low, moves=False, addition=statement)


def _symbols(body: tuple[Statement, ...]) -> frozenset[str]:
    return frozenset().union(*map(symbols, body))
