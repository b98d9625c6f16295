"""What the body of one loop does: moves an array by one element and adds it, or adds it moved.

The *running* way moves a copy by one element and adds it, again and again; the *indexed* way
adds the array shifted by the loop's index. Elements from beyond the edge count as zero, or wrap
around.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.ir.kernel import Kernel
from advisor.ir.rebuilt import symbols
from advisor.ir.shapes import is_whole
from advisor.ir.statements import Bind, Loop, Statement, Store
from advisor.ir.values import Copy, Elementwise, Point, Range, Read, Roll, Scalar, Value, reads
from costdb.expr import Expr, num, sym
from transforms.kit.kernels import along

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
    if not loop.body or any(loop.variable in symbols(statement) for statement in loop.body):
        return None
    ways = ((0, loop.body[0], loop.body[1:]), (1, loop.body[-1], loop.body[:-1]))
    for first, addition, rest in ways:
        target, value = _added(addition, kernel)
        moved = copied(value, kernel) if isinstance(value, Read) else None
        shift = None if moved is None else _move(rest, moved, kernel)
        if target is not None and moved is not None and shift is not None:
            return Addition(target, moved, shift, num(first), moves=True, statement=addition)
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
                is_own = isinstance(own, Read) and copied(own, kernel) == name
                if is_own and name is not None and not reads_array(added, name):
                    return name, added
    return None, None


def _move(statements: tuple[Statement, ...], name: str, kernel: Kernel) -> Shift | None:
    """Match the statements that move an array by one element."""
    if len(statements) == 1:
        match _given(statements[0], kernel):
            case (target, Roll(operand, axis, amount)) if target == copied(operand, kernel) == name:
                if amount in (ONE, -ONE):
                    return Shift(axis, -1 if amount == ONE else 1, periodic=True)
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
                return Shift(axis, side, periodic=False)
    return None


def _indexed(loop: Loop, kernel: Kernel) -> Addition | None:
    """Match a loop that adds an array shifted by the loop's index."""
    if len(loop.body) != 1:
        return None
    (statement,), index = loop.body, sym(loop.variable)
    target, value = _added(statement, kernel)
    if target is not None:
        match value:
            case Roll(operand, axis, amount) if amount in (index, -index):
                name, shift = copied(operand, kernel), Shift(axis, -1, periodic=True)
                if amount != index:
                    shift = Shift(axis, 1, periodic=True)
                if name is not None:
                    return Addition(target, name, shift, loop.low, False, statement)
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
                shift = Shift(axis, side, periodic=False)
                return Addition(target, taken.array, shift, loop.low, False, statement)
    return None
