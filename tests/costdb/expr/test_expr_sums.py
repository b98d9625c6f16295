"""Closed forms against enumeration, empty ranges and block boundaries included."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costdb.expr import (
    Expr,
    ExprError,
    ceil_div,
    conditional,
    equal,
    evaluate,
    free_symbols,
    less,
    maximum,
    maximum_over,
    minimum,
    num,
    parse,
    summation,
    sym,
    to_text,
)
from costdb.expr.functions import Reduction
from costdb.expr.polynomials import simplify
from costdb.pricing import added_over
from tests.costdb.expr.expr_strategies import bindings, expressions


def loops(expr: Expr) -> int:
    return isinstance(expr, Reduction) + sum(map(loops, expr.children))


def agrees(expr: Expr, values: dict[str, int], *candidates: Expr) -> None:
    try:
        expected = evaluate(expr, values)
    except ExprError:
        return
    for candidate in candidates:
        found = evaluate(candidate, values)
        assert found == pytest.approx(expected, rel=1e-12), (to_text(expr), values)


CLOSED = [
    "sum(i = 1, N) 10.1",
    "sum(i = lo, hi) i**3 - 2*i + N",
    "sum(i = 1, N) sum(j = i, N) 1",
    "sum(i = 1, N) sum(j = 1, i - 1) i*j",
    "sum(i = 1, N) sum(j = 1, i) sum(k = j, i) 1",
    "sum(i = 1, N) i*(10 // N)",
    "sum(i = lo, hi) if(N < 2, i, 2*i)",
    "max(i = lo, hi) 3 - 2*i",
]
LOOPS = [
    "max(i = lo, hi) ceil(i/4) + N",
    "max(i = lo, hi) max(N - i, i // 2)",
    "max(i = lo, hi) i**2",
    "sum(i = 1, N) sum(j = i + 2, lo) (j - i)",
    "sum(i = 0, N - 1) max(0, i - lo)",
    "sum(i = lo, hi) if(i < N, i, N - i)",
    "sum(i = lo, hi) min(i, N)*max(i, 2)",
    "sum(i = lo, hi) (2*i + 1) // 3",
    "sum(i = lo, hi) (i == N)*i",
    "sum(i = lo, hi) if(i < 2, i/N, log2(N)*0 + 1)",
    "sum(i = 0, hi) sum(j = 0, i) (i - j == N)",
    "max(i = lo, hi) i*N",
    "sum(i = 0, N - 1) (i % P == p)",
    "sum(i = lo, hi) i*(i % P)",
    "sum(i = lo, hi) (hi - i) // P",
]


@pytest.mark.parametrize("text", CLOSED + LOOPS)
def test_closed_forms_equal_enumeration(text: str) -> None:
    nest = parse(text)
    plain = simplify(nest)
    sizes = [name for name in ("N", "P") if name in free_symbols(nest)]
    sized = simplify(nest, positive=sizes)
    assert loops(plain) == 0 or text in LOOPS
    names = sorted(free_symbols(nest))
    span = (-4, -1, 0, 1, 2, 3, 4, 7) if len(names) < 4 else (-3, 0, 1, 2, 5)
    for point in itertools.product(span, repeat=len(names)):
        values = dict(zip(names, point, strict=True))
        candidates = [plain]
        if all(values[size] >= 1 for size in sizes):
            candidates.append(sized)
        agrees(nest, values, *candidates)


def test_what_has_no_closed_form_is_enumerated_and_the_rest_closed() -> None:
    nest = parse("sum(i = 1, N) log2(i)*x + i")
    assert simplify(nest, positive={"N"}) == parse("x*sum(i = 1, N, log2(i)) + i")
    mixed = simplify(parse("sum(i = 1, N) (log2(i)*x + i)"), positive={"N"})
    assert mixed == parse("x*sum(i = 1, N, log2(i)) + N**2/2 + N/2")


def test_an_index_may_reuse_a_name_that_something_is_known_of() -> None:
    nest = parse("sum(N = lo, hi) max(N, 0) + N")
    formula = simplify(nest, positive={"N"})
    for low, high in ((-3, 2), (1, 4), (2, 1)):
        agrees(nest, {"lo": low, "hi": high, "N": 5}, formula)


@given(expressions, bindings)
@settings(max_examples=60, deadline=None)
def test_simplifying_keeps_the_value(expr: Expr, values: dict[str, int]) -> None:
    positive = {name for name, value in values.items() if value >= 1}
    agrees(expr, values, simplify(expr), simplify(expr, positive=positive))


OUTER, INNER = sym("i"), sym("j")
SIZES = ("N", "P", "b")
offsets = st.integers(-3, 3)
sizes = st.sampled_from(SIZES).map(sym)


@st.composite
def bounds(draw: st.DrawFn, outer: tuple[Expr, ...]) -> tuple[Expr, Expr]:
    ends = st.one_of(offsets.map(num), sizes, *(st.just(index) for index in outer))
    blocks = st.tuples(sizes, st.integers(1, 4)).map(lambda nb: ceil_div(*nb))
    low, high = draw(ends), draw(st.one_of(ends, blocks))
    return low + draw(offsets), high + draw(offsets)


@st.composite
def bodies(draw: st.DrawFn, index: Expr, outer: tuple[Expr, ...]) -> Expr:
    line = draw(st.sampled_from((1, -1, 2))) * index + draw(
        st.one_of(offsets.map(num), sizes, *(st.just(other) for other in outer))
    )
    period = draw(st.one_of(st.integers(1, 4).map(num), st.just(sym("P"))))
    other = draw(st.one_of(offsets.map(num), sizes))
    return draw(
        st.sampled_from(
            (
                line * index,
                line // period,
                line % period,
                ceil_div(line, period),
                equal(line % period, other),
                equal(line // period, other) * index,
                maximum(line, other),
                minimum(line, other) * line,
                conditional(less(line, other), index, other),
                equal(line, other),
                num(7) / 2,
            )
        )
    )


@st.composite
def nests(draw: st.DrawFn) -> Expr:
    reduce = st.sampled_from((summation, summation, maximum_over))
    outer_low, outer_high = draw(bounds(()))
    inner_low, inner_high = draw(bounds((OUTER,)))
    inner = draw(reduce)("j", inner_low, inner_high, draw(bodies(INNER, (OUTER,))))
    body = draw(st.sampled_from((inner, inner + draw(bodies(OUTER, ())), inner * OUTER)))
    return draw(reduce)("i", outer_low, outer_high, body)


@given(nests(), st.fixed_dictionaries(dict.fromkeys(SIZES, st.integers(-2, 9))))
@settings(max_examples=60, deadline=None)
def test_random_nests_equal_enumeration(nest: Expr, values: dict[str, int]) -> None:
    positive = {name for name, value in values.items() if value >= 1}
    agrees(nest, values, simplify(nest), simplify(nest, positive=positive))


# Sums over triangles, turned round so that one sum is left, give what enumeration gives.


TERMS = ("i % 3", "log2(i + 40)", "(i // 4)*c", "if(i < 3, i, N)")
ENDS = st.integers(-3, 4)


def deepest(expr: Expr) -> int:
    inner = max(map(deepest, expr.children), default=0)
    return inner + isinstance(expr, Reduction)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(TERMS),
    st.sampled_from(["k*2", "k % 2 + c", "0"]),
    st.tuples(ENDS, ENDS, ENDS, ENDS),
    st.booleans(),
)
def test_turned_sums_equal_enumerated_ones(
    inside: str, beside: str, ends: tuple[int, int, int, int], upper: bool
) -> None:
    low, high, lag, end = ends
    first, last = (f"k + {lag}", f"N + {end}") if upper else (f"{end}", f"k + {lag}")
    inner = summation("i", parse(first), parse(last), parse(inside))
    body = 3 * inner + parse(beside)
    found = added_over("k", parse(f"{low}"), parse(f"N + {high}"), body)
    assert deepest(found) <= 1, to_text(found)
    whole = summation("k", parse(f"{low}"), parse(f"N + {high}"), body)
    for size in range(6):
        values = {"N": size, "c": 5}
        assert evaluate(found, values) == pytest.approx(evaluate(whole, values), rel=1e-12)


def test_what_depends_on_both_indices_stays_as_it_is() -> None:
    inner = summation("i", sym("k") + 1, sym("N"), parse("(i*k) % 7"))
    found = added_over("k", parse("0"), parse("N - 1"), inner)
    assert deepest(found) == 2
    assert evaluate(found, {"N": 9}) == sum(i * k % 7 for k in range(9) for i in range(k + 1, 10))
