"""Dependences against enumeration of all pairs of iterations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.ir.dependence import bounds_of, carried
from advisor.ir.statements import Loop, Store
from advisor.ir.values import Elementwise, Point, Range, Read, Scalar, Strided, Subscript, step_of
from advisor.source import Span
from costdb.expr import evaluate, num, sym

EXTENT = 7
SPAN = Span(1, 0, 1, 1)
V, W = "v.loop1", "w.loop2"


@st.composite
def subscripts(draw: st.DrawFn, variables: tuple[str, ...]) -> Subscript:
    index = num(draw(st.integers(-2, 3)))
    for variable in variables:
        index = index + draw(st.sampled_from([-1, 0, 0, 1, 1, 2])) * sym(variable)
    if draw(st.booleans()):
        return Point(index)
    if draw(st.booleans()):
        high = draw(st.sampled_from([num(EXTENT), index + draw(st.integers(1, 5))]))
        return Strided(index, high, draw(st.integers(2, 3)))
    if draw(st.booleans()):
        return Range(index, num(EXTENT))
    return Range(index, index + draw(st.integers(1, 3)))


@st.composite
def loops(draw: st.DrawFn, *, nested: bool) -> Loop:
    variables = (V, W) if nested else (V,)
    dimensions = draw(st.integers(1, 2))

    def region() -> tuple[Subscript, ...]:
        return tuple(draw(subscripts(variables)) for _ in range(dimensions))

    body: list[Store] = []
    for _ in range(draw(st.integers(1, 2))):
        names = st.sampled_from(["a", "a", "b"])
        value = Elementwise("add", (Read(draw(names), region()), Scalar("1", "integer literal")))
        body.append(Store(draw(names), region(), value, SPAN))
    low, high = num(draw(st.integers(0, 2))), num(draw(st.integers(3, 6)))
    inside: tuple[Store, ...] | tuple[Loop] = tuple(body)
    if nested:
        inner_low = draw(st.sampled_from([num(0), sym(V), sym(V) + 1]))
        inside = (Loop(W, inner_low, num(draw(st.integers(2, 5))), 1, tuple(body), SPAN),)
    return Loop(V, low, high, 1, inside, SPAN)


def touched(region: tuple[Subscript, ...], at: dict[str, int]) -> set[tuple[int, ...]]:
    parts = []
    for part in region:
        low, high = (int(evaluate(bound, at)) for bound in bounds_of(part))
        parts.append(range(low, high, step_of(part)))
    return set(product(*parts))


def iterations(loop: Loop) -> Iterator[dict[str, int]]:
    for v in range(int(evaluate(loop.low, {})), int(evaluate(loop.high, {}))):
        inner = loop.body[0]
        if isinstance(inner, Loop):
            for w in range(int(evaluate(inner.low, {V: v})), int(evaluate(inner.high, {V: v}))):
                yield {V: v, W: w}
        else:
            yield {V: v}


def meet(loop: Loop) -> bool:
    """Whether two iterations touch an element that one of them writes."""
    statements = loop.body[0].body if isinstance(loop.body[0], Loop) else loop.body
    accesses = []
    for at in iterations(loop):
        for statement in statements:
            assert isinstance(statement, Store)
            assert isinstance(statement.value, Elementwise)
            read = statement.value.operands[0]
            assert isinstance(read, Read)
            accesses.append((at[V], read.array, touched(read.region, at), False))
            accesses.append((at[V], statement.array, touched(statement.region, at), True))
    return any(
        v2 > v1 and one == other and (first_writes or then_writes) and bool(first & then)
        for v1, one, first, first_writes in accesses
        for v2, other, then, then_writes in accesses
    )


@settings(max_examples=100, deadline=None)
@given(st.booleans().flatmap(lambda nested: loops(nested=nested)))
def test_no_dependence_is_missed(loop: Loop) -> None:
    assert carried(loop) or not meet(loop)


def shifted(offset: int) -> Loop:
    """``for v in range(0, N): a[v, :] = a[v - offset, :] + 1``."""
    n = sym("N")
    whole = Range(num(0), n)
    value = Elementwise(
        "add", (Read("a", (Point(sym(V) - offset), whole)), Scalar("1", "integer literal"))
    )
    return Loop(V, num(0), n, 1, (Store("a", (Point(sym(V)), whole), value, SPAN),), SPAN)


@pytest.mark.parametrize("offset", range(-3, 4))
def test_constant_offsets_are_told_from_none(offset: int) -> None:
    assert carried(shifted(offset)) is (offset != 0)


@pytest.mark.parametrize(("other", "meets"), [(0, True), (1, False), (2, True), (3, False)])
def test_two_colours_do_not_meet(other: int, meets: bool) -> None:
    n, row = sym("N"), Point(sym(V) - 1)
    red, black = (Strided(num(start), n - 1, 2) for start in (0, other))
    value = Elementwise("add", (Read("a", (row, red)), Scalar("1", "integer literal")))
    loop = Loop(V, num(1), n, 1, (Store("a", (Point(sym(V)), black), value, SPAN),), SPAN)
    assert carried(loop) is meets


def test_columns_do_not_meet_other_columns() -> None:
    n = sym("N")
    whole = Range(num(0), n)
    value = Elementwise(
        "add", (Read("a", (whole, Point(sym(V) - 1))), Read("b", (whole, Point(sym(V)))))
    )
    loop = Loop(V, num(1), n, 1, (Store("a", (whole, Point(sym(V))), value, SPAN),), SPAN)
    assert carried(loop)
    apart = Elementwise(
        "add", (Read("a", (whole, Point(sym(V)))), Read("b", (whole, Point(sym(V)))))
    )
    assert not carried(replace(loop, body=(Store("a", (whole, Point(sym(V))), apart, SPAN),)))


def test_a_shrinking_region_depends_on_every_earlier_step() -> None:
    n, k = sym("N"), sym(V)
    rest = Range(k + 1, n)
    pivot_row, pivot_column = Read("a", (Point(k), rest)), Read("a", (rest, Point(k)))
    value = Elementwise("subtract", (Read("a", (rest, rest)), pivot_row, pivot_column))
    loop = Loop(V, num(0), n - 1, 1, (Store("a", (rest, rest), value, SPAN),), SPAN)
    assert carried(loop)
