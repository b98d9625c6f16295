"""What the body of one loop does: moves an array by one element and adds it, or adds it moved.

The *running* way moves a copy by one element and adds it, again and again; the *indexed* way
adds the array shifted by the loop's index. Elements from beyond the edge count as zero, or wrap
around.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.ir.kernel import Kernel
from advisor.ir.shapes import is_whole
from advisor.ir.statements import Bind, Loop, Statement, Store, symbols
from advisor.ir.values import (
    Copy,
    Elementwise,
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
class Shift:
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
class Addition:
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
    shift: Shift
    first: Expr
    moves: bool
    statement: Statement


def addition_of(loop: Loop, kernel: Kernel) -> Addition | None:
    """Return what a loop adds up, if it is one of the two ways."""
    return _running(loop, kernel) or _indexed(loop, kernel)


def reads_array(value: Value, name: str) -> bool:
    """Return whether a value needs elements of an array."""
    return any(read.array == name for read in reads(value))


def copied(value: Value, kernel: Kernel) -> str | None:
    """Return the array that a value is an element-by-element copy of."""
    operand = value.operand if isinstance(value, Copy) else value
    if isinstance(operand, Read) and is_whole(operand.region, kernel.extents(operand.array)):
        return operand.array
    return None


def _running(loop: Loop, kernel: Kernel) -> Addition | None:
    """Match a loop that moves a copy by one element and adds it."""
    if loop.variable in _symbols(loop.body):
        return None
    for first, rest in ((0, loop.body[1:]), (1, loop.body[:-1])):
        addition = loop.body[0] if first == 0 else loop.body[-1]
        found = _addition(addition, kernel)
        if found is None or not rest:
            continue
        target, value = found
        moved = copied(value, kernel) if isinstance(value, Read) else None
        if moved is None:
            continue
        shift = _move(rest, moved, kernel)
        if shift is not None:
            return Addition(target, moved, shift, num(first), moves=True, statement=addition)
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
        if copied(one, kernel) == name and isinstance(one, Read) and not reads_array(other, name):
            return name, other
    return None


def _move(statements: tuple[Statement, ...], name: str, kernel: Kernel) -> Shift | None:
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
        if isinstance(value, Roll) and copied(value.operand, kernel) == name:
            side = _unit(value.amount)
            return None if side is None else Shift(value.axis, -side, periodic=True)
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
    return Shift(axis, side, periodic=False)


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


def _indexed(loop: Loop, kernel: Kernel) -> Addition | None:
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
        name = copied(value.operand, kernel)
        if name is None or value.amount not in (index, -index):
            return None
        side = -1 if value.amount == index else 1
        shift = Shift(value.axis, side, periodic=True)
        return Addition(target, name, shift, loop.low, moves=False, statement=statement)
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
    shift = Shift(axis, -1 if bounds == lower else 1, periodic=False)
    return Addition(target, taken.array, shift, loop.low, moves=False, statement=statement)


def _symbols(body: tuple[Statement, ...]) -> frozenset[str]:
    return frozenset().union(*map(symbols, body))
