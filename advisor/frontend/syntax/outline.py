"""The top-level statements of a file by Python's own parser, which is ten times as fast.

An editor asks for them after every key. So a text is cut above functions and classes that follow
a blank line, and only pieces that were not seen before are parsed. Where every piece is whole
statements the text is those one after the other; otherwise, as where such a line stands in a
string, it is parsed as a whole.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

MOST_PIECES = 512
"""Pieces that are remembered, by their text."""

_CUT = re.compile(r"(?<=\n\n)(?=@|def |class |async )")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPOUND = (
    ast.AsyncFor,
    ast.AsyncWith,
    ast.ClassDef,
    ast.For,
    ast.If,
    ast.Match,
    ast.Try,
    ast.TryStar,
    ast.While,
    ast.With,
    *_FUNCTIONS,
)


@dataclass(frozen=True, slots=True)
class TopLevel:
    """A statement that nothing is around.

    Attributes
    ----------
    first, head, last : int
        Its lines, from 1: with its decorators, where it begins itself, and where it ends.
    end_bytes : int
        Where on its last line it ends, in bytes as the parser counts.
    function : str
        The name of the function that it defines, empty where it is something else.
    is_compound : bool
        Whether it holds other statements.
    is_remark : bool
        Whether it is a constant that nothing is done with, such as a documentation.
    """

    first: int
    head: int
    last: int
    end_bytes: int
    function: str
    is_compound: bool
    is_remark: bool


@lru_cache(maxsize=2)
def top_level(source: str) -> tuple[TopLevel, ...] | None:
    """Return the statements of a file; None when it does not parse.

    The last ones are remembered, because an editor asks several times about one text.
    """
    # of a line end alone, or before another, the parser knows more than a count of them
    pieces = [source] if "\r" in source else _CUT.split(source)
    found: list[TopLevel] = []
    before = 0
    for piece in pieces:
        statements = _parsed(piece)
        if statements is None:
            return None if len(pieces) == 1 else _parsed(source)
        found += _moved(statements, before)
        before += piece.count("\n")
    return tuple(found)


def _moved(statements: Iterable[TopLevel], lines: int) -> Iterable[TopLevel]:
    if not lines:
        return statements
    return (
        replace(one, first=one.first + lines, head=one.head + lines, last=one.last + lines)
        for one in statements
    )


@lru_cache(maxsize=MOST_PIECES)
def _parsed(text: str) -> tuple[TopLevel, ...] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # doubts about the text are not ours to tell
            return tuple(map(_outlined, ast.parse(text).body))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _outlined(node: ast.stmt) -> TopLevel:
    decorators = getattr(node, "decorator_list", ())
    return TopLevel(
        first=min([node.lineno, *(one.lineno for one in decorators)]),
        head=node.lineno,
        last=node.end_lineno or node.lineno,
        end_bytes=node.end_col_offset or 0,
        function=node.name if isinstance(node, _FUNCTIONS) else "",
        is_compound=isinstance(node, _COMPOUND),
        is_remark=isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant),
    )
