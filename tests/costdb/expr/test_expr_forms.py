"""Loops that differ in their numbers share code, and never each other's numbers."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from costdb.expr import Expr, ExprError, ceil_div, evaluate, free_symbols, log2, num, sym
from costdb.expr.exact import Rational, Value
from costdb.expr.forms import form_of
from costdb.expr.functions import Reduction, Sum
from costdb.expr.nodes import Add, Mul, Num, Pow
from costdb.expr.range_sums import forget_sums, sums_over
from tests.costdb.expr.expr_strategies import NAMES, expressions

RANGE = range(-4, 9)


def renumbered(expr: Expr, numbers: dict[int, int]) -> Expr:
    """Return an expression of the same structure with other magnitudes than 0 and 1."""

    def other(value: Rational) -> Rational:
        size = abs(value)
        return value if size not in numbers else numbers[int(size)] * (-1 if value < 0 else 1)

    if isinstance(expr, Num):
        return Num(other(expr.value))
    if isinstance(expr, Add):
        terms = tuple(renumbered(term, numbers) for term in expr.terms)
        return Add(terms, other(expr.constant))
    if isinstance(expr, Mul):
        factors = tuple(renumbered(factor, numbers) for factor in expr.factors)
        return Mul(factors, other(expr.coefficient))
    if isinstance(expr, Pow):
        return Pow(renumbered(expr.base, numbers), expr.exponent)
    if isinstance(expr, Reduction) or not expr.children:
        return expr
    inner = tuple(renumbered(child, numbers) for child in expr.children)
    names = type(expr).__match_args__
    if len(names) == len(inner):
        return type(expr)(*inner)
    return type(expr)(inner)  # type: ignore[call-arg]


def one_by_one(body: Expr, values: dict[str, Value]) -> Value:
    return sum(evaluate(body, {**values, "i": place}) for place in RANGE)


@settings(max_examples=300, deadline=None)
@given(
    expressions,
    expressions,
    st.lists(st.integers(2, 60), min_size=12, max_size=12, unique=True),
    st.fixed_dictionaries(dict.fromkeys(NAMES, st.integers(-5, 9))),
)
def test_loops_of_one_form_have_their_own_values(
    one: Expr, other: Expr, sizes: list[int], values: dict[str, Value]
) -> None:
    index = sym("i")
    try:
        body = one * index + ceil_div(log2(index * index + 2), 1) * other + (index + 3) * other
    except ExprError:
        assume(False)
    names = tuple(sorted(free_symbols(body) - {"i"}))
    part = Sum("i", num(RANGE[0]), num(RANGE[-1]), body)
    form = form_of((part,), names)
    event("has a form" if form else "stays by itself")
    if form is None:
        return
    numbers = dict(zip(form.numbers, sizes, strict=False))
    assume(len(numbers) == len(form.numbers))
    # made apart, or the code of the first would not be asked for
    changed = replace(part, body=renumbered(body, numbers))
    again = form_of((changed,), names)
    assert again is not None
    assert again.key == form.key
    assert again.numbers == tuple(numbers.values())
    forget_sums()
    for asked in (part, changed, part):
        try:
            expected = one_by_one(asked.body, values)
        except ExprError:
            continue
        assert sums_over((asked,), RANGE[0], RANGE[-1], values) == (expected,)


def test_what_is_left_out_of_code_is_part_of_a_form() -> None:
    i, n = sym("i"), sym("N")

    def key(*bodies: Expr) -> object:
        form = form_of([Sum("i", num(0), num(9), body) for body in bodies], ("N",))
        return form and form.key

    assert key(3 * i + 5) == key(4 * i + 7)
    assert key(3 * i + 5) != key(3 * i - 5)
    assert key(3 * i + 5) != key(i + 5)
    assert key(3 * i + 5) != key(3 * i)
    assert key(3 * i + 3) != key(4 * i + 7)
    assert key(3 * i - 3) != key(4 * i - 7)
    assert key(3 * i, 5 * i) != key(3 * i, 3 * i)
    assert key(i // 3 + (i // 3) * n) != key(i // 3 + (i // 5) * n)
    assert key(i**2) != key(i**3)
    assert key(i**n) is None
    assert key(i / 3) is None
    assert form_of([Sum("i", num(0), num(9), Sum("j", num(0), i, i * sym("j")))], ()) is None
