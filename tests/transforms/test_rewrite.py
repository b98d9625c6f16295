"""Parentheses that hold nothing but what gets a name go with it, and calls keep theirs."""

import ast

import pytest

from advisor.frontend.kernels import read_kernels
from advisor.source import Edit, apply_edits
from transforms.kit.rewrite import parenthesised, span_of

HEAD = "# advise: kernel\n# advise: x: f8[N]\ndef f(x, g):\n"


@pytest.mark.parametrize(
    ("line", "then"),
    [
        ("return (x + 1).sum()", "return one.sum()"),
        ("return 2 * (x + 1)", "return 2 * one"),
        ("return(x + 1)", "return(one)"),
        ("return g(x + 1)", "return g(one)"),
        ("return g (x + 1)", "return g (one)"),
        ("return g((x + 1))", "return g(one)"),
        ("return [g][0](x + 1)", "return [g][0](one)"),
        ("return (x + 1, 2)", "return (one, 2)"),
        ("return x + 1", "return one"),
        ("return -(x + 1)", "return -one"),
    ],
)
def test_parentheses_of_an_expression_go_and_those_of_calls_stay(line: str, then: str) -> None:
    source = f"{HEAD}    {line}\n"
    (kernel,) = read_kernels("a.py", source)
    sums = (one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.BinOp))
    node = next(one for one in sums if ast.unparse(one) == "x + 1")
    place = parenthesised(span_of(node, kernel.context.lines), kernel.context)
    made = apply_edits(source, (Edit(place, "one"),))
    assert made == f"{HEAD}    {then}\n"
    ast.parse(made)
