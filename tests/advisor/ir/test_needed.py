"""What is not needed where branches are not taken may be left out: held to running the rest."""

from __future__ import annotations

import ast
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.ir.functions import file_of
from advisor.ir.needed import Needed

NAMES = ("a", "b", "c")
NAME = st.sampled_from(NAMES)
SIMPLE = (
    st.builds("{} = {} + 1".format, NAME, NAME)
    | st.builds("{} += {}".format, NAME, NAME)
    | st.builds("k[{}] = {}".format, st.integers(0, 1), NAME)
    | st.builds("{} = k[{}]".format, NAME, st.integers(0, 1))
    | st.builds("told.append({})".format, NAME)
    | st.builds("{}, {} = {}, {}".format, NAME, NAME, NAME, NAME)
)
LEAVING = st.sampled_from(["break", "continue"])


def indented(lines: list[str]) -> str:
    return textwrap.indent("\n".join(lines), "    ")


def blocks(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    body = st.lists(inner, min_size=1, max_size=4).map(indented)
    ending = st.tuples(body, LEAVING, NAME).map(
        lambda g: f"{g[0]}\n    if {g[2]} % 3 == 1:\n        {g[1]}\n    told.append(0)"
    )
    return (
        st.builds("if root:\n{}".format, body)
        | st.builds("if root:\n{}\nelse:\n{}".format, body, body)
        | st.builds("if {} % 2:\n{}\nelse:\n{}".format, NAME, body, body)
        | st.builds("for {} in range(3):\n{}".format, NAME, body | ending)
        | st.builds("try:\n{}\nfinally:\n{}".format, body, body)
        | st.builds("try:\n{}\n    return {}\nfinally:\n{}".format, body, NAME, body)
    )


BODY = st.lists(st.recursive(SIMPLE, blocks, max_leaves=12), min_size=1, max_size=8)


def not_at_root(node: ast.If) -> tuple[bool, bool]:
    elsewhere = isinstance(node.test, ast.Name) and node.test.id == "root"
    return not elsewhere, True


def told(tree: ast.AST) -> list[int]:
    names: dict[str, object] = {}
    exec(compile(ast.fix_missing_locations(tree), "drawn.py", "exec"), names)
    found: list[int] = []
    names["f"](False, found, 1, 2, 3)  # type: ignore[operator]
    return found


@given(BODY)
def test_the_rest_does_the_same_without_what_nobody_needs(body: list[str]) -> None:
    source = f"def f(root, told, a, b, c):\n    k = [a, b]\n{indented(body)}\n    return a\n"
    file = file_of(source)
    before = told(ast.parse(source))
    needed = Needed(file.names_of(file.scopes[1]), not_at_root)
    places = {(one.lineno, one.col_offset) for one in needed.kept}

    class Without(ast.NodeTransformer):
        def generic_visit(self, node: ast.AST) -> ast.AST:
            simple = isinstance(node, ast.Assign | ast.AugAssign | ast.Expr)
            if simple and (node.lineno, node.col_offset) not in places:
                return ast.copy_location(ast.Pass(), node)
            return super().generic_visit(node)

    assert told(Without().visit(ast.parse(source))) == before


@pytest.mark.parametrize("every", [False, True])
def test_what_runs_is_used_where_all_that_runs_counts(every: bool) -> None:
    file = file_of("def f(x):\n    y = x + 1\n    z = y * 2\n    return x\n")
    function = file.functions["f"]
    needed = Needed(file.names_of(function), lambda _: (True, True), every=every)
    assert ("y" in needed.behind[function.body[0]]) is every
