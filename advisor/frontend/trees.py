"""A file's tree with the place of every node, put together from pieces that were read before.

To work out places costs twice as much as to parse, and an editor asks for the tree of a file
after every key. So a file is cut between its top-level statements, and a piece whose text is
the same is not read again: its places count from its own first line, wherever it has moved.
"""

from __future__ import annotations

import ast
import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from advisor.edits import split_lines
from advisor.frontend.guard import check_parseable
from advisor.frontend.parsing import parse
from advisor.source import Span

MOST_CHARACTERS: Final = 300_000
"""Of remembered pieces, some 8000 lines; each keeps about a hundred times as much memory."""

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


@dataclass(frozen=True, slots=True)
class Tree:
    """A parsed file.

    Attributes
    ----------
    module : libcst.Module
        Put together from pieces it lacks the comments between them.
    span_of : callable
        The place of a node.
    """

    module: cst.Module
    span_of: Callable[[cst.CSTNode], Span]


ReadTree = Callable[[str, str], Tree]
"""Path and text to tree; raises as :func:`tree_of` does."""


def tree_of(path: str, source: str) -> Tree:
    """Return the tree of a file.

    Raises
    ------
    ParseProblem
        As :func:`advisor.frontend.parsing.parse` does.
    """
    module = parse(path, source)
    positions = _positions(module)

    def span_of(node: cst.CSTNode) -> Span:
        found = positions[node]
        return Span(found.start.line, found.start.column, found.end.line, found.end.column)

    return Tree(module, span_of)


def _positions(module: cst.Module) -> Mapping[cst.CSTNode, CodeRange]:
    return MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)


@dataclass(frozen=True, slots=True)
class _Piece:
    module: cst.Module
    positions: Mapping[cst.CSTNode, CodeRange]


@dataclass(slots=True)
class TreeMemory:
    """Gives what :func:`tree_of` gives, and reads only pieces of files that it does not know.

    To be used by one thread at a time.
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
        cuts = None if len(source) > MOST_CHARACTERS else _cuts(source)
        if cuts is None:
            return tree_of(path, source)
        check_parseable(path, source)
        lines = split_lines(source)
        seen = Counter[str]()
        found: list[tuple[int, _Piece]] = []
        for first, last in zip(cuts, (*cuts[1:], len(lines) + 1), strict=True):
            text = "".join(lines[first - 1 : last - 1])
            # nodes tell places: two pieces with the same text have a tree each
            piece = self._piece(text, seen[text])
            if piece is None:
                return tree_of(path, source)
            seen[text] += 1
            found.append((first - 1, piece))
        return _joined(found, source)

    def _piece(self, text: str, number: int) -> _Piece | None:
        key = (text, number)
        known = self._pieces.get(key)
        if known is not None:
            self._pieces.move_to_end(key)
            return known
        try:
            module = cst.parse_module(text)
        except cst.ParserSyntaxError:
            return None
        made = self._pieces[key] = _Piece(module, _positions(module))
        self._characters += len(text)
        while self._characters > MOST_CHARACTERS:
            (old, _), _ = self._pieces.popitem(last=False)
            self._characters -= len(old)
        return made


def _cuts(source: str) -> tuple[int, ...] | None:
    """Return the first lines of pieces, from 1; None where the file does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # doubts about the text are not ours to tell
            body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return (1, *_inner_cuts(body))


def _inner_cuts(body: list[ast.stmt]) -> Iterator[int]:
    begin, end = 1, 0
    long_before = False
    for node in body:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        last = node.end_lineno or first
        long = last - first + 1 >= LONG_LINES
        # on the line on which the statement before ends there is no place for a cut
        if 1 < first > end and (long or long_before or last - begin >= LONG_LINES):
            yield first
            begin = first
        end, long_before = last, long


def _joined(pieces: list[tuple[int, _Piece]], source: str) -> Tree:
    """Return one tree of pieces, each with the number of lines before it."""
    before: dict[cst.CSTNode, int] = {}
    positions: dict[cst.CSTNode, CodeRange] = {}
    for lines, piece in pieces:
        before.update(dict.fromkeys(piece.positions, lines))
        positions.update(piece.positions)
    modules = [piece.module for _, piece in pieces]
    indented = (module for module in modules if _is_indented(module))
    whole = modules[0].with_changes(
        body=tuple(statement for module in modules for statement in module.body),
        # the first one of a file, as the parser has it
        default_indent=next(indented, modules[0]).default_indent,
    )
    end = pieces[-1][1].positions[modules[-1]].end
    within = Span(1, 0, pieces[-1][0] + end.line, end.column)

    def span_of(node: cst.CSTNode) -> Span:
        if node is whole:
            return within
        found, lines = positions[node], before[node]
        return Span(
            found.start.line + lines, found.start.column, found.end.line + lines, found.end.column
        )

    return Tree(whole, span_of)


def _is_indented(node: cst.CSTNode) -> bool:
    """Return whether an indented block is in a statement; not whether its text has any blanks."""
    return isinstance(node, cst.IndentedBlock) or any(
        _is_indented(child) for child in node.children if isinstance(child, _MAY_INDENT)
    )
