"""Names in any alphabet: Python has them, so a kernel may."""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from libcst.metadata import MetadataWrapper, PositionProvider

from advisor.engine import Options, check_source
from advisor.frontend.trees import tree_of
from advisor.source import Span
from costdb.expr import ExprError, parse, sym, to_text
from costdb.expr.functions import name_like

ROOT = Path(__file__).parents[3]
PROGRAMS = sorted((ROOT / "examples").glob("*.py")) + sorted((ROOT / "examples/mpi").glob("*.py"))


def own_names(tree: ast.AST) -> set[str]:
    """Return the names that a file binds itself and that nothing else speaks of."""
    bound, others = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.Attribute):
            others.add(node.attr)
        elif isinstance(node, ast.keyword) and node.arg:
            others.add(node.arg)
        elif isinstance(node, ast.alias):
            others.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            others.update(node.value.replace("(", " ").split())
    return bound - others


def renamed(source: str) -> str:
    """Return a program with its own names in other letters, one of which carries a mark."""
    names = own_names(ast.parse(source))
    tokens = [
        token._replace(string=f"ж\u0301{token.string[1:]}λ{token.string[0]}")
        if token.type == tokenize.NAME and token.string in names
        else token
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
    ]
    return tokenize.untokenize((token.type, token.string) for token in tokens)


@pytest.mark.parametrize("program", PROGRAMS[::2], ids=lambda path: path.stem)
def test_a_program_in_other_letters_is_the_same_program(program: Path) -> None:
    # both are put together from their tokens, which moves columns alike
    source = program.read_text()
    plain = tokenize.untokenize(
        token[:2] for token in tokenize.generate_tokens(io.StringIO(source).readline)
    )
    assert renamed(source) != plain
    options = Options("t3e", {}, (), (), None, details=False, plans=False)
    before = check_source("k.py", plain, options)
    after = check_source("k.py", renamed(source), options)
    assert [(f.code, f.span.start_line, f.speedup) for f in after.findings] == [
        (f.code, f.span.start_line, f.speedup) for f in before.findings
    ]
    assert len(after.remarks) == len(before.remarks)


def test_places_are_those_that_libcst_tells() -> None:
    for path in PROGRAMS[::4]:
        tree = tree_of(str(path), path.read_text())
        wrapper = MetadataWrapper(tree.module, unsafe_skip_copy=True)
        for node, at in wrapper.resolve(PositionProvider).items():
            place = at.start.line, at.start.column, at.end.line, at.end.column
            assert tree.span_of(node) == Span(*place)


NAMES = st.text(min_size=1, max_size=5) | st.from_regex(r"[^\W\d]\w{,4}", fullmatch=True)


@given(NAMES)
@example("हिंदी")
@example("e\u0301")
@example("or\u0301")
@example("A·")
@example("OR")
@example("NaN")
def test_what_python_calls_a_name_is_one(text: str) -> None:
    is_word = text in {"div", "mod", "and", "or", "not"} or text.lower() in {"nan", "inf"}
    if text.isidentifier() and not is_word:
        assert parse(f"2 * {text} + 1") == 2 * sym(text) + 1
        assert parse(to_text(sym(text))) == sym(text)
    else:
        with pytest.raises(ExprError):
            sym(text)


@given(st.text(max_size=8))
def test_any_text_becomes_a_name(text: str) -> None:
    for part in name_like(text).split("."):
        assert f"_{part}".isidentifier()


@pytest.mark.parametrize("word", ["mod", "div", "inf", "nan", "Infinity", "x" * 300])
def test_names_that_mean_something_to_us_are_unknown_values(word: str) -> None:
    source = (ROOT / "examples/box_sum.py").read_text()
    options = Options("t3e", {}, (), (), None)
    as_parameter = source.replace("b: int", f"{word}: int").replace("(b - 1)", f"({word} - 1)")
    as_constant = f"{word} = 4\n" + source.replace("(b - 1)", f"({word} - 1)")
    for text in (as_parameter.replace("b=3", f"{word}=3"), as_parameter, as_constant):
        assert text != source
        found = check_source("k.py", text, options)
        assert any("is not known" in remark.message for remark in found.remarks)
