"""Which names stretches of source bind, told by their tokens: rather too many than too few."""

from __future__ import annotations

import re
from io import StringIO
from textwrap import dedent
from tokenize import NAME, NEWLINE, OP, TokenError, generate_tokens

from advisor.ir.spmd.program import Program
from advisor.ir.spmd.steps import Loop
from costdb.wording import IDENTIFIER, NAME_PART
from transforms.programs.uses import suite_of

_WORD = re.compile(rf"(?<![{NAME_PART}.]){IDENTIFIER}")
_BINDERS = frozenset({"for", "as", "def", "class", "import", "del", "global", "nonlocal"})
_HEADERS = frozenset(
    {"for", "while", "if", "elif", "else", "with", "try", "except", "finally", "def", "class"}
)
_BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_COMPARISONS = frozenset({"==", "!=", "<=", ">="})


def words(text: str) -> frozenset[str]:
    """Return the names in a piece of source, without attributes."""
    return frozenset(_WORD.findall(text))


def bound_in(program: Program, loop: Loop) -> frozenset[str]:
    """Return every name that a loop may bind, and some that it only indexes with."""
    suite = suite_of(loop.span, program)
    return bound_in_lines(program, suite.start_line, suite.end_line)


def bound_in_lines(program: Program, first: int, last: int) -> frozenset[str]:
    """Return every name that whole lines of one block may bind, and some more; in doubt, all."""
    lines = program.context.lines[first - 1 : last]
    text = dedent("\n".join(line.rstrip("\n") for line in lines)) + "\n"
    try:
        tokens = [
            t for t in generate_tokens(StringIO(text).readline) if t.type in (NAME, OP, NEWLINE)
        ]
    except (TokenError, SyntaxError):
        return words(text)
    found: set[str] = set()
    statement: list[str] = []
    depth, binds = 0, False
    for token in tokens:
        word = token.string
        if token.type == NEWLINE or (word == ";" and not depth):
            statement, binds = [], False
        elif token.type == NAME:
            binds = word in _BINDERS or (binds and word != "in")
            if binds:
                found.add(word)
            statement.append(word)
        elif word in _BRACKETS:
            depth += _BRACKETS[word]
        elif word == ":=":
            found.add(statement[-1])
        elif word.endswith("=") and word not in _COMPARISONS and not depth:
            found.update(statement)
        elif word == ":" and not depth and statement and statement[0] in _HEADERS:
            statement, binds = [], False
    return frozenset(found)
