"""Trees put together from remembered pieces are the trees of the whole texts."""

from __future__ import annotations

import random
from pathlib import Path

import libcst as cst
import pytest

from advisor.frontend.spmd.reader import read_program
from advisor.frontend.syntax import trees
from advisor.frontend.syntax.trees import Tree, TreeMemory, tree_of
from advisor.source import ParseProblem, Span

EXAMPLES = Path(__file__).parents[2] / "examples"
PLACED = (
    cst.BaseExpression,
    cst.BaseSmallStatement,
    cst.BaseCompoundStatement,
    cst.IndentedBlock,
    cst.Arg,
    cst.Param,
)
REMARKS = ["", "# remark", "    # remark", "x = [1,", "]", '"""']
TRAPS = {
    "nothing": "",
    "no end of line": "x = 1",
    "only remarks": "# one\n\n# two\n",
    "one line": "a = 1; b = 2\nif a: b = 3\nelse:\n  b = 4\n",
    "a string ends where the next begins": 'a = """\n  x\n"""; b = 1\ndef f():\n   return b\n',
    "joined lines": "a = 1 + \\\n    2\n\nb = \\\n    a\n\n\ndef f():\n\treturn a\n",
    "the same twice": "def f(x):\n    return x\n\n\n" * 2 + "f = 1\n" * 20 + "f = 1\n" * 20,
    "line ends": "def f(x):\r\n  return x\r\n\r\n\r\n# é\rg = 'äöü', [x for x in 'ab']\n" * 4,
    "decorated": "# above\n@a\n# within\n@b(\n  c)\nclass D:\n  # own\n  x = 1\n  # last\n#\n" * 3,
    "a page break": "a = 1\n\x0c\ndef f():\n    return 1\n" * 4,
    "matches": "match a:\n   case 1:\n      b\ntry: a\nexcept B:\n  c\n" * 3,
}
TEXTS = {
    **TRAPS,
    **{path.name: path.read_text() for path in sorted(EXAMPLES.glob("**/*.py"))},
}


def told(tree: Tree) -> list[tuple[str, Span, str]]:
    """Return every statement and expression of a tree with its place and text."""
    found: list[tuple[str, Span, str]] = []

    class Visitor(cst.CSTVisitor):
        def on_visit(self, node: cst.CSTNode) -> bool:
            if isinstance(node, PLACED):
                text = node.value if isinstance(node, cst.Name | cst.BaseNumber) else ""
                found.append((type(node).__name__, tree.span_of(node), text))
            return True

    tree.module.visit(Visitor())
    return found


def agree(memory: TreeMemory, text: str) -> bool:
    """Assert that the memory gives the tree of a text; return whether it has one."""
    try:
        whole = tree_of("f.py", text)
    except ParseProblem as problem:
        with pytest.raises(ParseProblem) as caught:
            memory("f.py", text)
        assert str(caught.value) == str(problem)
        return False
    made = memory("f.py", text)
    assert told(made) == told(whole)
    assert made.span_of(made.module) == whole.span_of(whole.module)
    assert made.module.default_indent == whole.module.default_indent
    assert made.module.get_docstring() == whole.module.get_docstring()
    return True


def edited(text: str, chance: random.Random) -> str:
    """Return a text with one line changed, doubled, left out, put in or moved to the right."""
    lines = text.split("\n")
    place = chance.randrange(len(lines))
    match chance.randrange(6):
        case 0:
            lines.insert(place, lines[place])
        case 1:
            del lines[place]
        case 2:
            lines.insert(place, chance.choice(REMARKS))
        case 3:
            lines[place] = f" {lines[place]}"
        case 4:
            # a line of nothing but a backslash is lost on LibCST, which then miscounts all others
            lines[place] += chance.choice(["  # more", " ", "; y = 2", "\\"[: len(lines[place])]])
        case _:
            lines[place] = lines[place].replace("    ", "  ").replace("1", "123")
    return "\n".join(lines)


@pytest.mark.parametrize("name", TEXTS)
def test_a_tree_of_pieces_is_the_tree_of_the_text(name: str) -> None:
    chance = random.Random(name)
    memory, text = TreeMemory(), TEXTS[name]
    assert agree(memory, text)
    assert agree(memory, text)
    for _ in range(8):
        after = edited(text, chance)
        if agree(memory, after):
            text = after
    assert agree(memory, TEXTS[name])


@pytest.mark.parametrize("name", ["box_sum.py", "jacobi.py", "matmul.py", "one_sided.py"])
def test_programs_read_from_pieces_are_those_of_the_text(name: str) -> None:
    path, chance = EXAMPLES / "mpi" / name, random.Random(name)
    memory, text = TreeMemory(), path.read_text()
    for _ in range(12):
        try:
            whole = read_program(str(path), text)
        except ParseProblem:
            continue
        assert read_program(str(path), text, memory) == whole
        text = edited(text, chance)


def test_only_what_changed_is_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    function = "def f{0}(x):\n    y = {0}\n" + "    y += x\n" * 8 + "    return y\n\n\n"
    text = "import math\n\n" + "".join(function.format(number) for number in range(9))
    parsed: list[str] = []
    parse = cst.parse_module

    def counted(source: str) -> cst.Module:
        parsed.append(source)
        return parse(source)

    monkeypatch.setattr(trees.cst, "parse_module", counted)
    memory = TreeMemory()
    memory("f.py", text)
    parsed.clear()
    memory("f.py", text.replace("y = 4", "y = 44"))
    assert parsed == [function.format(4).replace("y = 4", "y = 44")]
    memory("f.py", "import os\n\n\n\n" + text.replace("y = 4", "y = 44"))
    assert parsed[1:] == ["import os\n\n\n\nimport math\n\n"]


def test_forgotten_pieces_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "MOST_CHARACTERS", 2_000)
    memory = TreeMemory()
    for name in ("jacobi.py", "box_sum.py", "jacobi.py", "nothing"):
        agree(memory, TEXTS[name])
