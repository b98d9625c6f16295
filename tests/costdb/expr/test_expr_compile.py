import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costdb.expr import (
    Expr,
    ExprError,
    compile_scalar,
    compile_vector,
    evaluate,
    maximum,
    num,
    parse,
    sym,
)
from costdb.expr.evaluate import COMPILED_FROM
from costdb.expr.functions import MaxOver, Sum
from costdb.expr.tree import MAX_DEPTH
from tests.costdb.expr.expr_strategies import NAMES, bindings, expressions

POINTS = [(n, p, k) for n in (-5, 0, 1, 8) for p in (-2, 1, 3) for k in (0, 4)]


@given(expressions, bindings)
@settings(max_examples=250, deadline=None)
def test_scalar_code_equals_evaluation(expr: Expr, values: dict[str, int]) -> None:
    formula = compile_scalar(expr, NAMES)
    try:
        expected = evaluate(expr, values)
    except ExprError as error:
        with pytest.raises(ExprError, match=str(error)[:20].replace("(", ".")):
            formula(*(values[name] for name in NAMES))
        return
    found = formula(*(values[name] for name in NAMES))
    assert found == pytest.approx(float(expected), rel=1e-12, abs=1e-12)


@given(expressions)
@settings(max_examples=100, deadline=None)
def test_vector_code_equals_evaluation(expr: Expr) -> None:
    points, expected = [], []
    for point in POINTS:
        try:
            expected.append(float(evaluate(expr, dict(zip(NAMES, point, strict=True)))))
            points.append(point)
        except ExprError:
            continue
    if not points:
        return
    formula = compile_vector(expr, NAMES)
    found = formula(*(np.array(column) for column in zip(*points, strict=True)))
    assert found == pytest.approx(np.array(expected), rel=1e-12, abs=1e-12)


@given(st.integers(1, 10**15), st.integers(1, 10**6), st.sampled_from((-1, 0, 1)))
def test_block_boundaries_are_exact(size: int, ranks: int, beside: int) -> None:
    block = compile_scalar(parse("ceil(N/P) + N // P + N % P"), ("N", "P"))
    blocks = compile_vector(parse("ceil(N/P) + N // P + N % P"), ("N", "P"))
    total = size * ranks + beside
    expected = -(-total // ranks) + total // ranks + total % ranks
    assert block(total, ranks) == expected
    if total < 2**60:
        assert blocks([total], ranks)[0] == float(expected)


def test_owners_of_fractions_of_a_block_are_exact() -> None:
    # 0.1*N reaches a whole number exactly where floats fall short of it.
    tenth = compile_scalar(parse("floor(N*0.1*3/0.3)"), ("N",))
    assert [tenth(n) for n in range(50)] == list(range(50))
    equal = parse("N*0.1 + N*0.2 == 0.3")
    assert compile_scalar(equal, ("N",))(1) == 1
    assert list(compile_vector(equal, ("N",))([0, 1, 2])) == [0, 1, 0]


def test_machine_repair() -> None:
    formula = parse("max(N*10.1, P*N*0.1)")
    assert compile_scalar(formula, ("P", "N"))(1000, 1_000_000) == pytest.approx(1e8, rel=1e-15)
    jobs = np.arange(1, 40_001)
    found = compile_vector(formula, ("P", "N"))(150, jobs)
    assert found.shape == jobs.shape
    np.testing.assert_allclose(found, 15.0 * jobs, rtol=1e-14)


def test_arrays_are_broadcast() -> None:
    formula = compile_vector(sym("N") + sym("P"), ("N", "P"))
    assert formula([[1], [2]], [10, 20, 30]).tolist() == [[11, 21, 31], [12, 22, 32]]
    assert formula(1, 2).shape == ()
    assert formula([], []).shape == (0,)
    assert compile_vector(num(3), ())().tolist() == 3.0


def test_whole_numbers_too_large_for_64_bits_do_not_wrap() -> None:
    formula = compile_vector(parse("(N*N) // P + N*N*N"), ("N", "P"))
    large = 10**15
    assert formula([large], [7])[0] == pytest.approx(large * large // 7 + large**3, rel=1e-15)


def test_only_the_chosen_side_is_worked_out() -> None:
    safe = parse("if(P == 0, 0, N // P + N/P)")
    assert compile_scalar(safe, ("N", "P"))(4, 0) == 0
    assert compile_vector(safe, ("N", "P"))([4, 4], [0, 2]).tolist() == [0, 4]


def test_names_of_symbols_never_become_names_of_code() -> None:
    names = ("max", "x1", "message.alpha", "fraction", "lambda", "__builtins__")
    total = sum((sym(name) for name in names), num(0))
    formula = compile_scalar(maximum(total / 3, parse("max(1, 2)*x1")), names)
    assert formula(1, 2, 3, 4, 5, 6) == pytest.approx(7)


def test_the_index_of_a_loop_may_hide_an_argument() -> None:
    nest = parse("sum(N = 1, N, log2(N)) + log2(N)")
    found = compile_scalar(nest, ("N",))(4)
    assert found == pytest.approx(float(evaluate(nest, {"N": 4})))


def test_the_deepest_expression_compiles() -> None:
    expr = sym("N")
    for level in range((MAX_DEPTH - 1) // 2):
        expr = maximum(expr * sym("P"), level)
    assert compile_scalar(expr, ("N", "P"))(1, 1) == (MAX_DEPTH - 1) // 2 - 1


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: compile_scalar(sym("N"), ()), "'N' has no value"),
        (lambda: compile_vector(sym("N"), ("P",)), "'N' has no value"),
        (lambda: compile_scalar(sym("N"), ("N", "N")), "given twice"),
        (lambda: compile_scalar(parse("1/N"), ("N",))(0), "division by zero"),
        (lambda: compile_vector(parse("1/N"), ("N",))([1, 0]), "division by zero"),
        (lambda: compile_vector(parse("3 // N"), ("N",))([1, 0]), "division by zero"),
        (lambda: compile_vector(sym("N"), ("N",))([1.0, np.nan]), "not all finite"),
        (lambda: compile_vector(sym("N"), ("N",))(["a"]), "not numbers"),
        (lambda: compile_vector(sym("N"), ("N",))(), "takes 1 values"),
        (lambda: compile_vector(sym("N") ** 2, ("N",))([1e200]), "too large"),
        (lambda: compile_scalar(parse("sum(i = 1, N, log2(i))"), ("N",))(10**12), "steps"),
    ],
)
def test_what_cannot_be_is_refused(use, message: str) -> None:
    with pytest.raises(ExprError, match=message):
        use()


@given(expressions, bindings)
@settings(max_examples=100, deadline=None)
def test_long_enumerations_are_the_sums_of_their_terms(expr: Expr, values: dict[str, int]) -> None:
    """They are compiled where all is whole; that must not show."""
    name = NAMES[0]
    rest = {other: value for other, value in values.items() if other != name}
    last = COMPILED_FROM + 5
    try:
        terms = [evaluate(expr, {**rest, name: index}) for index in range(last + 1)]
        expected = sum(terms[1:], terms[0])
    except ExprError:
        return
    for reduction, wanted in ((Sum, expected), (MaxOver, max(terms))):
        found = evaluate(reduction(name, num(0), num(last), expr), rest)
        if isinstance(wanted, float):
            assert found == pytest.approx(wanted)
        else:
            assert found == wanted
