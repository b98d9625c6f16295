"""Loops that fill both halves of a symmetric matrix, a row and a column at a time.

``c[i:, i] = c[i, i:] = f(i)`` stores each element from the iteration of its lesser index. Where the
two indices of what is stored may be exchanged, a nest over the whole square stores the same.
"""

from __future__ import annotations

from dataclasses import replace

from advisor.ir.concrete import rebuilt
from advisor.ir.kernel import Kernel
from advisor.ir.statements import Loop, Store, unrolled
from advisor.ir.values import (
    Elementwise,
    Fill,
    Point,
    Range,
    Read,
    Reduction,
    Value,
    operands,
    reads,
)
from costdb.expr import ONE, ZERO, Expr, free_symbols, substitute, sym
from transforms.kit.kernels import type_of
from transforms.loops.opened import at_place, with_indices
from transforms.loops.raising import NotRaised, raised


def mirrored(loop: Loop, outer: tuple[Loop, ...], kernel: Kernel) -> tuple[Store, Kernel]:
    """Return one statement for a loop that fills both halves of a symmetric matrix.

    Raises
    ------
    NotRaised, ShapeConflict
        It does not.
    """
    body = unrolled(loop.body)
    if len(body) != 2 or not all(isinstance(one, Store) for one in body):
        raise NotRaised
    store, again = body
    assert isinstance(store, Store) and isinstance(again, Store)
    array, value = store.array, store.value
    match store.region:
        case (Range() as part, Point(at)) | (Point(at), Range() as part):
            low, high = part.low, part.high
        case _:
            raise NotRaised
    if again.array != array or again.region != tuple(reversed(store.region)):
        raise NotRaised
    if again.value not in (value, Read(array, store.region)):
        raise NotRaised
    index = sym(loop.variable)
    beyond = low - index
    until = loop.high + beyond
    if at != index or beyond not in (ZERO, ONE) or until != high or loop.step != 1:
        raise NotRaised
    if loop.variable in free_symbols(high) or array in {read.array for read in reads(value)}:
        raise NotRaised
    (inner,), known = with_indices("j", (loop.high,), kernel)
    across = sym(inner.variable)
    term = _scalar(at_place(value, 0, across - low, kernel))
    swapped = _exchanged(term, loop.variable, inner.variable)
    if _ordered(swapped) != _ordered(term):
        raise NotRaised
    own = Read(array, (Point(index), Point(across)))
    one = replace(store, region=own.region, value=term, in_place=False, held=())
    inner = replace(inner, low=loop.low, high=high, body=(one,))
    (made,) = raised(replace(loop, high=high, body=(inner,)), outer, known)
    assert isinstance(made, Store)
    if beyond == ONE:
        target = Read(array, made.region)
        diagonal = Fill("eye", type_of(target, kernel).extents, "bool")
        made = replace(made, value=Elementwise("where", (diagonal, target, made.value)))
    return made, known


def _scalar(value: Value) -> Value:
    """Return a value with the products of vectors in it as what a single element is made of."""
    match value:
        case Elementwise(_, parts):
            return replace(value, operands=tuple(map(_scalar, parts)))
        case Reduction(Elementwise("multiply", (Read(), Read())), 0, "add", fused=True):
            return replace(value, axis=None)
        case _:
            return value


def _exchanged(value: Value, one: str, other: str) -> Value:
    def swapped(expr: Expr) -> Expr:
        return substitute(expr, {one: sym(other), other: sym(one)})

    return rebuilt(value, swapped)


def _ordered(value: Value) -> object:
    """Return what values have in common that differ in the order of sums and products only."""
    if isinstance(value, Read) or not operands(value):
        return value
    parts = tuple(map(_ordered, operands(value)))
    if isinstance(value, Elementwise):
        if value.operation in ("add", "multiply"):
            parts = tuple(sorted(parts, key=repr))
        return value.operation, parts
    return replace(value, operand=Read("", ())) if isinstance(value, Reduction) else value, parts
