"""Windows that move with a loop, opened: a loop over the places in the window takes their place.

``y[i] = (x[i:i + K] * w).sum()`` is a sum over ``K`` statements ``y[i] += x[i + p] * w[p]``, whose
subscripts are single ones, so that the index becomes an axis like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count

from advisor.ir.concrete import symbols
from advisor.ir.kernel import Kernel
from advisor.ir.nests import index_symbol, nest_of
from advisor.ir.statements import Loop, Store
from advisor.ir.values import (
    Copy,
    Elementwise,
    Expand,
    MatMul,
    Point,
    Range,
    Read,
    Reduction,
    Scalar,
    Subscript,
    Transpose,
    Value,
    bounds_in,
    reads,
    step_of,
)
from costdb.expr import ONE, ZERO, Expr, num, sym
from costdb.expr.nodes import Num
from transforms.kit.kernels import around, type_of
from transforms.kit.rewrite import fresh_name
from transforms.loops.lift import Raised
from transforms.loops.masked import NotRaised
from transforms.loops.raising import raised

_WRITTEN_OUT = 4
"""Places in a window that are operands of one statement, and no loop."""


def opened(
    loop: Loop, outer: tuple[Loop, ...], kernel: Kernel
) -> tuple[tuple[Raised, ...], Kernel]:
    """Return statements for a nest that reduces windows, and the kernel with their indices.

    Raises
    ------
    NotRaised, ShapeConflict
        There are none.
    """
    nest = nest_of(loop)
    if nest is None or len(nest.body) != 1:
        raise NotRaised
    (store,) = nest.body
    if store.array in {read.array for read in reads(store.value)}:
        raise NotRaised
    operation, within, axes = _reduced(store.value, kernel)
    extents = type_of(within, kernel).extents
    moving = [axis for axis in sorted(axes) if _moves(within, axis, kernel, nest.variables)]
    if not moving:
        raise NotRaised
    rest = tuple(axis for axis in axes if axis not in moving)
    lengths = [extents[axis] for axis in moving]
    places = _written_out(lengths)
    if places:
        terms = [
            _term(within, dict(zip(moving, at, strict=True)), rest, store, kernel) for at in places
        ]
        value = terms[0]
        for term in terms[1:]:
            value = Elementwise(operation, (value, term))
        (inner,) = around(nest.loops, (replace(store, value=value),))
        assert isinstance(inner, Loop)
        return raised(inner, outer, kernel), kernel
    if operation != "add" or not all(isinstance(one, Point | Range) for one in store.region):
        raise NotRaised
    indices, kernel = with_indices("pqrstuvw", lengths, kernel)
    at = {axis: sym(one.variable) for axis, one in zip(moving, indices, strict=True)}
    term = _term(within, at, rest, store, kernel)
    own = Read(store.array, store.region)
    added = replace(store, value=Elementwise("add", (own, term)), in_place=True, held=())
    first = replace(store, value=Scalar("0", "integer literal"), in_place=False, held=())
    made: list[Raised] = []
    for one, more in ((first, ()), (added, indices)):
        (inner,) = around(nest.loops, (one,))
        assert isinstance(inner, Loop)
        statements = raised(inner, (*outer, *more), kernel)
        made += around(more, statements)  # type: ignore[arg-type]  # loops around what is raised
    return tuple(made), kernel


def _reduced(value: Value, kernel: Kernel) -> tuple[str, Value, tuple[int, ...]]:
    """Return by what operation, of what, and along which axes of it a value is a reduction."""
    axes: tuple[int, ...] = ()
    operation = ""
    while isinstance(value, Reduction) and value.operation in ("add", "maximum", "minimum"):
        if operation not in ("", value.operation):
            break
        operation = value.operation
        if value.axis is None:
            rank = len(type_of(value.operand, kernel).extents)
            return operation, value.operand, tuple(range(rank))
        own = value.axis
        axes = (own, *(axis + (axis >= own) for axis in axes))
        value = value.operand
    if not axes:
        raise NotRaised
    return operation, value, axes


def _moves(value: Value, axis: int, kernel: Kernel, indices: Sequence[str]) -> bool:
    """Return whether a part of a value is a window along an axis."""
    found = [
        read
        for read, own in _along(value, axis, kernel)
        if own is not None
        and any(set(indices) & symbols(bound) for bound in bounds_in(_part(read, own)))
    ]
    return bool(found)


def _along(value: Value, axis: int, kernel: Kernel) -> list[tuple[Read, int | None]]:
    """Return what is read along an axis, and which axis of it that is."""
    match value:
        case Read():
            return [(value, axis)]
        case Expand(operand, at):
            return [] if at == axis else _along(operand, axis - (axis > at), kernel)
        case Copy(operand):
            return _along(operand, axis, kernel)
        case Transpose(operand, axes):
            return _along(operand, axes[axis], kernel)
        case Elementwise(_, parts):
            ranks = [len(type_of(one, kernel).extents) for one in parts]
            return [
                found
                for one, own in zip(parts, ranks, strict=True)
                if axis - max(ranks) + own >= 0
                for found in _along(one, axis - max(ranks) + own, kernel)
            ]
        case Reduction(operand, along) if along is not None:
            return _along(operand, axis + (axis >= along), kernel)
        case Scalar():
            return []
    raise NotRaised


def _part(read: Read, axis: int) -> Subscript:
    kept = [part for part in read.region if not isinstance(part, Point)]
    return kept[axis]


def at_place(value: Value, axis: int, at: Expr, kernel: Kernel) -> Value:
    """Return a value at one place along an axis, which it then does not have.

    Raises
    ------
    NotRaised
        It has no form there.
    """
    match value:
        case Read(array, region):
            kept = [n for n, part in enumerate(region) if not isinstance(part, Point)]
            part = region[kept[axis]]
            assert not isinstance(part, Point)
            first = bounds_in(part)[0]
            chosen = Point(first + at * step_of(part))
            return Read(array, (*region[: kept[axis]], chosen, *region[kept[axis] + 1 :]))
        case Expand(operand, own):
            if own == axis:
                return operand
            return Expand(at_place(operand, axis - (axis > own), at, kernel), own - (own > axis))
        case Copy(operand, dtype):
            return Copy(at_place(operand, axis, at, kernel), dtype)
        case Scalar():
            return value
        case Reduction(operand, along) if along is not None:
            moved = axis + (axis >= along)
            inner = at_place(operand, moved, at, kernel)
            return replace(value, operand=inner, axis=along - (along > moved))
        case Elementwise(_, parts):
            shapes = [type_of(one, kernel).extents for one in parts]
            rank = max(map(len, shapes))
            made = []
            for one, shape in zip(parts, shapes, strict=True):
                own = axis - rank + len(shape)
                stretched = own >= 0 and shape[own] == ONE and not isinstance(one, Expand)
                if stretched and type_of(value, kernel).extents[axis] != ONE:
                    raise NotRaised
                made.append(one if own < 0 else at_place(one, own, at, kernel))
            return replace(value, operands=tuple(made))
    raise NotRaised


def _written_out(lengths: Sequence[Expr]) -> list[tuple[Expr, ...]]:
    """Return the places in a small window of a known size, in order; else none."""
    places: list[tuple[Expr, ...]] = [()]
    for one in lengths:
        if not isinstance(one, Num) or not 0 < one.value * len(places) <= _WRITTEN_OUT:
            return []
        places = [(*place, num(n)) for place in places for n in range(int(one.value))]
    return places


def _term(
    within: Value, at: Mapping[int, Expr], rest: tuple[int, ...], store: Store, kernel: Kernel
) -> Value:
    """Return what is reduced, at one place of the window, reduced along all other axes."""
    whole = store.value
    assert isinstance(whole, Reduction)
    for axis in sorted(at, reverse=True):
        within = at_place(within, axis, at[axis], kernel)
        rest = tuple(one - (one > axis) for one in rest)
    for axis in sorted(rest, reverse=True):
        within = _product(Reduction(within, axis, whole.operation, whole.dtype), kernel)
    return within


def _product(value: Reduction, kernel: Kernel) -> Value:
    """Return a sum of products as a product of matrices, where it is one."""
    match value:
        case Reduction(Elementwise("multiply", (Expand(one, 2), Expand(other, 0))), 1, "add"):
            ranks = [len(type_of(part, kernel).extents) for part in (one, other)]
            if ranks == [2, 2] and value.dtype.startswith(("float", "complex")):
                return MatMul(one, other)
    return value


def with_indices(
    wanted: Sequence[str], lengths: Sequence[Expr], kernel: Kernel
) -> tuple[tuple[Loop, ...], Kernel]:
    """Return loops of nothing yet, with names like those wanted, and the kernel with these."""
    context = kernel.context
    taken = {*context.identifiers, *kernel.arrays, *kernel.locals}
    texts = dict(context.scalar_texts)
    numbers = count(1 + len(texts))
    loops: list[Loop] = []
    for one, extent in zip(wanted, lengths, strict=False):
        name = fresh_name(one, taken)
        taken.add(name)
        variable = index_symbol(name, next(numbers))
        texts[variable] = name
        loops.append(Loop(variable, ZERO, extent, 1, (), kernel.span))
    return tuple(loops), replace(kernel, context=replace(context, scalar_texts=texts))
