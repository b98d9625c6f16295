"""Statements of a text that is cut into pieces are those of the whole text."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest

from advisor.frontend.syntax import trees
from advisor.frontend.syntax.trees import TopLevel, top_level, tree_of

EXAMPLES = Path(__file__).parents[3] / "examples"
TRAPS = {
    "in a string": 'x = """\n\ndef f():\n\nclass A:\n\n@b\n"""\n\ndef g(): pass\n',
    "in brackets": "x = [\n\n@a\n]\n\ndef g(): pass\n",
    "decorators apart": "@a\n\n@b\n\ndef f(): pass\n\n@c\n\nclass D: pass\n",
    "joined lines": "x = 1 + \\\n\ndef f(): pass\n",
    "line ends": "x = 1\r\n\r\ndef f():\r\n  pass\r\n\r\n\rclass A: pass\n\ndef g(): pass\n",
    "page breaks": "x = 1\n\n\x0c\ndef f(): pass\n\n@a\ndef g(): pass\n",
    "no end of line": "x = 1\n\ndef f(): return 'é'; y = 2",
    "nothing": "",
    "asynchronous": "import a\n\nasync def f(): pass\n\nasync with a: pass\n\ndef g(): pass\n",
    "a null byte": "x = 1\n\ndef f(): pass\0\n",
}
TEXTS = {**TRAPS, **{path.name: path.read_text() for path in sorted(EXAMPLES.glob("**/*.py"))}}
TYPED = (
    "\n",
    '"""\n',
    "\\\n",
    "(",
    ")",
    "@a\n",
    "def f():\n",
    "class A:\n",
    "\n\ndef f(): 1\n",
    "#",
)


def whole(text: str) -> tuple[TopLevel, ...] | None:
    """Return the statements of a text that is not cut, and that nothing is remembered of."""
    return trees._parsed.__wrapped__(text)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_pieces_have_the_statements_of_the_text(text: str) -> None:
    top_level.cache_clear()
    assert top_level(text) == whole(text)


@pytest.mark.parametrize("seed", range(8))
def test_pieces_have_the_statements_of_the_text_after_every_edit(seed: int) -> None:
    source = random.Random(seed)
    text = source.choice(list(TEXTS.values()))
    readable = 0
    for _ in range(40):
        lines = text.split("\n")
        at = source.randrange(len(lines))
        column = source.choice((0, source.randint(0, len(lines[at]))))
        lines[at] = lines[at][:column] + source.choice(TYPED) + lines[at][column:]
        edited = "\n".join(lines)
        assert top_level(edited) == whole(edited)
        if whole(edited) is not None:
            readable += 1
            text = edited
    assert readable


def test_only_the_piece_that_was_edited_is_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    parse = ast.parse
    monkeypatch.setattr(trees.ast, "parse", lambda text: (read.append(text), parse(text))[1])
    functions = [f"def unedited_{n}():\n    return {n}\n\n" for n in range(5)]
    top_level("x = 1\n\n" + "\n".join(functions))
    read.clear()
    functions[2] = "def edited():\n    return 2\n\n"
    top_level("x = 1\n\n" + "\n".join(functions))
    assert read == ["def edited():\n    return 2\n\n\n"]


def test_what_is_remembered_is_bounded() -> None:
    for number in range(trees.MOST_PIECES + 50):
        top_level(f"x = {number}\n")
    assert trees._parsed.cache_info().currsize == trees.MOST_PIECES


@pytest.mark.parametrize("text", [t for t in TEXTS.values() if whole(t)], ids=len)
def test_statements_are_those_of_the_parser(text: str) -> None:
    found = top_level(text)
    assert found is not None
    body = ast.parse(text).body
    assert [(one.head, one.last) for one in found] == [(n.lineno, n.end_lineno) for n in body]
    assert all(one.first <= one.head <= one.last for one in found)


def test_comments_of_a_tree_are_in_the_order_of_the_source() -> None:
    text = "# a\n@b  # c\n# d\ndef f(  # e\n    x,  # f\n):\n    # g\n    return x  # h\n# i\n"
    tree = tree_of("x.py", text)
    shown = [
        text.split("\n")[s.start_line - 1][s.start_column : s.end_column] for s in tree.comments()
    ]
    assert shown == [f"# {letter}" for letter in "acdefghi"]
