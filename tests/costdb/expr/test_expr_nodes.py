import math
import pickle
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costdb.expr import (
    Expr,
    ExprError,
    ceil,
    ceil_div,
    conditional,
    equal,
    evaluate,
    floor,
    floor_div,
    free_symbols,
    gcd,
    less,
    less_equal,
    log2,
    maximum,
    num,
    substitute,
    summation,
    sym,
    to_text,
)
from costdb.expr.nodes import MAX_DEPTH, MAX_SIZE, Num
from costdb.expr.polynomials import simplify

N, P, X = sym("N"), sym("P"), sym("x")

rationals = st.fractions(min_value=-50, max_value=50, max_denominator=12)
nonzero = rationals.filter(bool)


def known(expr: Expr) -> int | Fraction:
    assert isinstance(expr, Num)
    return expr.value


@given(a=rationals, b=nonzero)
def test_divisions_of_constants_are_pythons(a: Fraction, b: Fraction) -> None:
    assert known(floor_div(a, b)) == a // b
    assert known(ceil_div(a, b)) == math.ceil(a / b)
    assert known(num(a) % b) == a % b
    assert known(floor(num(a) / b)) == math.floor(a / b)
    assert known(ceil(num(a) / b)) == math.ceil(a / b)


def test_equality_ignores_order_and_nothing_else() -> None:
    assert N + P * X == X * P + N
    assert hash(maximum(N, P)) == hash(maximum(P, N))
    assert N - P != P - N
    assert less(N, P) != less(P, N)
    assert N != "N"


def test_logarithms_of_powers_of_two_are_whole() -> None:
    assert log2(1024) == num(10)
    assert log2(Fraction(1, 8)) == num(-3)
    assert evaluate(log2(N), {"N": 2**70}) == 70
    assert isinstance(evaluate(log2(N), {"N": 2**70}), int)
    assert evaluate(log2(N), {"N": 3}) == pytest.approx(math.log2(3))
    with pytest.raises(ExprError, match="not positive"):
        log2(0)


def test_comparisons_and_choices() -> None:
    assert less(N, N + 1) == num(1)
    assert equal(N, N + 1) == num(0)
    choice = conditional(less_equal(N, P), N / P, 7)
    assert evaluate(choice, {"N": 1, "P": 4}) == 0.25
    assert evaluate(conditional(equal(P, 0), 0, N / P), {"N": 1, "P": 0}) == 0
    assert evaluate(gcd(N, P), {"N": -12, "P": 18}) == 6
    assert gcd(-12, 18) == num(6)
    with pytest.raises(ExprError, match="not a whole number"):
        gcd(Fraction(1, 2), 1)


def test_substitution_does_not_capture() -> None:
    nest = summation("i", 1, N, sym("i") * P)
    replaced = substitute(nest, {"P": sym("i"), "N": 3})
    assert free_symbols(replaced) == {"i"}
    assert evaluate(replaced, {"i": 10}) == 60
    assert substitute(nest, {"i": 99}) == nest
    assert substitute(N + P, {"N": P, "P": N}) == N + P


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: num(math.nan), "not a finite number"),
        (lambda: num(math.inf), "not a finite number"),
        (lambda: N / 0, "division by zero"),
        (lambda: N // 0, "division by zero"),
        (lambda: N % 0, "division by zero"),
        (lambda: num(9) ** num(9) ** num(9), "bits"),
        (lambda: N**100_000, "exponent"),
        (lambda: num(2) ** 8000 * num(2) ** 8000, "bits"),
        (lambda: sym("a b"), "not a name"),
        (lambda: sym("nan"), "not a finite number"),
        (lambda: sym("mod"), "operator"),
        (lambda: bool(N), "truth value"),
        (lambda: evaluate(N, {}), "'N' has no value"),
        (lambda: evaluate(N / P, {"N": 1, "P": 0}), "division by zero"),
        (lambda: evaluate(N, {"N": math.inf}), "not a finite number"),
        (lambda: evaluate(N * P, {"N": 1e308, "P": 1e308}), "not a finite number"),
        (lambda: evaluate(N**P, {"N": 9, "P": 9**9}), "bits"),
        (lambda: evaluate(N ** num(0.5), {"N": -1}), "not a real number"),
        (lambda: evaluate(summation("i", 1, N, 1), {"N": 0.5}), "not a whole number"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(build, message: str) -> None:
    with pytest.raises(ExprError, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)


def test_depth_is_bounded_and_bearable() -> None:
    def nested(levels: int) -> Expr:
        expr = N
        for level in range(levels):
            expr = maximum(expr * P, level)
        return expr

    deep = nested((MAX_DEPTH - 1) // 2)
    assert evaluate(deep, {"N": 1, "P": 1}) == (MAX_DEPTH - 1) // 2 - 1
    assert substitute(deep, {"N": P}) != deep
    assert simplify(deep, positive=("N", "P")).depth <= MAX_DEPTH
    assert pickle.loads(pickle.dumps(deep)) == deep
    assert to_text(deep).count("max(") == (MAX_DEPTH - 1) // 2
    with pytest.raises(ExprError, match="levels deep"):
        nested(MAX_DEPTH)


def test_a_shared_part_cannot_stand_for_an_astronomic_whole() -> None:
    expr = N + 1
    with pytest.raises(ExprError, match=f"{MAX_SIZE} parts"):
        for _ in range(MAX_DEPTH):
            expr = less(expr, expr * P)


def test_a_branch_that_is_not_taken_need_not_have_a_value() -> None:
    guarded = conditional(less(0, sym("n")), sym("m") % sym("n"), 7)
    assert substitute(guarded, {"n": 0}) == num(7)
    with pytest.raises(ExprError, match="division by zero"):
        substitute(sym("m") % sym("n"), {"n": 0})
