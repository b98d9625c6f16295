"""Formulas whose index decides one inner value only have the sums and maxima of their terms."""

from __future__ import annotations

from functools import reduce
from operator import add

from hypothesis import event, given, settings
from hypothesis import strategies as st

from costdb.expr import Expr, ExprError, ceil_div, evaluate, log2, num, substitute, sym
from costdb.expr.exact import Value
from costdb.expr.functions import MaxOver, Sum, conditional, less, maximum
from costdb.expr.tallies import inner_of, tallied
from tests.costdb.expr.expr_strategies import NAMES, expressions

RANGE = range(-40, 260)
INDEX, N = sym("i"), sym("N")


def around(inner: Expr, parts: int) -> Expr:
    """Return a formula with at least so many parts around an inner value."""
    return reduce(add, [maximum(inner * inner, k) * (inner + k) for k in range(2, parts)])


def one_by_one(part: Sum | MaxOver, values: dict[str, Value]) -> Value:
    terms = [evaluate(part.body, {**values, "i": place}) for place in RANGE]
    return sum(terms) if isinstance(part, Sum) else max(terms)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(expressions, min_size=1, max_size=4),
    st.sampled_from(NAMES),
    st.sampled_from([Sum, MaxOver]),
    st.tuples(st.integers(1, 90), st.integers(-9, 9), st.integers(1, 3)),
    st.fixed_dictionaries(dict.fromkeys(NAMES, st.integers(-5, 9))),
)
def test_a_tally_is_what_the_terms_give(
    outer: list[Expr],
    name: str,
    kind: type[Sum | MaxOver],
    numbers: tuple[int, int, int],
    values: dict[str, Value],
) -> None:
    width, shift, scale = numbers
    inner = ceil_div(INDEX % (3 * width) + shift, width) * N / scale + num(1) / 2
    try:
        bodies = [substitute(one, {name: inner}) for one in outer]
        bodies[0] += around(inner, 9)
    except ExprError:
        return
    parts = tuple(kind("i", num(RANGE[0]), num(RANGE[-1]), body) for body in bodies)
    found = tallied(parts, RANGE[0], RANGE[-1], {**values, "N": 7})
    event("tallied" if found else "left to a loop")
    if found is not None:
        assert found == tuple(one_by_one(part, {**values, "N": 7}) for part in parts)


def test_the_largest_part_is_found_that_alone_has_the_index() -> None:
    inner = ceil_div(INDEX % 12, 4)

    def of(*bodies: Expr) -> Expr | None:
        return inner_of(tuple(Sum("i", num(0), N, body) for body in bodies))

    long = around(inner, 9)
    assert of(long) == inner
    assert of(long, conditional(less(3, inner), inner, N)) == inner
    assert of(long, N) == inner
    # the index beside it, too little around it, the index itself
    assert of(long + INDEX) is None
    assert of(long, INDEX // 2) is None
    assert of(inner * inner) is None
    assert of(around(INDEX, 9)) is None
    # not exact, or a loop of its own
    assert of(long * log2(inner + 3)) is None
    assert of(long * log2(N)) is None
    assert of(long + Sum("k", num(0), N, sym("k") ** N * inner)) is None


def test_many_values_and_inexact_numbers_are_left_to_a_loop() -> None:
    def of(body: Expr, n: Value) -> tuple[Value, ...] | None:
        return tallied((Sum("i", num(0), num(99), body),), 0, 99, {"N": n})

    few, many = around((INDEX // 40) * N, 9), around((INDEX // 2) * N, 9)
    assert of(few, 3) == (sum(evaluate(few, {"i": i, "N": 3}) for i in range(100)),)
    assert of(many, 3) is None
    assert of(few, 0.5) is None


def test_an_inner_value_that_a_choice_keeps_from_mattering_may_have_none() -> None:
    inner = ceil_div(INDEX // 40, N)
    body = conditional(less(0, N), around(inner, 9), 5)
    part = Sum("i", num(0), num(99), body)
    assert inner_of((part,)) == inner
    assert tallied((part,), 0, 99, {"N": 0}) is None
    assert evaluate(part, {"N": 0}) == 500
