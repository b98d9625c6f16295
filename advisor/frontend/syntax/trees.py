"""A file's tree with the place of every node, put together from pieces that were read before.

To work out places costs twice as much as to parse, and an editor asks for the tree of a file
after every key. So a file is cut between its top-level statements, and a piece whose text is
the same is not read again: its places count from its own first line, wherever it has moved.
"""

from __future__ import annotations

import ast
import re
import tokenize
import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from io import StringIO
from typing import Final

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from advisor.edits import split_lines
from advisor.frontend.syntax.guard import MOST_TOKENS, parse
from advisor.source import ParseProblem, Span

# The top-level statements of a file by Python's own parser, which is ten times as fast.
#
# An editor asks for them after every key. So a text is cut above functions and classes that follow
# a blank line, and only pieces that were not seen before are parsed. Where every piece is whole
# statements the text is those one after the other; otherwise, as where such a line stands in a
# string, it is parsed as a whole.

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


MOST_CHARACTERS: Final = MOST_TOKENS
"""Of remembered pieces, some 5000 lines; each keeps about a hundred times as much memory.

In fewer characters than the guard takes tokens there cannot be too many of these, and nothing
else that it refuses goes beyond a statement.
"""

LONG_LINES: Final = 8
"""A statement of as many lines is a piece, and short ones together are one of about as many."""

_MAY_INDENT: Final = (
    cst.BaseStatement,
    cst.BaseSuite,
    cst.Else,
    cst.ExceptHandler,
    cst.ExceptStarHandler,
    cst.Finally,
    cst.MatchCase,
)

_NO_TEXT: Final = frozenset(
    (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
)


@dataclass(frozen=True, slots=True)
class Tree:
    """A parsed file.

    Attributes
    ----------
    module : libcst.Module
        Put together from pieces it lacks comments, but for those within brackets.
    span_of : callable
        The place of a node.
    comments : callable
        Their places in the order of the source; none where it is put together from pieces.
    """

    module: cst.Module
    span_of: Callable[[cst.CSTNode], Span]
    comments: Callable[[], tuple[Span, ...]] = tuple


ReadTree = Callable[[str, str], Tree]
"""Path and text to tree; raises as :func:`tree_of` does."""


def tree_of(path: str, source: str) -> Tree:
    """Return the tree of a file.

    Raises
    ------
    ParseProblem
        As :func:`advisor.frontend.syntax.guard.parse` does.
    """
    module = parse(path, source)
    # worked out when first asked: of most modules beside a program nobody asks for any
    positions = cache(lambda: _positions(module))

    def comments() -> tuple[Span, ...]:
        found = (p for node, p in positions().items() if isinstance(node, cst.Comment))
        return tuple(sorted(map(_span, found)))

    return Tree(module, lambda node: _span(positions()[node]), comments)


def each_once(read_tree: ReadTree) -> ReadTree:
    """Return what reads every text once: programs that call one module follow others, too."""
    known: dict[tuple[str, str], Tree] = {}

    def read(path: str, source: str) -> Tree:
        if (path, source) not in known:
            known[path, source] = read_tree(path, source)
        return known[path, source]

    return read


def _span(place: CodeRange) -> Span:
    return Span(place.start.line, place.start.column, place.end.line, place.end.column)


def _positions(module: cst.Module) -> Mapping[cst.CSTNode, CodeRange]:
    return _Placing(module, unsafe_skip_copy=True).resolve(PositionProvider)


class _Placing(MetadataWrapper):
    """Does not show the whole tree to nobody, which takes as long as to find all places."""

    def visit_batched(
        self,
        visitors: Iterable[cst.BatchableCSTVisitor],
        before_visit: Callable[[cst.CSTNode], None] | None = None,
        after_leave: Callable[[cst.CSTNode], None] | None = None,
    ) -> cst.CSTNode:
        visitors = tuple(visitors)
        if not visitors:
            return self.module
        return super().visit_batched(visitors, before_visit, after_leave)


@dataclass(slots=True, eq=False)
class _Piece:
    """Top-level statements, with places that count from their first line.

    Attributes
    ----------
    module : libcst.Module
    spans : dict of int to Span
        By the identity of nodes: LibCST's own hash of a node takes longer than all else here.
    indented : bool
        Whether a block in it is.
    lines : int
        How many lines were before it when it was last asked.
    moved : dict of int to Span
        Places for that.
    """

    module: cst.Module
    spans: dict[int, Span]
    indented: bool
    lines: int = 0
    moved: dict[int, Span] = field(default_factory=dict)

    def span_of(self, node: int, lines: int) -> Span:
        """Return the place of a node behind some lines."""
        if lines != self.lines:
            self.moved.clear()
            self.lines = lines
        known = self.moved.get(node)
        if known is None:
            found = self.spans[node]
            known = self.moved[node] = Span(
                found.start_line + lines,
                found.start_column,
                found.end_line + lines,
                found.end_column,
            )
        return known


@dataclass(slots=True)
class TreeMemory:
    """Gives what :func:`tree_of` gives, and reads only pieces of files that it does not know.

    A piece of which only comments have changed is known: its nodes are the same ones. To be used
    by one thread at a time.
    """

    _pieces: OrderedDict[tuple[str, int], _Piece] = field(default_factory=OrderedDict)
    _characters: int = 0

    def __call__(self, path: str, source: str) -> Tree:
        """Return the tree of a file.

        Raises
        ------
        ParseProblem
            As :func:`tree_of` does.
        """
        statements = None if len(source) > MOST_CHARACTERS else top_level(source)
        if statements is None:
            return tree_of(path, source)
        cuts = (1, *_cuts(statements))
        lines = split_lines(source)
        seen = Counter[str]()
        found: list[tuple[int, _Piece]] = []
        for first, last in zip(cuts, (*cuts[1:], len(lines) + 1), strict=True):
            text = without_remarks("".join(lines[first - 1 : last - 1]))
            # nodes tell places: two pieces with the same text have a tree each
            try:
                piece = self._piece(path, text, seen[text])
            except ParseProblem:
                # it tells another line than that of the file
                return tree_of(path, source)
            seen[text] += 1
            found.append((first - 1, piece))
        return _joined(found)

    def _piece(self, path: str, text: str, number: int) -> _Piece:
        key = (text, number)
        known = self._pieces.get(key)
        if known is not None:
            self._pieces.move_to_end(key)
            return known
        module = parse(path, text)
        spans = {id(node): _span(place) for node, place in _positions(module).items()}
        made = self._pieces[key] = _Piece(module, spans, _is_indented(module))
        self._characters += len(text)
        while self._characters > MOST_CHARACTERS:
            (old, _), _ = self._pieces.popitem(last=False)
            self._characters -= len(old)
        return made


@lru_cache(maxsize=1024)
def without_remarks(text: str) -> str:
    """Return statements without what only people read: comments, and blanks at the end of lines.

    Lines stay, and so do comments within brackets, which are part of an expression's text. A tree
    has no use for comments to the tool either; whoever reads those has them from the text.
    """
    if not text.endswith("\n") or "\r" in text or "\f" in text:
        return text
    lines = split_lines(text)
    depth, end = 0, (1, 0)
    try:
        for token in tokenize.generate_tokens(StringIO(text).readline):
            if token.type in (tokenize.NEWLINE, tokenize.NL) and not depth:
                row, column = end if end[0] == token.start[0] else (token.start[0], 0)
                if token.string:
                    lines[row - 1] = lines[row - 1][:column] + "\n"
            elif token.type == tokenize.OP:
                depth += (token.string in "([{") - (token.string in ")]}")
            if token.type not in _NO_TEXT or depth:
                end = token.end
    except (tokenize.TokenError, SyntaxError):
        return text
    return "".join(lines)


def _cuts(statements: Iterable[TopLevel]) -> Iterator[int]:
    """Yield the first lines of the pieces behind the first."""
    begin, end = 1, 0
    long_before = False
    for one in statements:
        first, last = one.first, one.last
        long = last - first + 1 >= LONG_LINES
        # on the line on which the statement before ends there is no place for a cut
        if 1 < first > end and (long or long_before or last - begin >= LONG_LINES):
            yield first
            begin = first
        end, long_before = last, long


def _joined(pieces: list[tuple[int, _Piece]]) -> Tree:
    """Return one tree of pieces, each with the number of lines before it."""
    modules = [piece.module for _, piece in pieces]
    indented = (piece.module for _, piece in pieces if piece.indented)
    whole = modules[0].with_changes(
        body=tuple(statement for module in modules for statement in module.body),
        # the first one of a file, as the parser has it
        default_indent=next(indented, modules[0]).default_indent,
    )
    lines, last = pieces[-1]
    end = last.spans[id(last.module)]
    within = Span(1, 0, lines + end.end_line, end.end_column)
    places = dict[int, tuple[int, _Piece]]()
    for before, piece in pieces:
        places.update(dict.fromkeys(piece.spans, (before, piece)))

    def span_of(node: cst.CSTNode) -> Span:
        if node is whole:
            return within
        before, piece = places[id(node)]
        return piece.span_of(id(node), before)

    return Tree(whole, span_of)


def _is_indented(node: cst.CSTNode) -> bool:
    """Return whether an indented block is in a statement; not whether its text has any blanks."""
    return isinstance(node, cst.IndentedBlock) or any(
        _is_indented(child) for child in node.children if isinstance(child, _MAY_INDENT)
    )
