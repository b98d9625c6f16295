import pytest
from hypothesis import given, settings

from costdb.expr import Expr, ExprError, evaluate, parse, to_text
from costdb.expr.parse import MAX_EXPRESSION, MAX_NESTING
from tests.costdb.expr.expr_strategies import expressions


@given(expressions)
@settings(max_examples=100, deadline=None)
def test_text_reads_back_as_the_same_expression(expr: Expr) -> None:
    assert parse(to_text(expr)) == expr


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2*3", 7),
        ("2**3**2", 512),
        ("-2**2", -4),
        ("7 // 2 - 7 div -2", 7),
        ("-7 % 3 + (-7 mod 3)", 4),
        ("1/3 + 0.1", 13 / 30),
        ("2.5e-3*1e3", 2.5),
        ("ceil(7/2)*8", 32),
        ("floor(-7/2)", -4),
        ("max(1, 2, 3) + min(4, 5)", 7),
        ("gcd(12, 18) + log2(8)", 9),
        ("1 < 2 and not 2 <= 1 or 1/1 == 2", 1),
        ("(3 != 3) + (3 >= 3) + (2 > 3)", 1),
        ("if(1 == 2, 5, 6)", 6),
        ("sum(i = 1, 4, i**2)", 30),
        ("sum(i = 1, 4) i*2 + 100", 120),
        ("max(i = 0, 3) (3 - i)*i", 2),
        ("sum(i = 1, 3) sum(j = 1, i) j*i", 25),
        ("sum(i = 1, 0) 5", 0),
        ("10 - 2 - 3", 5),
        ("100/5/2*3", 30),
        ("7 - 3 // 2 * 2 % 5", 5),
        ("  42 ", 42),
        ("1 +\n 2", 3),
        ("0 and 1/0", None),
    ],
)
def test_values_of_text(text: str, value: object) -> None:
    if value is None:
        with pytest.raises(ExprError, match="division by zero"):
            parse(text)
    else:
        assert evaluate(parse(text), {}) == value


@pytest.mark.parametrize(
    "text",
    [
        "max(N*10.1, P*N*0.1)",
        "ceil(N/P)*8",
        "N % P",
        "N // (P*2)",
        "x/3 - y**2/(P*Q)",
        "a.b + 1e-9",
    ],
)
def test_text_stays_readable(text: str) -> None:
    assert to_text(parse(text)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("__import__('os')", "column 12: did not expect"),
        ("(" * 100_000 + "1" + ")" * 100_000, f"column {MAX_NESTING + 1}: brackets nest"),
        ("-" * (MAX_EXPRESSION + 1), "longer than"),
        ("9**9**9**9", "column 5: a power needs"),
        ("nan", "column 1: 'nan' is not a finite number"),
        ("1 + Inf", "column 5: 'Inf' is not a finite number"),
        ("1e999", "column 1: the number 1e999"),
        ("9" * 5000, "column 1: the number 999"),
        ("1e-99999999999", "column 1: the number 1e-99"),
        ("", "column 1: an expression is missing"),
        ("   ", "an expression is missing"),
        ("1 +", "column 4: the expression ends too early"),
        ("1 + * 2", "column 5: did not expect '\\*'"),
        ("(1", "column 3: the expression ends too early"),
        ("1)", "column 2: did not expect '\\)'"),
        ("x^2", "column 2: did not expect '\\^'"),
        ("a\n + $", "line 2, column 4: did not expect"),
        ("1 2", "column 3: did not expect '2'"),
        ("0x10", "column 2: did not expect 'x10'"),
        ("f(2)", "column 1: there is no function 'f'"),
        ("prod(i = 1, 2, 3)", "column 1: there is no reduction 'prod'"),
        ("gcd(1)", "column 1: gcd takes 2"),
        ("1/(2 - 2)", "column 2: division by zero"),
        ("N.__class__.x[0]", "did not expect '\\['"),
        ("lambda: 0", "column 7: did not expect ':'"),
        ("1 < 2 < 3", "column 7: did not expect '<'"),
        ("sum(mod = 1, 2, 3)", "column 1: 'mod' is an operator"),
        ("€", "column 1: '€' is not a name"),
        ("a//" * 1000 + "a", "levels deep"),
        ("a*" * 9000 + "a", "exponent"),
        ("9**2000*" * 2000 + "1", "bits"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(ExprError, match=message) as caught:
        parse(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200
